"""Memory: chunks chosen from what there is, halved when it runs out."""

import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tiltrm.errors import DeviceError
from tiltrm.explore import Exploration, batching, explore
from tiltrm.explore.batching import chunk_size, in_chunks, one_worker
from tiltrm.model.base import State
from tiltrm.model.trm import TRM


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes"),
    ],
)
def test_running_out_halves_and_goes_on(error: Exception) -> None:
    """Every puzzle is done once, in order, and the size never grows again."""
    sizes: list[int] = []

    def run(part: slice) -> list[int]:
        sizes.append(part.stop - part.start)
        if sizes[-1] > 3:
            raise error
        return list(range(part.start, part.stop))

    done = in_chunks(11, 100, run)
    assert [n for part in done for n in part] == list(range(11))
    assert sizes == [11, 5, 2, 2, 2, 2, 2, 1]


def test_one_puzzle_too_large_is_a_device_error() -> None:
    def run(part: slice) -> None:
        raise torch.OutOfMemoryError

    with pytest.raises(DeviceError, match="fewer particles"):
        in_chunks(4, 4, run)


def test_other_errors_pass_through() -> None:
    def run(part: slice) -> None:
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        in_chunks(4, 4, run)


def test_chunks_follow_memory_and_particles(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = torch.zeros(1, 88, 512)
    monkeypatch.setattr(batching, "free_memory", lambda device: 1 << 40)
    assert chunk_size(inputs, 16, 2) == 2
    assert chunk_size(inputs, 1, 2) == 34
    assert chunk_size(inputs, 64, 2) == 1
    monkeypatch.setattr(batching, "free_memory", lambda device: 64 << 20)
    assert chunk_size(inputs, 1, 8) == 4


def test_explore_survives_a_model_that_runs_out(model: TRM, tokens: Tensor) -> None:
    class Greedy:
        def __getattr__(self, name: str) -> object:
            return getattr(model, name)

        def embed(self, tokens: Tensor) -> Tensor:
            if len(tokens) > 2:
                raise torch.OutOfMemoryError
            return model.embed(tokens)

    settings = Exploration(particles=4, outer_steps=2)
    spared = explore(Greedy(), tokens, settings)
    assert torch.equal(spared.scores, explore(model, tokens, settings).scores)


def test_a_cloud_beyond_all_memory_is_refused_before_it_is_made(
    model: TRM, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux would grant the memory and kill the process that uses it."""
    half = 17 * 32 * 4  # bytes: positions x width x float32
    monkeypatch.setattr(batching, "total_memory", lambda: 5 * 7 * half)
    fits, large = (Exploration(particles=n, outer_steps=1) for n in (7, 8))
    assert len(explore(model, tokens[:2], fits).answers) == 2  # one puzzle at a time
    with pytest.raises(DeviceError, match="fewer particles"):
        explore(model, tokens[:2], large)


def test_the_memory_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert batching.total_memory() > 2**20
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(batching, "CONTAINER_LIMITS", (str(limit),))
    for text, most in (("max\n", 2**20), ("4096\n", 4095)):
        limit.write_text(text)
        assert batching.total_memory() > most
    assert batching.total_memory() == 4096


def test_the_allocator_of_linux_is_understood() -> None:
    assert batching.out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you"))
    assert not batching.out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_one_worker_leaves_the_pool_alone(model: TRM, tokens: Tensor) -> None:
    """A long call beside others computes in its own thread, with the same results."""
    seen: set[str] = set()

    class Watched(TRM):
        def refine(self, inputs: Tensor, state: State) -> Tensor:
            seen.add(threading.current_thread().name)
            return super().refine(inputs, state)

    watched = Watched(model.config)
    watched.load_state_dict(model.state_dict())
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_worker():
            alone = explore(watched, tokens, Exploration(particles=9, outer_steps=2))
        assert seen == {threading.current_thread().name}
        seen.clear()
        shared = explore(watched, tokens, Exploration(particles=9, outer_steps=2))
        assert threading.current_thread().name not in seen
    finally:
        torch.set_num_threads(before)
    assert torch.equal(alone.answers, shared.answers)
