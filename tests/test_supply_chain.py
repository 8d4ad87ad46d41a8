"""Pins and hashes of what the two commands of the README install."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {normal(name): version for name, version in PIN.findall(text)}


def test_hashes_are_of_the_pinned_versions() -> None:
    pinned = pins((ROOT / "constraints.txt").read_text())
    hashed = pins((ROOT / "hashes.txt").read_text())
    differ = {name for name in pinned.keys() & hashed.keys() if pinned[name] != hashed[name]}
    assert differ == set()
    rest = hashed.keys() - pinned.keys()
    assert all(re.match(r"nvidia-|cuda-|setuptools$", name) for name in rest), rest


def test_every_package_of_the_core_has_hashes() -> None:
    entries = re.split(r"(?m)^(?=\S)", (ROOT / "hashes.txt").read_text())[1:]
    digests = {
        next(iter(pins(entry))): re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
        for entry in entries
    }
    assert all(digests.values())
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    assert {normal(re.split(r"[<>=!~ \[]", each)[0]) for each in needed} <= digests.keys()
