"""The keys of /v1/solve and the fields of the page's form come from the table of settings."""

import pytest

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

from pydantic import ValidationError

from tiltrm.model.trm import TRM
from tiltrm.serve import requests
from tiltrm.serve.limits import Limits
from tiltrm.serve.requests import SearchRequest, SolveRequest, form_rows, with_settings
from tiltrm.settings import METHODS, TABLE, Setting

from .service import serving

OWN = {
    "model",
    "task",
    "method",
    "seed",
    "abstain",
    "risk",
    "puzzles",
}  # keys that are not settings


def test_every_setting_of_solve_is_a_key_and_no_other() -> None:
    of_methods = {name for name, row in TABLE.items() if set(row.methods) & set(METHODS)}
    assert set(SolveRequest.model_fields) == of_methods | OWN
    assert "copies" not in of_methods  # of symmetry voting, which is no method of `solve`


def test_a_new_row_is_a_new_key_and_a_new_field(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Setting("warmth", float, 0.0, "an example", ("guided",), most=2.0, label="Warmth")
    monkeypatch.setitem(requests.SETTINGS, "warmth", row)
    body = with_settings(SearchRequest)
    assert body.model_validate({"warmth": 1.5, "puzzles": [""]}).given() == {"warmth": 1.5}
    for wrong in (-1.0, 3.0, "1", True):
        with pytest.raises(ValidationError):
            body.model_validate({"warmth": wrong, "puzzles": [""]})
    assert form_rows(Limits())[-1] == {
        "name": "warmth", "kind": "float", "least": 0.0, "most": 2.0, "choices": (),
        "label": "Warmth", "help": "an example", "methods": ["guided"],
    }  # fmt: skip


def test_the_route_gives_the_rows_with_a_label(toy: TRM) -> None:
    with serving(toy) as service:
        status, _, found = service.ask("/v1/settings")
    assert (status, found["methods"]) == (200, list(METHODS))
    rows = {row["name"]: row for row in found["settings"]}
    assert list(rows) == [name for name, row in TABLE.items() if row.label]
    assert (rows["particles"]["least"], rows["particles"]["most"]) == (1, 256)
    assert rows["halt_above"]["least"] is None  # JSON has no infinity
    assert rows["rules"]["methods"] == ["adaptive"]
