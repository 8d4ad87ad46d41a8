"""The command that the page shows gives the same answer in a terminal, for a model of one's own."""

import http.client
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra [serve] is not installed")

from tiltrm.cli import main
from tiltrm.model import save
from tiltrm.model.trm import TRM, TRMConfig
from tiltrm.serve import scheduler
from tiltrm.serve.scheduler import LoadedModel
from tiltrm.serve.server import build
from tiltrm.tasks import registry

from .service import serving
from .test_server_process import process

LATIN = Path(__file__).parents[2] / "examples/latin.py"
SETTINGS: dict[str, Any] = {"method": "guided", "particles": 3, "outer_steps": 4, "seed": 7}


def watched(port: int, puzzle: str, **more: Any) -> dict[str, Any]:
    """The events of one run, by their names."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"puzzles": [puzzle], **SETTINGS, **more})
    line.request("POST", "/v1/solve/stream", body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    text = answer.read().decode()
    line.close()
    assert answer.status == 200, text
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return {
        name.removeprefix("event: "): json.loads(data.removeprefix("data: "))
        for name, data in blocks
    }


def repeated(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The result of the command in a terminal."""
    program, *words = shlex.split(command)
    assert program == "tiltrm"
    capsys.readouterr()
    main([*words, "--json", "--device", "cpu"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def random_model(cells: int, vocabulary: int) -> TRM:
    torch.manual_seed(0)
    config = TRMConfig(
        cells=cells, vocabulary=vocabulary, width=16, layers=1, heads=2, prefix=0, inner_steps=2
    )
    return TRM(config).eval().requires_grad_(False)


@pytest.mark.parametrize("case", ["own folder", "no task", "own task", "name of a bundled one"])
def test_the_command_of_a_served_model_gives_its_answer(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path stays relative: the command is for the folder where the server began."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my models").mkdir()
    name = {"name of a bundled one": "sudoku-extreme"}.get(case, "mine")
    source = f"my models/{name}"
    more: list[str] = []
    if case == "own task":
        save(random_model(25, 7), tmp_path / source, task="latin5", dtype=None)
        more = ["--task", os.path.relpath(LATIN) + ":LATIN"]
        puzzle = "1" + "." * 24
    else:
        task = "" if case == "no task" else "sudoku4"
        save(random_model(16, 6), tmp_path / source, task=task, dtype=None)
        more = ["--task", "sudoku4"] if case == "no task" else []
        puzzle = "3..4.4........31"
    with process(source, *more) as (_, port):
        events = watched(port, puzzle)
    assert "note" not in events["start"]
    found = repeated(events["start"]["command"], capsys)
    for key in ("answer", "evaluations", "decided_by", "confidence"):
        assert found[key] == pytest.approx(events["result"][key]), key


def test_people_on_other_machines_see_no_paths(toy: TRM) -> None:
    with serving(toy) as service:
        start = watched(service.port, "3..4.4........31")["start"]
    assert "--model toy --method guided" in start["command"]
    assert start["note"] == "toy is a folder on the server; give your own path of it."


@pytest.mark.parametrize(("option", "shown"), [
    ({}, "/home/ada/toy"), ({"host": "0.0.0.0"}, None), ({"names": ["puzzles.example"]}, None),
    ({"client_header": "X-Forwarded-For"}, None),
])  # fmt: skip
def test_paths_are_for_servers_that_no_other_machine_reaches(
    toy: TRM, option: dict[str, Any], shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def load_model(*given: Any, **origin: Any) -> LoadedModel:
        seen.append(origin["source"])
        return scheduler.load_model(*given, **origin)

    monkeypatch.setattr("tiltrm.serve.server.load_model", load_model)
    server, listener = build(
        {"toy": toy}, torch.device("cpu"), port=0, sources={"toy": "/home/ada/toy"}, **option
    )
    listener.close()
    server.engine.close()
    server.engine.join()
    assert seen == [shown]
