"""The Tiny Recursive Model: one network for the latent and the answer."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tiltrm.errors import SettingsError
from tiltrm.model.base import State
from tiltrm.model.layers import (
    Block,
    hidden_units,
    linear,
    lookup,
    rotary_table,
    truncated_normal_,
)
from tiltrm.model.puzzle_ids import MAX_ID_CELLS, cut_rows, fetch_rows, ids_in_cells

IMPOSSIBLE = -1e4  # logit of a token that no softmax shows


@dataclass(frozen=True)
class TRMConfig:
    """Sizes of a TRM. The defaults are the paper's Sudoku model with 7 prefix positions."""

    cells: int = 81
    vocabulary: int = 11
    width: int = 512
    layers: int = 2
    heads: int = 8
    expansion: float = 4.0
    prefix: int = 7
    token_mixing: bool = True
    rotary: bool = False
    rotary_theta: float = 10000.0
    inner_steps: int = 6
    cycles: int = 3
    eps: float = 1e-5
    learned_positions: bool = False
    puzzles: int = 1  # rows of the puzzle embedding, which fills the prefix
    puzzle_starts: tuple[int, ...] = ()  # the largest token id of a puzzle says which row it has
    id_cells: int = 0  # further cells at the end of a puzzle that hold its row in base 256

    def __post_init__(self) -> None:
        names = ("cells", "vocabulary", "width", "layers", "heads", "inner_steps", "cycles")
        for name in (*names, "puzzles"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        starts = self.puzzle_starts
        if starts and (len(starts) != self.puzzles - 1 or list(starts) != sorted(set(starts))):
            raise SettingsError(
                f"puzzle_starts must be {self.puzzles - 1} rising token ids, the first of each "
                f"puzzle but one, got {list(starts)}"
            )
        if not 0 <= self.id_cells <= MAX_ID_CELLS or (self.id_cells and starts):
            raise SettingsError(
                f"id_cells must be 0 to {MAX_ID_CELLS}, and 0 beside puzzle_starts, got "
                f"{self.id_cells}"
            )
        if self.prefix < 0:
            raise SettingsError(f"prefix must not be negative, got {self.prefix}")
        if self.width % (2 * self.heads):
            raise SettingsError(f"width {self.width} must be a multiple of 2 x heads {self.heads}")
        if not self.expansion * min(self.width, self.positions) * 2 / 3 > 0.5:  # so that NaN fails
            raise SettingsError(
                f"expansion must give every hidden layer a width of at least 1, got "
                f"{self.expansion} for a width of {self.width} and {self.positions} positions"
            )
        if not self.rotary_theta >= 1.0 or not self.eps > 0.0:
            raise SettingsError(
                f"rotary_theta must be at least 1 and eps above 0, got {self.rotary_theta} and "
                f"{self.eps}"
            )

    @property
    def positions(self) -> int:
        """Prefix and cells together; id cells have no position."""
        return self.prefix + self.cells

    def as_mapping(self) -> dict[str, Any]:
        """The sizes as they are stored; those of the puzzle embedding if it has several rows."""
        known = asdict(self)
        if self.puzzles == 1:
            del known["puzzles"], known["puzzle_starts"]
        if not self.id_cells:
            del known["id_cells"]
        return known


def evaluation_flops(config: TRMConfig, layers: int | None = None) -> int:
    """Floating-point operations of the matrix products in one evaluation, two per multiply-add.

    Proved by tests/model/test_reference.py::test_operations_are_counted_as_torch_counts_them.
    """
    positions, width = config.positions, config.width
    hidden = hidden_units(width, config.expansion)
    total = 2 * positions * 3 * width * hidden
    if config.token_mixing:
        total += 2 * width * 3 * positions * hidden_units(positions, config.expansion)
    else:
        total += 2 * positions * 4 * width * width + 4 * positions * positions * width
    return total * (config.layers if layers is None else layers)


class Network(nn.Module):
    """f_theta of the paper: blocks applied to the sum of its arguments."""

    def __init__(self, config: TRMConfig, layers: int, scale: float = 1.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Block(
                config.positions, config.width, config.heads, config.expansion,
                token_mixing=config.token_mixing, eps=config.eps, scale=scale,
            )
            for _ in range(layers)
        )  # fmt: skip

    def forward(
        self, a: Tensor, b: Tensor, rotary: tuple[Tensor, Tensor] | None,
        inputs: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        x = self.sum(a, b, inputs)  # inside, so that a compiler can fuse it with the first block
        for layer in self.layers:
            x = layer(x, rotary)
        return x

    def sum(self, a: Tensor, b: Tensor, inputs: Tensor | None) -> Tensor:
        """a + (b + inputs), in this order."""
        return a + (b if inputs is None else b + inputs)


class Recursive(nn.Module):
    """The parts that TRM and HRM share: embedding, initial state, heads.

    Subclasses take a `scale` of the network's initial matrices; 1 is the published start.
    `task`, `decide_above`, `decide_settled`, `import_notes`, `calibration`, `tuned`,
    `tidy_answers` and `id_cells` are those of `ModelInfo`.
    """

    cos: Tensor | None
    sin: Tensor | None
    first_answer: Tensor
    first_latent: Tensor
    position_embedding: nn.Parameter | None
    task: str = ""
    puzzle_id: int = 0  # the row of the puzzle embedding, where neither caller nor tokens say it
    puzzle_table: Tensor | None = None  # (row, number), where it is too large to be a parameter
    puzzle_names: tuple[str, ...] | None = None  # of the rows, where they are known
    decide_above: float | None = None
    decide_settled: bool = False
    calibration: Mapping[str, Any] | None = None
    tuned: Mapping[str, Any] | None = None
    tidy_answers: Callable[[Tensor], Tensor] | None = None
    read_ids: Callable[[Tensor], Tensor] | None = None  # (..., cell) -> (...), the task's

    def __init__(self, config: TRMConfig, halt_outputs: int = 1) -> None:
        super().__init__()
        self.config = config
        self.import_notes: list[str] = []
        self.embedding = nn.Parameter(torch.empty(config.vocabulary, config.width))
        truncated_normal_(self.embedding, 1.0 / math.sqrt(config.width))
        rows = (config.puzzles,) if config.puzzles > 1 else ()
        self.prefix = nn.Parameter(torch.zeros(*rows, config.prefix, config.width))
        positions = None
        if config.learned_positions:
            table = torch.empty(config.positions, config.width)
            positions = nn.Parameter(truncated_normal_(table, 1.0 / math.sqrt(config.width)))
        self.register_parameter("position_embedding", positions)
        self.token_head = linear(config.width, config.vocabulary)
        self.halt_head = linear(config.width, halt_outputs, bias=True, scale=0.0)
        nn.init.constant_(self.halt_head.bias, -5.0)
        self.register_buffer("first_answer", truncated_normal_(torch.empty(config.width), 1.0))
        self.register_buffer("first_latent", truncated_normal_(torch.empty(config.width), 1.0))
        cos = sin = None
        if config.rotary:
            head_width = config.width // config.heads
            cos, sin = rotary_table(config.positions, head_width, config.rotary_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    @property
    def cells(self) -> int:
        return self.config.cells + self.config.id_cells

    @property
    def id_cells(self) -> int:
        return self.config.id_cells

    @property
    def vocabulary(self) -> int:
        return self.config.vocabulary

    @property
    def inner_steps(self) -> int:
        return self.config.inner_steps

    @property
    def cycles(self) -> int:
        return self.config.cycles

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        if self.cos is None or self.sin is None:
            return None
        return self.cos, self.sin

    def embed(self, tokens: Tensor, puzzle_ids: Tensor | None = None) -> Tensor:
        """sqrt(width) * embedding, the prefix in front: (..., cell) -> (..., position, width).

        Learned positions are added first, and the sum shrunk by sqrt(1/2) to keep its variance.
        puzzle_ids: (...) rows of the puzzle embedding; unless given, the id cells hold them,
        `puzzle_starts` tells them from the tokens, or all are `puzzle_id`.
        """
        return self.embed_after(self.prefixes(tokens, puzzle_ids), tokens)

    def embed_after(self, prefix: Tensor, tokens: Tensor) -> Tensor:
        """`embed` with these vectors (..., prefix, width) at the prefix positions."""
        scale = math.sqrt(self.config.width)
        cells = lookup(self.embedding, tokens[..., : self.config.cells].long())
        embedded = torch.cat((prefix, cells), dim=-2)
        if self.position_embedding is not None:
            embedded = math.sqrt(0.5) * (embedded + self.position_embedding)
        return scale * embedded

    def prefixes(self, tokens: Tensor, puzzle_ids: Tensor | None = None) -> Tensor:
        """The rows of the puzzle embedding for puzzles: (..., cell) -> (..., prefix, width).

        An id beyond the table takes row 0; `tiltrm.model.puzzle_rows.require_rows` refuses it.
        """
        config, table = self.config, self.puzzle_table
        told = puzzle_ids is not None or config.id_cells > 0
        if config.puzzles == 1 and (table is None or not told):
            return self.prefix.expand(*tokens.shape[:-1], -1, -1)
        ids = (self._puzzle_ids(tokens) if puzzle_ids is None else puzzle_ids).long()
        ids = ids.where(ids < (config.puzzles if table is None else len(table)), 0)
        if table is None:
            rows = lookup(self.prefix.flatten(1), ids)
        else:
            rows = fetch_rows(table, ids).to(self.prefix.dtype)
        return cut_rows(rows, config.prefix, config.width)

    def _puzzle_ids(self, tokens: Tensor) -> Tensor:
        if self.config.id_cells:
            return ids_in_cells(tokens, self.config.id_cells)
        largest = tokens.amax(-1).long()
        if not self.config.puzzle_starts:
            return torch.full_like(largest, self.puzzle_id)
        return torch.stack([largest >= first for first in self.config.puzzle_starts]).sum(0)

    def start(self, inputs: Tensor) -> State:
        """h_0: one vector for the answer and one for the latent, the same at every position."""
        return State(self.first_answer.expand_as(inputs), self.first_latent.expand_as(inputs))

    def decode(self, answer: Tensor) -> Tensor:
        """Logits of every cell; prefix positions are dropped, id cells hold the pad id 0."""
        logits: Tensor = self.token_head(answer[..., self.config.prefix :, :])
        if not self.config.id_cells:
            return logits.float()
        pads = logits.new_full((self.config.id_cells, self.config.vocabulary), IMPOSSIBLE)
        pads[:, 0] = 0.0
        return torch.cat((logits, pads.expand(*logits.shape[:-2], -1, -1)), dim=-2).float()

    def halt_logit(self, answer: Tensor) -> Tensor:
        """The Q-head reads position 0; where it has two outputs the first is 'halt'."""
        logits: Tensor = self.halt_head(answer[..., 0, :])
        return logits[..., 0].float()


class TRM(Recursive):
    """One network serves both updates: refine is f(x + y + z), answer is f(y + z)."""

    def __init__(self, config: TRMConfig, scale: float = 1.0) -> None:
        super().__init__(config)
        self.network = Network(config, config.layers, scale)

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        latent: Tensor = self.network(state.latent, state.answer, self.rotary, inputs)
        return latent

    def answer(self, state: State) -> Tensor:
        answer: Tensor = self.network(state.answer, state.latent, self.rotary)
        return answer

    def step(self, inputs: Tensor, state: State) -> State:
        """One deterministic outer step (eqs. 1 and 2); x + y is summed once, not M times."""
        context = state.answer + inputs
        latent = state.latent
        for _ in range(self.inner_steps):
            latent = self.network(latent, context, self.rotary)
        return State(self.answer(State(state.answer, latent)), latent)
