"""--watch: every outer step drawn over the last; a few lines where there is no terminal."""

import re
from contextlib import redirect_stdout
from typing import Any

import pytest
import torch

from tiltrm.cli import main
from tiltrm.cli.show import COLOURS, rendered
from tiltrm.cli.watch import HIDE, SHOW, LiveCloud, leading
from tiltrm.explore import Exploration, StepInfo, explore
from tiltrm.model.trm import TRM
from tiltrm.tasks import SUDOKU, Sudoku

TASK = Sudoku(2)
PUZZLE = "1...3..2.14...2."
HEIGHT = 8  # a 4x4 grid with its rules, and the line below


@pytest.fixture
def tall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")


def watched(folder: str, terminal: Any, *arguments: str) -> str:
    with redirect_stdout(terminal):
        assert main(["solve", PUZZLE, "--model", folder, "--watch", *arguments]) in (0, 1)
    text: str = terminal.getvalue()
    return text


@pytest.mark.usefixtures("tall")
def test_every_step_is_drawn_in_place(folder: str, terminal: Any) -> None:
    text = watched(folder, terminal, "--method", "guided", "--outer-steps", "5")
    assert text.startswith(HIDE)
    assert SHOW in text
    assert re.findall(r"step +(\d+) of 5", text) == ["1", "2", "3", "4", "5"]
    assert text.count(f"\x1b[{HEIGHT}A") == 5  # four frames and the answer, each over the last
    rest = text.rpartition("\x1b[J")[2]
    assert "confidence" in rest
    assert "of 5" not in rest
    assert re.search(r"step +5 of 5  particles  16  ESS .* 240 evaluations\n", text)


def test_a_low_terminal_gets_one_line_without_the_grid(
    folder: str, terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("COLUMNS", "80")
    text = watched(folder, terminal, "--outer-steps", "3")
    assert text.count("\x1b[1A") == 3


@pytest.mark.usefixtures("tall")
def test_the_cursor_comes_back_after_an_error(folder: str, terminal: Any) -> None:
    with (
        redirect_stdout(terminal),
        pytest.raises(RuntimeError),
        LiveCloud(
            TASK,
            torch.nn.Module(),
            colour=False,  # type: ignore[arg-type]
        ),
    ):
        raise RuntimeError
    assert terminal.getvalue() == HIDE + SHOW


def test_a_pipe_gets_a_few_steps_and_then_the_answer(tiltrm: Any, folder: str) -> None:
    code, out, _ = tiltrm(
        "solve", PUZZLE, "--model", folder, "--watch", "--particles", "4", "--outer-steps", "90"
    )
    assert code in (0, 1)
    assert "\x1b" not in out
    assert out.rindex("step ") < out.index("confidence")  # the answer comes last
    steps = re.findall(r"step +(\d+) of 90  particles +(\d+)", out)
    assert steps[-1] == ("90", "4")
    assert ("20", "1") in steps  # the last of the first cloud
    assert len(steps) <= 6


@pytest.mark.parametrize("particles", [1, 3])
def test_several_particles_vote_and_a_single_one_says_how_sure_it_is(
    toy: TRM, particles: int
) -> None:
    seen: list[StepInfo] = []
    settings = Exploration(particles=particles, outer_steps=2, beta=4.0)
    explore(toy, TASK.encode(PUZZLE)[None], settings, watch=seen.append)
    info = seen[-1]
    belief = torch.zeros(16, 6)
    for particle, weight in enumerate(info.log_weights[0].exp().tolist()):
        logits = toy.decode(info.context.state.answer[0, particle])
        own = torch.softmax(logits, -1)
        vote = torch.nn.functional.one_hot(logits.argmax(-1), 6)
        belief += weight * (own if particles == 1 else vote)
    tokens, share = leading(info, toy.vocabulary)
    assert torch.equal(tokens.long(), belief.argmax(-1))
    assert torch.allclose(share, belief.amax(-1), atol=1e-5)
    assert len(seen) == 2


@pytest.mark.parametrize(("columns", "widest"), [(80, 25), (24, 17), (12, 9)])
def test_a_grid_does_not_wrap_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    puzzle = SUDOKU.encode("." * 81)
    for colour in (False, True):
        text = COLOURS.sub("", rendered(SUDOKU, puzzle, puzzle, colour=colour))
        assert max(map(len, text.splitlines())) == widest
