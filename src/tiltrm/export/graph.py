"""A small builder of ONNX graphs: nodes by name, weights in float32, float16 or int8.

Weights are stored in the chosen precision and turned into float32 by nodes that depend on nothing
else, so that a runtime folds them once when it opens the graph. All arithmetic is float32.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 17, 8  # of runtimes from 2022 on
PRECISIONS = ("float32", "float16", "int8")
SMALL = 1024  # numbers; smaller weights (norms, biases) stay in float32
Array = NDArray[Any]


class GraphBuilder:
    """Collects nodes and weights; every method returns the name of its result."""

    def __init__(self, precision: str = "float32") -> None:
        self.precision = precision
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self._known: dict[str, str] = {}  # names of weights -> names of their float32 values

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        return self.split(kind, *inputs, outputs=1, **attributes)[0]

    def split(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """A node with several results."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def constant(self, name: str, value: Array) -> str:
        """A value that keeps its precision; the same name is the same value."""
        self.weights.setdefault(name, value)
        return name

    def number(self, value: float) -> str:
        """A float32 number."""
        return self.constant(f"number_{value!r}", np.array(value, np.float32))

    def shape(self, *sizes: int) -> str:
        """A shape, or a list of axes."""
        return self.constant(f"shape_{'_'.join(map(str, sizes))}", np.array(sizes, np.int64))

    def weight(self, name: str, value: Array, channel: int = -1) -> str:
        """A float32 weight, stored in the builder's precision; int8 has a scale per `channel`."""
        if name not in self._known:
            self._known[name] = self._stored(name, value.astype(np.float32), channel)
        return self._known[name]

    def _stored(self, name: str, value: Array, channel: int) -> str:
        if self.precision == "float32" or value.size < SMALL:
            return self.constant(name, value)
        if self.precision == "float16":
            half = self.constant(name, value.astype(np.float16))
            return self.op("Cast", half, to=TensorProto.FLOAT)
        others = tuple(axis for axis in range(value.ndim) if axis != channel % value.ndim)
        codes, scale = quantise(value, others)
        whole = self.op("Cast", self.constant(f"{name}.int8", codes), to=TensorProto.FLOAT)
        return self.op("Mul", whole, self.constant(f"{name}.scale", scale))

    def finish(
        self, name: str, inputs: Mapping[str, tuple[int, Sequence[Any]]],
        outputs: Mapping[str, tuple[str, Sequence[Any]]],
    ) -> onnx.ModelProto:  # fmt: skip
        """The model. Inputs: name -> (type, shape); outputs: name -> (value, shape), float32."""
        for public, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [public]))
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
            [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
                for n, (_, shape) in outputs.items()
            ],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tiltrm"
        )
        model.ir_version = IR
        onnx.checker.check_model(model)
        return model


def quantise(value: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """int8 codes and float32 scales, one for each channel: value is nearly codes x scale."""
    peak = np.abs(value).max(axis=axes, keepdims=True)
    scale = np.where(peak > 0, peak / 127.0, 1.0).astype(np.float32)
    return np.clip(np.rint(value / scale), -127, 127).astype(np.int8), scale


class SharedWeights:
    """A file of weights that several graphs of one folder point into."""

    def __init__(self, path: Path) -> None:
        self.path, self.places = path, dict[str, tuple[int, int]]()
        self.content = bytearray()

    def move_out(self, model: onnx.ModelProto) -> None:
        """Move the large weights of a model into the file; the same name is stored once."""
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) < SMALL:
                continue
            if tensor.name not in self.places:
                self.content += b"\0" * (-len(self.content) % 64)
                self.places[tensor.name] = len(self.content), len(tensor.raw_data)
                self.content += tensor.raw_data
            offset, length = self.places[tensor.name]
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (
                ("location", self.path.name),
                ("offset", offset),
                ("length", length),
            ):
                tensor.external_data.add(key=key, value=str(value))

    def save(self) -> None:
        """Write the file."""
        self.path.write_bytes(self.content)
