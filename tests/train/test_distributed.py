"""Two processes against one: the same losses, weights and report up to rounding."""

import socket
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from tiltrm.errors import DeviceError, SettingsError
from tiltrm.train import distributed, state
from tiltrm.train.distributed import World

from . import workers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes left behind."""
    folder = tmp_path_factory.mktemp("distributed")
    mp.spawn(workers.worker, args=(2, free_port(), folder), nprocs=2)
    return folder


# Muon's bfloat16 products turn a difference in the last bit into one of a 256th of the step.
@pytest.mark.parametrize(("name", "tolerance"), [("adamw", 1e-5), ("muon", 2e-3)])
def test_two_processes_are_as_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, tolerance: float
) -> None:
    monkeypatch.setattr(state, "SMALL", state.SMALL)  # `train` changes it
    alone = workers.train(folder / f"{name}-alone", *workers.RUNS[name])
    first, second = (torch.load(folder / f"{name}-{rank}.pt", weights_only=True) for rank in (0, 1))
    for key, tensor in first["numbers"].items():
        assert torch.equal(tensor, second["numbers"][key]), key  # the two never part
        torch.testing.assert_close(tensor, alone["numbers"][key], atol=tolerance, rtol=tolerance)
    both = [(a + b) / 2 for a, b in zip(first["losses"], second["losses"], strict=True)]
    assert both == pytest.approx(alone["losses"], abs=tolerance)
    assert first["losses"] != pytest.approx(second["losses"])  # each has rows of its own
    assert first["report"] == second["report"]
    assert first["report"][0] == alone["report"][0]
    assert first["report"][-1] == pytest.approx(alone["report"][-1], abs=10 * tolerance)
    assert first["flops"] == alone["flops"]


def test_a_table_of_puzzle_ids_gets_the_gradients_of_all_processes(folder: Path) -> None:
    alone = workers.update_table(World())
    assert set(alone.abs().sum(-1).nonzero().flatten().tolist()) == {3, 5, 8}
    for rank in (0, 1):
        assert torch.equal(torch.load(folder / f"table-{rank}.pt", weights_only=True), alone)


def test_one_process_saves_and_any_may_stop_all(folder: Path) -> None:
    assert state.latest(folder / "muon") == folder / "muon" / "state" / "00000004"
    assert state.latest(folder / "adamw") is None
    for rank in (0, 1):
        assert torch.load(folder / f"muon-{rank}.pt", weights_only=True)["stopped"]


def test_rows_of_the_batch_are_shared_out() -> None:
    shares = [World(rank, 4).rows(12) for rank in range(4)]
    assert [i for share in shares for i in range(12)[share]] == list(range(12))
    with pytest.raises(SettingsError, match="batch 10 must be a multiple of the 4 processes"):
        World(1, 4).rows(10)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "meta", "", "cuda:-1"])
def test_an_unknown_device_is_one_sentence(name: str) -> None:
    with pytest.raises(DeviceError, match="must be auto, cpu, cuda or cuda:N"):
        distributed.join(name)


def test_devices_by_name() -> None:
    assert distributed.join("cpu") == (World(0, 1), torch.device("cpu"))
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert distributed.join("auto")[1].type == expected
    with pytest.raises(DeviceError, match="expected a CUDA device 99"):
        distributed.join("cuda:99")
