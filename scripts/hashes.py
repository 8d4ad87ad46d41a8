"""Write the hashes of every file of the packages that `make` installs, for all platforms.

`pip install --dry-run --ignore-installed --report report.json -c constraints.txt setuptools torch
numpy safetensors`, against the public index, then `python scripts/hashes.py report.json INDEX >
hashes.txt`, where INDEX is the address of that index (its "simple" pages). The same with
`setuptools -e .[dev]` gives hashes-dev.txt.
"""

import html.parser
import json
import re
import sys
import urllib.parse
import urllib.request

LINUX_ONLY = re.compile(r"nvidia-|cuda-|triton$")
ONLY_LINUX = ' ; sys_platform == "linux"'


class Links(html.parser.HTMLParser):
    """The addresses on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def normal(name: str) -> str:
    """A package's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def hashes(index: str, name: str, version: str) -> list[str]:
    """The SHA-256 of all files of a version."""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{normal(name)}/", timeout=60) as page:
        links = Links()
        links.feed(page.read().decode())
    found = set()
    for address in links.found:
        place, _, digest = address.partition("#sha256=")
        file = urllib.parse.unquote(place.rpartition("/")[2])
        stem = re.match(r"(.+?)-(\d[^-]*?)(-.*\.whl|\.tar\.gz|\.zip)$", file)
        if digest and stem and normal(stem[1]) == normal(name) and stem[2] == version:
            found.add(digest)
    return sorted(found)


def main() -> int:
    """Print the file."""
    report, index = sys.argv[1:]
    with open(report, encoding="utf-8") as file:
        found = [entry["metadata"] for entry in json.load(file)["install"]]
    packages = [package for package in found if package["name"] != "tiltrm"]
    for package in sorted(packages, key=lambda each: normal(each["name"])):
        name, version = normal(package["name"]), package["version"]
        lines = hashes(index, name, version)
        if not lines:
            sys.exit(f"expected files of {name} {version} with hashes in the index, got none")
        marker = ONLY_LINUX if LINUX_ONLY.match(name) else ""
        print(
            " \\\n".join([f"{name}=={version}{marker}", *(f"    --hash=sha256:{h}" for h in lines)])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
