"""Abuse: every input is answered or refused with one sentence, in bounded time.

`make fuzz` runs FUZZ_EXAMPLES = 4,000 of each kind; the automatic checks run a few. Inputs that
failed are kept in tests/fuzz/corpus and tried first.
"""

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from tests.tasks.pencil.pencil_samples import LINK, PUZZLES

from tiltrm.cli import main
from tiltrm.cli.main import COMMANDS, Parser
from tiltrm.data import read, read_lines
from tiltrm.errors import DataError, TiltrmError
from tiltrm.evaluate.shards import decode
from tiltrm.model import load
from tiltrm.model.native import CALIBRATION, TUNED
from tiltrm.model.trm import TRM
from tiltrm.solving import build_search, solve_texts
from tiltrm.solving.guide_folder import MANIFEST, WEIGHTS, named_guide
from tiltrm.tasks import MAZE, SUDOKU, Sudoku, registry
from tiltrm.tasks.pencil import PENCIL

TOY = Sudoku(2)
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "40"))
CORPUS = Path(__file__).parent / "corpus"
MANY = settings(
    max_examples=EXAMPLES, deadline=None, database=DirectoryBasedExampleDatabase(CORPUS),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink), print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("no_progress", "one_thread")


def flags_of(command: str) -> list[str]:
    parser = Parser()
    COMMANDS[command].add_flags(parser)
    hidden = argparse.SUPPRESS
    return [a.option_strings[0] for a in parser._actions if a.option_strings and a.help != hidden]


NOT_TRIED = ("serve", "reproduce", "site")  # they run long, or need npm
TRIED = [name for name in COMMANDS if name not in NOT_TRIED]
FLAGS = {name: [flag for flag in flags_of(name) if flag != "-h"] for name in TRIED}
NUMBERS = ["0", "1", "2", "-1", "3.5", "nan", "inf", "-inf", "1e308", "1e-320", "0x10", "1_000",
           "99999999999999999999", "٣", "true", "", " ", "-0"]  # fmt: skip
NAMES = ["MODEL", "CKPT", "FOLDER", "CSV", "TXT", "GRID", "CSV.GZ", "NPY", "JSON", "ZEROS", "NONE",
         "NEW", "NULL", "LATIN", "EMPTY", "PUZZLE", "FULL", "NEWDIR", "TUNED", "GUIDE", "ARC",
         "ARCMODEL"]  # fmt: skip
WORDS = ["sudoku", "sudoku4", "maze", "tiltrm.tasks:Sudoku", "os:path", "adaptive", "guided",
         "ptrm", "deterministic", "unguided", "halting", "rules", "1e308*halting+rules",
         "shortest", "sudoku-extreme/test", "cpu", "cuda:99", "a..b", "noise=1e308",
         "batch=2000000000",
         "model.expansion=1e-9", "model.width=32768", "stages=[[1,2]]", "guided:noise=nan",
         "lightup", "nurikabe", "pencil", "maze-unique", "halting+learned:x",
         "https://puzz.link/p?nurikabe/5/4/g2n2h3k1", "https://puzz.link/p?tapa/99/99/1",
         "seconds=0", "mini-arc", "arc", "deterministic:augmentations=3",
         "toy", "small", "-", "--", "é\udc80", "a" * 5000, "\n"]  # fmt: skip


def value() -> st.SearchStrategy[str]:
    marked = st.sampled_from(NAMES).map(lambda name: f"@{name}")
    return marked | st.sampled_from(NUMBERS + WORDS) | st.text(max_size=20)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(TRIED))
    line = [command]
    for _ in range(draw(st.integers(0, 6))):
        line.append(draw(st.sampled_from(FLAGS[command]) | value()))
        if draw(st.booleans()):
            line.append(draw(value()))
    return line


BRIEF = {  # so that a command line that is fine does little work; the last flag wins
    "solve": ["--seconds", "0"],
    "train": ["--steps", "1", "--set", "batch=4", "--set", "model.width=16", "--out", "@NEWDIR"],
    "diagnose": ["--puzzles", "1", "--particles", "2", "--outer-steps", "2"],
    "evaluate": ["--limit", "2", "--folds", "1", "--seeds", "1", "--seconds", "0"],
    "data": [],
    "import": [],
    "tune": ["--evaluations", "1"],
    "fit-guide": ["--puzzles", "2", "--held-out", "1", "--particles", "2", "--outer-steps", "2",
                  "--out", "@NEWDIR"],
    "export": [],
}  # fmt: skip
REQUIRED = {"solve": ["--model", "@MODEL"], "evaluate": ["--model", "@MODEL", "--data", "@CSV"],
            "diagnose": ["--model", "@MODEL", "--data", "@CSV"]}  # fmt: skip


@given(command_lines(), st.booleans())
@example(["data", "@TXT", "--task", "tiltrm.tasks:Sudoku"], False)
@example(["solve", "--method", "guided", "--noise", "1e308"], True)
@example(["solve", "--method", "guided", "--particles", "4096", "--outer-steps", "1"], True)
@example(["diagnose", "--puzzles", "99999999999999999999"], True)
@example(["data", "--generate", "99999999999999999999", "--out", "@NEW"], False)
@example(["train", "--task", "sudoku4", "--preset", "toy", "--set", "batch=2000000000"], False)
@example(["evaluate", "--set", "noise=1e308"], True)
@example(["solve", "--model", "@ARCMODEL", "--file", "@ARC", "--augmentations", "3",
          "--submission", "@FULL", "--seed", "99999999999999999999"], False)  # fmt: skip
@example(["evaluate", "--model", "@ARCMODEL", "--data", "@ARC", "--seconds", "nan"], False)
@example(["tune", "--model", "@ARCMODEL", "--data", "@ARC"], False)
@example(["diagnose", "--model", "@ARCMODEL", "--data", "@ARC"], False)
@example(["fit-guide", "--model", "@ARCMODEL", "--data", "@ARC"], False)
@example(["export", "--model", "@ARCMODEL", "--onnx", "@NEWDIR"], False)
@MANY
def test_any_command_line(
    files: dict[str, str], bounded: Callable[[], Any], capsys: pytest.CaptureFixture[str],
    line: list[str], whole: bool,
) -> None:  # fmt: skip
    registry._registered.clear()
    command = line[0]
    words = [command, *(REQUIRED.get(command, []) if whole else []), *line[1:], *BRIEF[command]]
    filled = [files.get(word[1:], word) if word.startswith("@") else word for word in words]
    with bounded():
        try:
            code = main(filled)
        except SystemExit as ended:  # --help and --version
            code = ended.code if isinstance(ended.code, int) else 1
    out, err = capsys.readouterr()
    assert code in (0, 1, 2), (code, err)
    assert "Traceback" not in out + err


def mutated(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Bytes replaced, removed and inserted at places modulo the length."""
    for place, length, new in changes:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    return data


def require_one_line(error: TiltrmError) -> None:
    assert "\n" not in str(error)


CHANGES = st.lists(
    st.tuples(st.integers(0, 2**20), st.integers(0, 40), st.binary(max_size=12)), max_size=4
)


@given(st.sampled_from(["csv", "txt", "grid", "csv.gz", "npy", "json"]), CHANGES,
       st.sampled_from([None, TOY, SUDOKU, MAZE]))  # fmt: skip
@MANY
def test_any_file_of_puzzles(
    seeds: dict[str, bytes], bounded: Callable[[], Any], kind: str,
    changes: list[tuple[int, int, bytes]], task: Any,
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / f"f.{kind}"
        if kind in ("npy", "json"):  # a preprocessed folder with one file changed
            for name in ("all__inputs.npy", "all__labels.npy"):
                (Path(folder) / name).write_bytes(seeds["npy"])
            (Path(folder) / "dataset.json").write_bytes(seeds["json"])
            path = Path(folder) / ("all__inputs.npy" if kind == "npy" else "dataset.json")
        path.write_bytes(mutated(seeds[kind], changes))
        source = Path(folder) if kind in ("npy", "json") else path
        try:
            found = read(source, task)
            assert bool(found.task.well_formed(found.questions).all())
            if found.answers is not None:
                assert not found.task.violations(found.questions, found.answers).any()
        except TiltrmError as error:
            require_one_line(error)
        if source.is_file():
            try:
                read_lines(source, task)
            except TiltrmError as error:
                require_one_line(error)


LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz./-_=%+$~"


@given(st.sampled_from(sorted(PUZZLES)), CHANGES | st.text(LETTERS, max_size=40))
@MANY
def test_any_address(
    bounded: Callable[[], Any], kind: str, changes: list[tuple[int, int, bytes]] | str
) -> None:
    """Changed bytes, or any letters after a good beginning; what is read is written again."""
    good = PUZZLES[kind][0]
    if isinstance(changes, str):
        text = f"{LINK}{kind}/{changes}"
    else:
        text = mutated(good.encode(), changes).decode("latin-1")
    with bounded():
        try:
            tokens = PENCIL.encode(text)
        except TiltrmError as error:
            require_one_line(error)
            return
        assert bool(PENCIL.well_formed(tokens))
        assert torch.equal(PENCIL.encode(PENCIL.decode(tokens)), tokens)


@given(st.sampled_from([".parquet", ".safetensors"]), CHANGES)
@MANY
def test_any_shard(
    shards: dict[str, bytes], bounded: Callable[[], Any], suffix: str,
    changes: list[tuple[int, int, bytes]],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(mutated(shards[suffix], changes))
        try:
            decode(path)
        except DataError as error:
            require_one_line(error)


@given(st.sampled_from([WEIGHTS, MANIFEST]), CHANGES)
@MANY
def test_any_guide(
    guide: Path, toy: TRM, bounded: Callable[[], Any], name: str,
    changes: list[tuple[int, int, bytes]],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bounded():
        shutil.copytree(guide, folder, dirs_exist_ok=True)
        path = Path(folder) / name
        path.write_bytes(mutated(path.read_bytes(), changes))
        try:
            named_guide(f"learned:{folder}", toy)
        except TiltrmError as error:
            require_one_line(error)


BESIDE = [CALIBRATION, TUNED]  # records beside the weights


@given(st.sampled_from(["model.safetensors", "config.json", "step_1", *BESIDE]), CHANGES)
@MANY
def test_any_checkpoint(
    files: dict[str, str], bounded: Callable[[], Any], name: str,
    changes: list[tuple[int, int, bytes]],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bounded():
        for each in Path(files["MODEL"]).iterdir():
            (Path(folder) / each.name).write_bytes(each.read_bytes())
        source = Path(files["CKPT"]) if name == "step_1" else Path(files["TUNED"]) / name
        path = Path(folder) / name
        path.write_bytes(mutated(source.read_bytes(), changes))
        try:
            model = load(path if name == "step_1" else folder)
            if name in BESIDE:
                build_search(model)
        except TiltrmError as error:
            require_one_line(error)


@given(st.lists(st.integers(1, 5), min_size=16, max_size=16), st.integers(0, 3), st.booleans())
@MANY
def test_no_answer_is_called_valid_that_breaks_a_rule(
    toy: TRM, bounded: Callable[[], Any], ids: list[int], seed: int, rules: bool
) -> None:
    """Whatever the clues are; the rules are written again here."""
    text = TOY.decode(torch.tensor(ids))
    more: dict[str, Any] = {"rules": True} if rules else {}
    with bounded():
        (record,) = solve_texts(toy, [text], task=TOY, seed=seed, outer_steps=3, **more)
    said = json.loads(record.as_json())
    if said["error"] is not None or said["answer"] is None:
        return
    grid = [said["answer"][i : i + 4] for i in range(0, 16, 4)]
    boxes = [grid[r][c : c + 2] + grid[r + 1][c : c + 2] for r in (0, 2) for c in (0, 2)]
    units = [*grid, *("".join(row[c] for row in grid) for c in range(4)), *boxes]
    kept = all(q in (".", a) for q, a in zip(said["puzzle"], said["answer"], strict=True))
    right = kept and all(sorted(unit) == list("1234") for unit in units)
    assert said["solved_by_rules"] == right
    if said["solutions"] == 0:
        assert not right
