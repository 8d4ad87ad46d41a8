"""Tables for a terminal say what the rows say."""

import numpy as np

from tiltrm.evaluate import Paired, by_step, summarise
from tiltrm.evaluate.table import Comparison, comparisons_table, curves_table, rows_table

from .test_summary import BASE, GUIDED
from .toys import a_job, a_shard


def test_rows() -> None:
    lines = rows_table(summarise([*BASE, *GUIDED])).splitlines()
    assert lines[0].split() == [
        "split", "method", "puzzles", "runs", "exact", "%", "oracle", "%",
        "evaluations/puzzle",
    ]  # fmt: skip
    assert "valid" not in lines[0]
    assert lines[2].split() == [
        "Test", "guided", "6", "4", "66.67", "±", "0.00", "83.33", "±", "19.25", "4.7",
    ]  # fmt: skip
    assert " - " in lines[1]
    assert lines[3].startswith("DF")
    assert len({line.rstrip()[-1] for line in lines[1:]} & {" "}) == 0


def test_mazes_show_three_measures() -> None:
    shares = {"shortest": np.array([1, 1, 0, 0], bool), "valid": np.array([1, 1, 1, 0], bool)}
    shard = a_shard(a_job(), [0, 1, 2, 3], [1, 0, 0, 0], **shares)
    head, line = rows_table(summarise([shard])).splitlines()
    assert head.split("  ")[-3:] == ["shortest %", "valid %", "evaluations/puzzle"]
    assert line.split()[-5:] == ["25.00", "-", "50.00", "75.00", "7.0"]


def test_comparisons() -> None:
    found = Comparison("Test", "guided", "base", Paired(10, 0.12, 0.1, 0.14, 1220, 3, 0.0))
    assert comparisons_table([found]).splitlines()[1].split() == [
        "Test", "guided", "base", "+12.00", "[+10.00,", "+14.00]", "1,220", "3", "<", "1e-300",
    ]  # fmt: skip
    assert found.as_dict()["first"] == "guided"


def test_curves() -> None:
    lines = curves_table(by_step([*BASE, *GUIDED])).splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:2] == ["1", "33.33"]
