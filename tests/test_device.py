"""The words for a device."""

import pytest
import torch

from tiltrm.device import choose
from tiltrm.errors import DeviceError


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were two GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_words(two: None) -> None:
    assert choose("cpu") == torch.device("cpu")
    assert choose("auto") == choose("cuda") == choose("cuda:0") == torch.device("cuda", 0)
    assert choose("cuda", local_rank=1) == choose("cuda:1") == torch.device("cuda", 1)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose("auto") == torch.device("cpu")
    with pytest.raises(DeviceError, match="got 0 devices"):
        choose("cuda")


@pytest.mark.parametrize("word", ["", "CPU", "cpu:7", "cuda:", "cuda:x", "cuda:-1", "abacus"])
def test_other_words(two: None, word: str) -> None:
    with pytest.raises(DeviceError, match="device must be auto, cpu, cuda or cuda:N"):
        choose(word)


def test_one_too_many(two: None) -> None:
    with pytest.raises(DeviceError, match="expected a CUDA device 2, got 2 devices"):
        choose("cuda:2")
