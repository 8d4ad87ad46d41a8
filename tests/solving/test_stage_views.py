"""The views of a plan's stages are drawn late, and are the same whenever they are."""

import pytest
import torch

from tiltrm.explore.plan import Adaptive, parse_stages
from tiltrm.model.trm import TRM
from tiltrm.solving import plan_views, plans
from tiltrm.tasks import Sudoku


def test_only_the_stages_that_are_reached_are_drawn(
    toy: TRM, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    real = plans.views

    def counted(*arguments: object, seed: int, again: bool) -> object:
        seeds.append(seed)
        return real(*arguments, seed=seed, again=again)  # type: ignore[arg-type]

    monkeypatch.setattr(plans, "views", counted)
    plan = Adaptive(parse_stages("1x2 2x2 32x2*60"), symmetric_views=True)
    late = plan_views(plan, Sudoku(2), toy, torch.device("cpu"))
    assert len(late) == 62
    assert seeds == [0]
    last = late[61]
    assert seeds == [0, 61]
    again = plan_views(plan, Sudoku(2), toy, torch.device("cpu"))[-1]
    assert torch.equal(last.source, again.source)
    assert torch.equal(last.source, late[61].source)
    assert seeds == [0, 61, 0, 61]
    assert len(last.source) == 32
    with pytest.raises(IndexError):
        late[62]
