"""diagnose as a whole: any model and task, no labels in the verdict, no growth with the puzzles."""

import json
from typing import Any

import pytest
import torch
from tests.diagnose.test_verdict import puzzles
from tests.diagnose.wells import AllOnes, Wells
from torch import Tensor

import tiltrm
from tiltrm.diagnose import NOTHING, VERDICTS, diagnosis
from tiltrm.diagnose.clouds import CloudRecord, record_clouds
from tiltrm.diagnose.entropy import along_path
from tiltrm.errors import PuzzleError, SettingsError
from tiltrm.explore import Exploration, guides
from tiltrm.model.base import State
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.tasks import MAZE, Sudoku

SMALL = Exploration(particles=4, outer_steps=4)
TASK: Any = AllOnes()


def sudokus(count: int) -> tuple[Tensor, Tensor]:
    pairs = [Sudoku(2).generate(seed) for seed in range(count)]
    questions, answers = zip(*pairs, strict=True)
    return torch.stack(questions), torch.stack(answers)


def test_labels_add_figures_and_leave_the_verdict_alone(toy: TRM) -> None:
    tokens, labels = sudokus(4)
    plain, told, lied = (
        tiltrm.diagnose(toy, tokens, given, task=Sudoku(2), settings=SMALL, rooted=1)
        for given in (None, labels, labels.flip(0))
    )
    for report in (told, lied):
        assert (report.verdict, report.certainty, report.suggested, report.reasons) == (
            plain.verdict, plain.certainty, plain.suggested, plain.reasons
        )  # fmt: skip
    assert plain.verdict in VERDICTS
    assert "accuracy" not in plain.figures
    assert {"deterministic", "unguided", "guided", "oracle"} == set(told.figures["accuracy"])
    found = json.loads(told.as_json())
    assert list(found)[:4] == ["verdict", "reasons", "suggested", "certainty"]
    assert {"stability", "alignment", "entropy", "accuracy", "behind_the_verdict"} <= set(found)
    assert told.verdict in told.words()
    assert "no labels were read" in plain.words()


def test_neither_chunks_nor_order_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, labels = puzzles(9, 5)
    mix = torch.arange(9).flip(0)
    reports = []
    for size, order in ((64, torch.arange(9)), (2, torch.arange(9)), (4, mix)):
        monkeypatch.setattr(diagnosis, "CHUNK", size)
        report = tiltrm.diagnose(
            Wells(), tokens[order], labels[order], task=TASK, settings=SMALL, rooted=0, noises=()
        )
        reports.append(report)
    for other in reports[1:]:
        assert other.certainty == reports[0].certainty
        assert other.figures["accuracy"] == reports[0].figures["accuracy"]
        for name, value in reports[0].figures["alignment"]["halting"].items():
            assert other.figures["alignment"]["halting"][name] == pytest.approx(value, nan_ok=True)


def test_accuracies_are_those_of_the_clouds() -> None:
    """Where the hard cells are, the noise-free particle fails and the guide finds the others."""
    tokens, labels = puzzles(10, 5)
    settings = Exploration(particles=12, outer_steps=8, noise=0.3, beta=1.0)
    found = tiltrm.diagnose(Wells(), tokens, labels, settings=settings, rooted=1).figures
    accuracy = found["accuracy"]
    assert accuracy["deterministic"] == 0.5
    assert accuracy["oracle"] >= accuracy["guided"] > accuracy["unguided"]
    study = found["alignment"]["halting"]
    assert study["auroc"][-1] > 0.99
    assert study["gap"][-1] > 0
    assert study["largest_excess_over_bound"] <= 1e-12
    assert found["entropy"]["mean"]["contraction"] > 0


def test_given_cells_are_left_out_of_the_entropy(toy: TRM) -> None:
    """A task that gives all cells but the first leaves the entropy of that cell."""

    class First(AllOnes):
        def given(self, puzzle: Tensor) -> Tensor:
            return torch.arange(puzzle.shape[-1]).expand_as(puzzle) > 0

    tokens, labels = sudokus(3)
    whole, first = (
        tiltrm.diagnose(toy, tokens, labels, task=task, settings=SMALL, rooted=0).figures["entropy"]
        for task in (None, First())
    )
    seen = list[CloudRecord]()
    record_clouds(toy, tokens, SMALL, {"halting": guides.halting(toy)}, seen.append, seed=0)
    score = torch.cat([part.scores["halting"] for part in seen])
    log_weights = torch.log_softmax(SMALL.beta * score.double().cumsum(1), -1)
    terminal, path = along_path(torch.cat([part.answers for part in seen]), log_weights, 6)
    for found, cells in ((whole, slice(None)), (first, slice(0, 1))):
        assert found["mean"]["terminal"] == pytest.approx(float(terminal[:, cells].mean()))
        assert found["mean"]["path"] == pytest.approx(float(path[:, cells].mean()))
    assert whole["mean"]["path"] != pytest.approx(first["mean"]["path"])


def test_survival_behind_the_verdict_is_that_of_the_figures() -> None:
    """Every rooted puzzle has two states: at its first supervision end, and at the last step."""
    settings = Exploration(particles=3, outer_steps=5, noise=0.7)
    found = tiltrm.diagnose(Wells(), puzzles(4, 2)[0], settings=settings, rooted=4).figures
    (tube,) = (
        tube for tube in found["stability"]["tubes"] if (tube["alpha"], tube["noise"]) == (1.0, 0.7)
    )
    assert tube["states"] == 8
    assert 0.0 < tube["survival"] < 1.0
    assert found["behind_the_verdict"]["means"]["survival"] == pytest.approx(tube["survival"])


@pytest.mark.usefixtures("one_thread")
def test_running_out_of_memory_counts_nothing_twice() -> None:
    """A chunk that fails halfway begins again, smaller, and its first steps are forgotten."""

    class Cramped(Wells):
        calls = 0

        def refine(self, inputs: Tensor, state: State) -> Tensor:
            self.calls += 1
            if self.calls == 6:  # in the third outer step of the first chunk
                raise torch.OutOfMemoryError("no room")
            return super().refine(inputs, state)

    tokens, labels = puzzles(6, 3)
    plain, cramped = (
        tiltrm.diagnose(model, tokens, labels, settings=SMALL, rooted=0)
        for model in (Wells(), Cramped())
    )
    assert cramped.puzzles == 6
    assert cramped.figures["accuracy"] == plain.figures["accuracy"]
    for name, value in plain.figures["alignment"]["halting"].items():
        assert cramped.figures["alignment"]["halting"][name] == pytest.approx(value, nan_ok=True)


def test_figures_that_labels_cannot_give_are_named_in_words() -> None:
    """Where every cloud is right throughout, there is no AUROC; and few puzzles promise nothing."""
    settings = Exploration(particles=6, outer_steps=4, noise=0.01)
    easy = tiltrm.diagnose(Wells(), *puzzles(4, 0), settings=settings, rooted=0)
    said = easy.words()
    assert easy.figures["accuracy"]["unguided"] == 1
    assert not any(word in said for word in ("nan", "inf"))
    assert "halting, last step: no cloud is partly right; all tilts of a whole run: +0.0%" in said
    assert "token AUROC of H on free cells: undefined, all are right or all wrong" in said
    assert "from 4 calibration puzzles no threshold on H promises a risk of 0.05" in said
    settings = Exploration(particles=8, outer_steps=9, noise=0.3, beta=1.0)
    mixed = tiltrm.diagnose(Wells(), *puzzles(40, 20), settings=settings, rooted=0)
    study = mixed.figures["alignment"]["halting"]
    assert f"in-cloud AUROC {study['auroc'][-1]:.3f}, gap" in mixed.words()
    assert f"all tilts of a whole run: {study['whole_run']['gained']:+.1%}" in mixed.words()
    assert study["whole_run"]["gained"] > 0.1


def test_without_rooted_puzzles_nothing_is_said_of_stability() -> None:
    found = tiltrm.diagnose(Wells(), puzzles(2, 1)[0], settings=SMALL, rooted=0)
    assert found.figures["stability"] == {"rho": {}, "tubes": []}
    assert "survival" not in found.words()
    assert "stability from 0 states" in found.words()


def test_several_guides_are_judged_on_one_run(toy: TRM) -> None:
    tokens, _ = sudokus(2)
    spent: list[tuple[int, int]] = []
    both = {"halting": guides.halting(toy), "rules": guides.rules(Sudoku(2).violations)}
    report = tiltrm.diagnose(
        toy, tokens, guides=both, settings=SMALL, rooted=1,
        progress=lambda done, of: spent.append((done, of)),
    )  # fmt: skip
    assert list(report.figures["alignment"]) == ["halting", "rules"]
    assert report.figures["settings"]["guide"] == "halting"
    done = [d for d, _ in spent]
    assert done == sorted(done)
    assert spent[-1] == (report.evaluations, report.evaluations)


def test_a_maze_model_of_random_weights() -> None:
    torch.manual_seed(0)
    config = TRMConfig(
        cells=900, vocabulary=6, width=16, layers=1, heads=2, prefix=2, inner_steps=2,
        token_mixing=False, rotary=True,
    )  # fmt: skip
    model = TRM(config).eval().requires_grad_(False)
    question, answer = MAZE.generate(0)
    report = tiltrm.diagnose(
        model, question[None], answer[None], task=MAZE, rooted=1, noises=(0.3,),
        settings=Exploration(particles=3, outer_steps=3, noise=0.5, beta=1.0),
    )  # fmt: skip
    assert report.verdict == NOTHING
    assert report.figures["alignment"]["halting"]["spread"] == pytest.approx([0.0] * 3, abs=1e-6)
    assert report.suggested["beta"] is None


def test_bad_arguments_are_told_apart(toy: TRM) -> None:
    tokens, labels = sudokus(1)
    for settings in (Exploration(particles=2), Exploration(noise=0.0), Exploration(beta=0.0)):
        with pytest.raises(SettingsError, match="diagnosis needs"):
            tiltrm.diagnose(toy, tokens, settings=settings)
    with pytest.raises(PuzzleError, match="labels"):
        tiltrm.diagnose(toy, tokens, labels[:, :3])
