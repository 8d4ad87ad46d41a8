"""Which device a run uses."""

import torch

from tiltrm.errors import DeviceError


def choose(name: str, local_rank: int | None = None) -> torch.device:
    """The device that 'auto', 'cpu', 'cuda' or 'cuda:N' means here; 'auto' is a GPU if any.

    `local_rank` is the GPU that 'cuda' means where several processes share a machine.
    """
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if found else "cpu"
    kind, _, number = name.partition(":")
    if name == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or (":" in name and not number.isdecimal()):
        raise DeviceError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    index = int(number) if number else local_rank or 0
    if index >= found:
        raise DeviceError(
            f"expected a CUDA device {index}, got {found} devices; use --device cpu, or install "
            "a torch with CUDA where there is a GPU"
        )
    return torch.device("cuda", index)
