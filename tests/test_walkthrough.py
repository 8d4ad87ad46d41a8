"""docs/walkthrough.md: its commands run in their order and print what the page says they print."""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tiltrm.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "walkthrough.md"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


class Block(NamedTuple):
    """A fenced block of the page."""

    language: str  # sh, python or text
    lines: list[str]


def blocks() -> Iterator[Block]:
    for language, content in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"),
                                        re.MULTILINE | re.DOTALL):  # fmt: skip
        yield Block(language, content.splitlines())


def without_numbers(text: str) -> str:
    """The text with every number as #: they depend on the machine, the words do not."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", text))


def require_printed(expected: list[str], out: str) -> None:
    """Every line of the page is in the output; ... stands for anything."""
    printed = without_numbers(out)
    for line in expected:
        for part in filter(None, map(str.strip, without_numbers(line).split("..."))):
            assert part in printed, f"the page says {line!r}, got:\n{out}"


@pytest.mark.usefixtures("one_thread", "no_progress")
def test_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out, ran = "", []
    for block in blocks():
        if block.language == "python":
            name = block.lines[0].removeprefix("# ")
            Path(name).write_text("\n".join(block.lines), "utf-8")
        elif block.language == "text":
            require_printed(block.lines, out)
        else:
            out = ""
            for line in block.lines:
                program, *words = shlex.split(line, comments=True)
                ran.append(words[0])
                if program == "python":
                    runpy.run_path(words[0], run_name="__main__")
                else:
                    code = main(words)
                    captured = capsys.readouterr()
                    out += captured.out + captured.err
                    refused = "# refused" in line
                    assert code == (2 if refused else 0), (line, out)
    assert {"import", "diagnose", "tune", "solve", "evaluate"} <= set(ran)
