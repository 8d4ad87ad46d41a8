"""Folders of `tiltrm export`: every part of a model as an ONNX graph, in several precisions.

FOLDER/model.json describes the model. FOLDER/PRECISION/ holds a graph per part (embed, start,
refine, answer, decode, halt, and `step`, a whole outer step with its noise), which share the file
weights.bin.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from tiltrm.errors import DataError
from tiltrm.export.description import describe
from tiltrm.export.graph import PRECISIONS, Array, SharedWeights
from tiltrm.export.networks import PARTS, ModelGraphs
from tiltrm.folders import replacing
from tiltrm.model.base import State, evaluations_per_step
from tiltrm.model.build import Model
from tiltrm.tasks import Task

WEIGHTS, ABOUT = "weights.bin", "model.json"


def export(
    model: Model, name: str, task: Task, folder: Path,
    precisions: Sequence[str] = PRECISIONS,
) -> dict[str, int]:  # fmt: skip
    """Write the folder, replacing one that is there; returns the bytes of each precision."""
    sizes = {}
    with replacing(folder) as fresh:
        about = describe(model, name, task)
        (fresh / ABOUT).write_text(json.dumps(about), "utf-8")
        for precision in precisions:
            own = fresh / precision
            own.mkdir()
            weights, graphs = SharedWeights(own / WEIGHTS), ModelGraphs(model, precision)
            for part in PARTS:
                graph = graphs.build(part)
                weights.move_out(graph)
                (own / f"{part}.onnx").write_bytes(graph.SerializeToString())
            weights.save()
            sizes[precision] = sum(path.stat().st_size for path in own.iterdir())
    return sizes


class OnnxModel:
    """A folder of `export` as a model: anything that takes a `RecursiveModel` runs on it.

    Proved by tests/export/test_networks.py.
    """

    def __init__(self, folder: Path, precision: str = "float32") -> None:
        try:
            self.about = json.loads((folder / ABOUT).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"{folder}: expected a folder that tiltrm export wrote, got: {error}"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the library steps blocks of particles in threads
        self.sessions = {
            part: onnxruntime.InferenceSession(
                folder / precision / f"{part}.onnx", options, providers=["CPUExecutionProvider"]
            )
            for part in PARTS
        }
        self.cells, self.vocabulary = self.about["cells"], self.about["vocabulary"]
        self.inner_steps, self.cycles = self.about["inner_steps"], self.about["cycles"]
        self.task = self.about["task"]
        stopping = self.about["stopping"]
        self.decide_above = stopping["halt_above"]
        self.decide_settled = stopping["settled"]

    def embed(self, tokens: Tensor) -> Tensor:
        return self._run("embed", tokens=tokens.int())[0]

    def start(self, inputs: Tensor) -> State:
        return State(*self._run("start", inputs=inputs))

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        shared = inputs.expand_as(state.latent)
        return self._run("refine", inputs=shared, answer=state.answer, latent=state.latent)[0]

    def answer(self, state: State) -> Tensor:
        return self._run("answer", answer=state.answer, latent=state.latent)[0]

    def decode(self, answer: Tensor) -> Tensor:
        return self._run("decode", answer=answer)[0]

    def halt_logit(self, answer: Tensor) -> Tensor:
        return self._run("halt", answer=answer)[0]

    def step(self, inputs: Tensor, state: State, noise: Tensor) -> tuple[Tensor, ...]:
        """New answer, new latent, logits and halt logit of rows: one call for an outer step.

        noise: (row, M + 1, position, width).
        """
        found = self.sessions["step"].run(
            None, {"inputs": _array(inputs), "answer": _array(state.answer),
                   "latent": _array(state.latent), "noise": _array(noise)},
        )  # fmt: skip
        return tuple(torch.from_numpy(each) for each in found)

    def _run(self, part: str, **values: Tensor) -> list[Tensor]:
        """Call a graph with leading dimensions of any number, which it sees as rows."""
        own = 1 if part == "embed" else 2  # dimensions of one row
        shape = next(iter(values.values())).shape[:-own]
        flat = {name: _array(value.flatten(0, -own - 1)) for name, value in values.items()}
        found = self.sessions[part].run(None, flat)
        return [torch.from_numpy(each).unflatten(0, shape) for each in found]


def _array(value: Tensor) -> Array:
    found: Array = np.ascontiguousarray(value.detach().cpu().numpy())
    return found


def largest_difference(model: Model, exported: OnnxModel, rows: int = 2) -> dict[str, float]:
    """The largest difference of each output of one noisy outer step from torch's, on random ids."""
    draw = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        tokens = torch.randint(1, model.vocabulary, (rows, model.cells), generator=draw)
        inputs = model.embed(tokens)
        first = model.start(inputs)
        sites = evaluations_per_step(model)
        noise = 0.3 * torch.randn(rows, sites, *inputs.shape[1:], generator=draw)
        latent = first.latent
        for site in range(model.inner_steps):
            latent = model.refine(inputs, State(first.answer, latent)) + noise[:, site]
        answer = model.answer(State(first.answer, latent)) + noise[:, -1]
        wanted = (answer, latent, model.decode(answer), model.halt_logit(answer))
        found = exported.step(exported.embed(tokens), exported.start(inputs), noise)
    names = ("answer", "latent", "logits", "halt_logit")
    return {
        name: float((one - other).abs().max())
        for name, one, other in zip(names, wanted, found, strict=True)
    }


def as_json(sizes: dict[str, int], differences: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The report of `tiltrm export --json`."""
    return {
        precision: {"bytes": sizes[precision], "largest_difference": differences[precision]}
        for precision in sizes
    }
