"""Pins and hashes of what the two commands of the README install."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "hashes.txt": [],
    "hashes-dev.txt": ["dev", "report", "serve", "scale", "export", "generate"],
}  # and the extras that they cover
PIN = re.compile(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {normal(name): version for name, version in PIN.findall(text)}


@pytest.mark.parametrize("file", FILES)
def test_hashes_are_of_the_pinned_versions(file: str) -> None:
    pinned = pins((ROOT / "constraints.txt").read_text())
    hashed = pins((ROOT / file).read_text())
    differ = {name for name in pinned.keys() & hashed.keys() if pinned[name] != hashed[name]}
    assert differ == set()
    rest = hashed.keys() - pinned.keys()
    assert all(re.match(r"nvidia-|cuda-|setuptools$", name) for name in rest), rest


@pytest.mark.parametrize("file", FILES)
def test_every_package_has_hashes(file: str) -> None:
    entries = re.split(r"(?m)^(?=\S)", (ROOT / file).read_text())[1:]
    digests = {
        next(iter(pins(entry))): re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
        for entry in entries
    }
    assert all(digests.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in FILES[file]:
        needed += project["project"]["optional-dependencies"][extra]
    names = {normal(re.split(r"[<>=!~ \[]", each)[0]) for each in needed}
    assert names - {"tiltrm"} <= digests.keys()
