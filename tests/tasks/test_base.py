"""What all tasks share."""

import torch

from tiltrm.tasks.base import exactly_right


def test_exactly_right_means_every_labelled_cell() -> None:
    labels = torch.tensor([[2, 3, 4], [2, 3, 4], [2, 0, 4], [0, 0, 0]], dtype=torch.uint8)
    answers = torch.tensor([[2, 3, 4], [2, 3, 5], [2, 5, 4], [1, 1, 1]])
    assert exactly_right(answers, labels).tolist() == [True, False, True, True]
