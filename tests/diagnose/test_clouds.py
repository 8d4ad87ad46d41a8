"""The sums over recorded clouds, on three puzzles made by hand."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.diagnose.wells import AllOnes
from torch import Tensor

from tiltrm.diagnose.clouds import CloudRecord, CloudStatistics
from tiltrm.diagnose.entropy import along_path
from tiltrm.explore import Exploration

MODEL: Any = SimpleNamespace(vocabulary=3, cycles=2)
TASK: Any = AllOnes()  # 1 in every cell keeps the rules
SETTINGS = Exploration(particles=4, outer_steps=3, beta=0.5)
# (puzzle, particle): the last answers; particle 0 is free of noise.
LAST = torch.tensor(
    [
        [[1, 1], [1, 1], [2, 1], [1, 1]],  # two of three noisy ones come back
        [[1, 2], [1, 2], [1, 1], [2, 2]],  # one does, but to nothing settled
        [[2, 1], [1, 1], [2, 2], [1, 2]],  # none does, and the noise-free one alone is right
    ]
)
LABELS = torch.tensor([[1, 1], [2, 2], [2, 1]])
SCORES = torch.tensor(
    [
        [[0, -1, -9, -2], [0, -1, -9, -2], [-1, -1, -2, -2]],
        [[0, -1, -2, -3], [0, -1, -3, -2], [0, -1, -2, -1]],
        [[-9, -1, -2, -3], [-9, -1, -2, -3], [-9, -3, -2, -3]],
    ]
).float()  # (puzzle, step, particle)
TUBE = torch.tensor([[4, 3], [0, 0], [4, 1]])


HALTED = torch.tensor([True, False, True])


def recorded() -> CloudRecord:
    answers = LAST[:, None].repeat(1, 3, 1, 1)
    answers[:, 0] = 0  # no puzzle has settled at the first step
    answers[1, 1, 0] = 0  # and the second puzzle not at the second either
    return CloudRecord({"halting": SCORES}, answers.to(torch.uint8), torch.arange(3), HALTED)


def statistics(record: CloudRecord, labels: Tensor | None = None) -> CloudStatistics:
    found = CloudStatistics(MODEL, SETTINGS, ["halting"], TASK)
    tokens = torch.ones_like(LABELS)
    for row in range(len(LABELS)):  # chunks of one
        part = slice(row, row + 1)
        one = CloudRecord(
            {n: s[part] for n, s in record.scores.items()}, *(t[part] for t in record[1:])
        )
        found.add(one, tokens[part], None if labels is None else labels[part], TUBE[part])
    return found


def test_signals_by_hand() -> None:
    """Of its two pairs each last cloud wins 1.5, 0 and 0.5; the noise-free particle is in none."""
    sums = statistics(recorded()).bootstrap.replicate_sums()[0].tolist()
    settled, recovered, rolled, survived, pairs, won, count = 2, 2 / 3, 8, 4, 6, 2.0, 3
    checked, valid, borrowed, halted = 3, 3, 0, 2  # no other puzzle is in a chunk of one
    assert sums[1:] == pytest.approx(
        [settled, recovered, rolled, survived, pairs, won, checked, valid, borrowed, halted, count]
    )


def test_the_mass_that_a_whole_run_moves_by_hand() -> None:
    """The tilts of three steps, and of 45 more that score as the last one did.

    In the first cloud particles 1 and 3 agree, so that nothing moves between those two.
    """

    def moved(total: Tensor) -> list[float]:
        shift = torch.softmax(0.5 * total.double(), -1) - 1 / 3
        shift[0] = torch.stack((shift[0, 0] + shift[0, 2], shift[0, 1], 0 * shift[0, 1]))
        return (shift.abs().sum(-1) / 2).tolist()

    total = SCORES[..., 1:].sum(1) + 45 * SCORES[:, -1, 1:]
    found = statistics(recorded()).bootstrap.replicate_sums()[0]
    assert float(found[0]) == pytest.approx(sum(moved(total)))
    apart = torch.softmax(0.5 * total[0].double(), -1)
    assert moved(total)[0] < float((apart - 1 / 3).abs().sum()) / 2 - 0.1
    answers = recorded().answers[:, -1:].repeat(1, 60, 1, 1)
    long = CloudRecord(
        {"halting": SCORES[:, -1:].repeat(1, 60, 1)}, answers, torch.arange(3), HALTED
    )
    wanted = sum(moved(60 * SCORES[:, -1, 1:]))  # recorded to its end
    assert float(statistics(long).bootstrap.replicate_sums()[0][0]) == pytest.approx(wanted)


def test_one_step_settles_nothing() -> None:
    record = recorded()
    short = CloudRecord({"halting": SCORES[:, -1:]}, record.answers[:, -1:], record.keys, HALTED)
    assert statistics(short).bootstrap.replicate_sums()[0][1:3].tolist() == [0, 0]


def test_accuracies_by_hand() -> None:
    """The noise-free particle has a say in the guided answer and the oracle, not in unguided."""
    accuracy = statistics(recorded(), LABELS).figures()["accuracy"]
    assert accuracy == pytest.approx(
        {"deterministic": 2 / 3, "unguided": 1 / 3, "guided": 1 / 3, "oracle": 1.0}
    )


def test_the_tilts_of_all_steps_add_up() -> None:
    record = recorded()
    log_weights = torch.log_softmax(0.5 * SCORES.double().cumsum(1), -1)
    terminal, path = along_path(record.answers, log_weights, 3)
    mean = statistics(record).figures()["entropy"]["mean"]
    assert mean["terminal"] == pytest.approx(float(terminal.mean()))
    assert mean["path"] == pytest.approx(float(path.mean()))


def test_labels_are_no_part_of_the_signals() -> None:
    plain, told = (statistics(recorded(), labels).bootstrap for labels in (None, LABELS))
    assert torch.equal(plain.replicate_sums(), told.replicate_sums())
