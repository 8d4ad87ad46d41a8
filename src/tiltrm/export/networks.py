"""TRM and HRM as ONNX graphs: the six functions of `RecursiveModel`, and a whole outer step."""

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.export.graph import Array, GraphBuilder
from tiltrm.model.build import Model
from tiltrm.model.hrm import HRM
from tiltrm.model.layers import Attention, Block, SwiGLU
from tiltrm.model.puzzle_rows import puzzle_rows
from tiltrm.model.trm import TRM, Network

PARTS = ("embed", "start", "refine", "answer", "decode", "halt", "step")


def array(tensor: Tensor) -> Array:
    """A tensor as a float32 array."""
    found: Array = tensor.detach().float().cpu().numpy()
    return found


def exportable(model: object) -> Model:
    """The model, if it is a TRM or an HRM; else SettingsError."""
    if not isinstance(model, TRM | HRM):
        raise SettingsError(
            f"expected a TRM or an HRM to export, got {type(model).__name__}; export others with "
            "torch.onnx"
        )
    if model.config.id_cells:
        raise SettingsError(
            "expected a model without puzzle ids in its cells to export, got one that reads "
            f"{puzzle_rows(model):,} ids; choose one of them with --puzzle-id when you import it"
        )
    return model


class ModelGraphs:
    """Builds the graphs of one model in one precision. Rows are trajectories, in any number."""

    def __init__(self, model: Model, precision: str = "float32") -> None:
        self.model, self.precision = exportable(model), precision
        config = model.config
        self.state = [config.positions, config.width]

    def build(self, part: str) -> onnx.ModelProto:
        """One of PARTS. Proved by tests/export/test_networks.py."""
        graph = GraphBuilder(self.precision)
        made: onnx.ModelProto = getattr(self, f"_{part}")(graph)
        return made

    def _rows(self, *names: str, rows: str = "row") -> dict[str, tuple[int, list[Any]]]:
        return {name: (TensorProto.FLOAT, [rows, *self.state]) for name in names}

    def _inputs(self) -> dict[str, tuple[int, list[Any]]]:
        return self._rows("inputs", rows="input_row")  # one for all rows, or one each

    def _embed(self, graph: GraphBuilder) -> onnx.ModelProto:
        config, scale = self.model.config, math.sqrt(self.model.config.width)
        table = graph.weight("embedding", array(self.model.embedding), 0)
        cells = graph.op("Gather", table, "tokens", axis=0)
        if config.prefix:
            cells = graph.op("Concat", self._prefix(graph), cells, axis=1)
        if self.model.position_embedding is not None:
            places = graph.weight("positions", array(self.model.position_embedding))
            cells = graph.op("Mul", graph.op("Add", cells, places), graph.number(math.sqrt(0.5)))
        embedded = graph.op("Mul", cells, graph.number(scale))
        return graph.finish(
            "embed", {"tokens": (TensorProto.INT32, ["row", config.cells])},
            {"inputs": (embedded, ["row", *self.state])},
        )  # fmt: skip

    def _prefix(self, graph: GraphBuilder) -> str:
        """The puzzle embedding of every row: the same for all, or told from its tokens."""
        config, table = self.model.config, array(self.model.prefix)
        if config.puzzle_starts:
            largest = graph.op("ReduceMax", "tokens", axes=[1], keepdims=0)
            starts = graph.constant("puzzle_starts", np.array(config.puzzle_starts, np.int32))
            column = graph.op("Unsqueeze", largest, graph.shape(1))
            reached = graph.op("GreaterOrEqual", column, starts)
            numbers = graph.op("Cast", reached, to=TensorProto.INT64)
            ids = graph.op("ReduceSum", numbers, graph.shape(1), keepdims=0)
            return graph.op("Gather", graph.constant("prefix", table), ids, axis=0)
        own = table[self.model.puzzle_id] if config.puzzles > 1 else table
        rows = graph.op("Shape", "tokens", start=0, end=1)
        shape = graph.op("Concat", rows, graph.shape(config.prefix, config.width), axis=0)
        return graph.op("Expand", graph.constant("prefix", own[None]), shape)

    def _start(self, graph: GraphBuilder) -> onnx.ModelProto:
        shape = graph.op("Shape", "inputs")
        first = {
            name: graph.op("Expand", graph.constant(f"first_{name}", array(value)), shape)
            for name, value in first_state(self.model).items()
        }
        outputs = {name: (value, ["row", *self.state]) for name, value in first.items()}
        return graph.finish("start", self._rows("inputs"), outputs)

    def _refine(self, graph: GraphBuilder) -> onnx.ModelProto:
        latent = self._next_latent(graph, "inputs", "answer", "latent")
        inputs = self._inputs() | self._rows("answer", "latent")
        return graph.finish("refine", inputs, {"new_latent": (latent, ["row", *self.state])})

    def _answer(self, graph: GraphBuilder) -> onnx.ModelProto:
        answer = self._next_answer(graph, "answer", "latent")
        inputs = self._rows("answer", "latent")
        return graph.finish("answer", inputs, {"new_answer": (answer, ["row", *self.state])})

    def _decode(self, graph: GraphBuilder) -> onnx.ModelProto:
        logits = self._logits(graph, "answer")
        return graph.finish("decode", self._rows("answer"), {"logits": (logits, self._cells)})

    def _halt(self, graph: GraphBuilder) -> onnx.ModelProto:
        halt = self._halt_logit(graph, "answer")
        return graph.finish("halt", self._rows("answer"), {"halt_logit": (halt, ["row"])})

    def _step(self, graph: GraphBuilder) -> onnx.ModelProto:
        """One outer step with its noise: M inner updates, one answer update, both heads.

        noise: (row, M + 1, position, width), the last one for the answer.
        """
        steps = self.model.inner_steps
        noise = graph.split("Split", "noise", outputs=steps + 1, axis=1)
        parts = [graph.op("Squeeze", part, graph.shape(1)) for part in noise]
        latent = "latent"
        for part in parts[:-1]:
            latent = graph.op("Add", self._next_latent(graph, "inputs", "answer", latent), part)
        answer = graph.op("Add", self._next_answer(graph, "answer", latent), parts[-1])
        drawn: dict[str, tuple[int, list[Any]]] = {
            "noise": (int(TensorProto.FLOAT), ["row", steps + 1, *self.state])
        }
        return graph.finish(
            "step", self._inputs() | self._rows("answer", "latent") | drawn,
            {
                "new_answer": (answer, ["row", *self.state]),
                "new_latent": (latent, ["row", *self.state]),
                "logits": (self._logits(graph, answer), self._cells),
                "halt_logit": (self._halt_logit(graph, answer), ["row"]),
            },
        )  # fmt: skip

    @property
    def _cells(self) -> list[Any]:
        return ["row", self.model.cells, self.model.vocabulary]

    def _next_latent(self, graph: GraphBuilder, inputs: str, answer: str, latent: str) -> str:
        name = "network" if isinstance(self.model, TRM) else "latent_network"
        x = graph.op("Add", latent, graph.op("Add", answer, inputs))  # the order of Network.sum
        return self._network(graph, name, x)

    def _next_answer(self, graph: GraphBuilder, answer: str, latent: str) -> str:
        name = "network" if isinstance(self.model, TRM) else "answer_network"
        return self._network(graph, name, graph.op("Add", answer, latent))

    def _network(self, graph: GraphBuilder, name: str, x: str) -> str:
        network: Network = getattr(self.model, name)
        for number, block in enumerate(network.layers):
            assert isinstance(block, Block)
            x = self._block(graph, f"{name}.{number}", block, x)
        return x

    def _block(self, graph: GraphBuilder, name: str, block: Block, x: str) -> str:
        if block.mlp_t is not None:  # W x mixes positions without a transposition
            mixed = _swiglu(graph, f"{name}.mlp_t", block.mlp_t, x, left=True)
            x = _rms_norm(graph, graph.op("Add", x, mixed), block.eps, axis=1)
        else:
            assert block.self_attn is not None
            mixed = self._attention(graph, f"{name}.self_attn", block.self_attn, x)
            x = _rms_norm(graph, graph.op("Add", x, mixed), block.eps, axis=2)
        mixed = _swiglu(graph, f"{name}.mlp", block.mlp, x, left=False)
        return _rms_norm(graph, graph.op("Add", x, mixed), block.eps, axis=2)

    def _attention(self, graph: GraphBuilder, name: str, layer: Attention, x: str) -> str:
        config = self.model.config
        head = config.width // config.heads
        apart = graph.shape(0, config.positions, config.heads, head)
        weights = np.split(array(layer.qkv_proj.weight), 3)
        query, key, value = (
            graph.op("Reshape", _linear(graph, f"{name}.{part}", weight, x), apart)
            for part, weight in zip("qkv", weights, strict=True)
        )  # (row, position, head, -)
        query, key = (self._rotated(graph, half) for half in (query, key))
        query = graph.op("Transpose", query, perm=[0, 2, 1, 3])
        query = graph.op("Mul", query, graph.number(1.0 / math.sqrt(head)))
        key = graph.op("Transpose", key, perm=[0, 2, 3, 1])
        value = graph.op("Transpose", value, perm=[0, 2, 1, 3])
        shares = graph.op("Softmax", graph.op("MatMul", query, key), axis=-1)
        mixed = graph.op("Transpose", graph.op("MatMul", shares, value), perm=[0, 2, 1, 3])
        together = graph.op("Reshape", mixed, graph.shape(0, *self.state))
        return _linear(graph, f"{name}.o", array(layer.o_proj.weight), together)

    def _rotated(self, graph: GraphBuilder, x: str) -> str:
        """`layers.rotate` of (row, position, head, -)."""
        if self.model.rotary is None:
            return x
        cos, sin = (
            graph.constant(name, array(table)[None, :, None])
            for name, table in zip(("cos", "sin"), self.model.rotary, strict=True)
        )
        left, right = graph.split("Split", x, outputs=2, axis=-1)
        turned = graph.op("Concat", graph.op("Neg", right), left, axis=-1)
        return graph.op("Add", graph.op("Mul", x, cos), graph.op("Mul", turned, sin))

    def _logits(self, graph: GraphBuilder, answer: str) -> str:
        config = self.model.config
        cells = graph.op(
            "Slice", answer, graph.shape(config.prefix), graph.shape(config.positions),
            graph.shape(1),
        )  # fmt: skip
        return _linear(graph, "token_head", array(self.model.token_head.weight), cells)

    def _halt_logit(self, graph: GraphBuilder, answer: str) -> str:
        """The first output of the head at position 0."""
        first = graph.op("Gather", answer, graph.constant("zero", np.array(0, np.int64)), axis=1)
        head = self.model.halt_head
        logit = _linear(graph, "halt_head", array(head.weight)[:1], first)
        logit = graph.op("Add", logit, graph.constant("halt_head.bias", array(head.bias)[:1]))
        return graph.op("Squeeze", logit, graph.shape(1))


def first_state(model: Model) -> dict[str, Tensor]:
    """The learned first answer and latent, (width,) each."""
    return {"answer": model.first_answer, "latent": model.first_latent}


def _linear(graph: GraphBuilder, name: str, weight: Array, x: str) -> str:
    """x W^T over the last dimension; an int8 scale per output."""
    return graph.op("MatMul", x, graph.weight(name, np.ascontiguousarray(weight.T), 1))


def _swiglu(graph: GraphBuilder, name: str, layer: SwiGLU, x: str, *, left: bool) -> str:
    """down(silu(gate(x)) * up(x)); from the left it mixes the second last dimension."""

    def product(part: str, weight: Array, value: str) -> str:
        if left:
            return graph.op("MatMul", graph.weight(f"{name}.{part}", weight, 0), value)
        return _linear(graph, f"{name}.{part}", weight, value)

    gate, up = np.split(array(layer.gate_up_proj.weight), 2)
    opened = product("gate", gate, x)
    opened = graph.op("Mul", opened, graph.op("Sigmoid", opened))
    hidden = graph.op("Mul", opened, product("up", up, x))
    return product("down", array(layer.down_proj.weight), hidden)


def _rms_norm(graph: GraphBuilder, x: str, eps: float, axis: int) -> str:
    """x / rms(x) along an axis."""
    square = graph.op("ReduceMean", graph.op("Mul", x, x), axes=[axis], keepdims=1)
    return graph.op("Div", x, graph.op("Sqrt", graph.op("Add", square, graph.number(eps))))
