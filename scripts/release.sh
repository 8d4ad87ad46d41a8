#!/usr/bin/env bash
# Build a release and try it in clean environments. Nothing is uploaded: the last lines say how.
# `scripts/release.sh --trial` skips the two checks of the repository's state, to try the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
puzzle=1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3..

fail() { echo "release: $1" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
heading=$(grep -m 1 '^## ' CHANGELOG.md)
case $heading in
  "## $version ("*) ;;
  *) fail "expected the top entry of CHANGELOG.md to be $version as in pyproject.toml, got '$heading'; change one of them" ;;
esac
if [ "${1:-}" != --trial ]; then
  [[ $heading =~ \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$ ]] ||
    fail "expected the top entry of CHANGELOG.md to have a date, got '$heading'; write '## $version (YYYY-MM-DD)'"
  [ -z "$(git status --porcelain)" ] ||
    fail "expected a clean working tree, got changes; commit them or put them aside"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install() { "$1/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "${@:2}"; }

echo "building $version"
rm -rf build dist
python3 -m venv "$work/build"
install "$work/build" build
"$work/build/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "the build failed"; }

try() {  # an environment with nothing but this file and its dependencies, used outside the clone
  echo "trying $(basename "$1")"
  python3 -m venv "$work/try"
  install "$work/try" "$1"
  (
    cd "$work"
    [ "$(try/bin/tiltrm --version | tail -c "$((${#version} + 1))")" = "$version" ] || fail "tiltrm --version does not say $version"
    try/bin/python - "$repository" <<'PYTHON'
import sys
from pathlib import Path

import tiltrm
import tiltrm.tasks

where = Path(tiltrm.__file__).resolve()
assert not where.is_relative_to(sys.argv[1]), f"imported from the clone: {where}"
assert (where.parent / "py.typed").is_file()
for name in tiltrm.__all__:
    getattr(tiltrm, name)
PYTHON
    try/bin/tiltrm solve --json "$puzzle" | grep -q '"solved_by_rules": true' || fail "tiltrm solve gave no valid grid"
  )
  rm -rf "$work/try"
}
try dist/tiltrm-"$version"-py3-none-any.whl
try dist/tiltrm-"$version".tar.gz

echo
ls -l dist
cat <<END

Both files work. To publish them:
  git tag -a v$version -m "tiltrm $version" && git push origin v$version
  python -m twine upload dist/tiltrm-$version-py3-none-any.whl dist/tiltrm-$version.tar.gz
  make docs, then publish the folder site/
END
