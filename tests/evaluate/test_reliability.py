"""Reliability: bins by hand, shards against what `solve` states, promised risks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiltrm.evaluate.reliability import (
    Reliability,
    reliability_of,
    reliability_table,
    stop_features,
)
from tiltrm.report.reliability import draw_reliability
from tiltrm.solving.confidence import Calibration, StopFeatures, fit

from .toys import a_job, a_shard

SETTINGS = {"stages": "1x4"}


def stops(count: int = 400) -> tuple[StopFeatures, torch.Tensor]:
    """Half of the answers have a confidence of 0.95, half of 0.6; nine tenths are right of each."""
    sure = torch.arange(count) % 2 == 0
    confidence = torch.where(sure, 0.95, 0.6)
    right = torch.arange(count) % 20 > 1
    every = torch.ones(count, dtype=torch.bool)
    return StopFeatures(["halting"] * count, confidence, confidence, every.long(), every), right


def calibrated(**settings: Any) -> Calibration:
    return fit(*stops(), task="t", data="d", judge="labels", settings=settings or SETTINGS)


def reliability(calibration: Calibration | None, *risks: float) -> Reliability:
    return reliability_of(*stops(), calibration, SETTINGS, risks, split="val", title="adaptive")


def test_bins_error_and_brier_score_by_hand() -> None:
    found = reliability(None)
    assert not found.calibrated
    assert [(part.low, part.high, part.answers) for part in found.bins] == [
        (0.5, 0.8, 200), (0.95, 0.98, 200),
    ]  # fmt: skip
    assert [part.expected for part in found.bins] == pytest.approx([0.6, 0.95])
    assert [part.observed for part in found.bins] == pytest.approx([0.9, 0.9])
    assert found.error == pytest.approx((0.3 + 0.05) / 2)
    brier = (0.9 * 0.4**2 + 0.1 * 0.6**2 + 0.9 * 0.05**2 + 0.1 * 0.95**2) / 2
    assert found.brier == pytest.approx(brier)


def test_a_calibration_of_these_settings_mends_it_and_another_does_not() -> None:
    assert reliability(calibrated()).error < 0.01
    other = reliability(calibrated(stages="1x5"))
    assert not other.calibrated
    assert other.error > 0.1


def test_promised_risks_are_kept_or_refused_in_words() -> None:
    found = reliability(calibrated(), 0.15, 0.05)
    kept, refused = found.risks
    assert (kept.answered, kept.wrong, kept.refused) == (400, 40, "")
    assert "cannot be promised" in refused.refused
    (unknown,) = reliability(None, 0.1).risks
    assert "no calibration" in unknown.refused
    text = reliability_table([found])
    assert "answered 400 of 400 (100.00%), 40 of them wrong (10.000%" in text
    assert "expected %" in text


def test_a_calibration_by_rules_promises_shortest_paths_and_one_by_labels_the_labels() -> None:
    numbers = {name: np.full(4, 0.9) for name in ("confidence", "halt_probability")}
    shard = a_shard(
        a_job("adaptive"), [0, 1, 2, 3], [1, 0, 0, 0], shortest=np.array([1, 1, 0, 0], dtype=bool),
        valid=np.array([1, 1, 1, 0], dtype=bool), outer_steps=np.ones(4, dtype=int), **numbers,
    )  # fmt: skip
    features, right = stop_features([shard], calibrated())
    assert features.valid.tolist() == [True, True, False, False]
    assert right.tolist() == [True, False, False, False]
    by_rules = replace(calibrated(), judge="rules")
    assert stop_features([shard], by_rules)[1].tolist() == [True, True, False, False]


def test_it_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_reliability([reliability(None)], tmp_path / "r.svg")
    assert "<svg" in (tmp_path / "r.svg").read_text()
