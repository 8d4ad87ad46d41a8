"""The contract between models and the explorer: six functions, four sizes, optional knowledge."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor


class State(NamedTuple):
    """The joint state h = (y, z) of the paper (section 3)."""

    answer: Tensor  # y: (..., position, width)
    latent: Tensor  # z: (..., position, width)


class RecursiveModel(Protocol):
    """A frozen recursive reasoner. Leading dimensions are free and broadcast.

    One *evaluation* is one call of `refine` or `answer` for one puzzle and one particle.
    A model may also have the attributes of `ModelInfo`; read them with `model_info`.
    """

    @property
    def cells(self) -> int:
        """Cells of the puzzle, prefix positions not counted."""

    @property
    def vocabulary(self) -> int:
        """Token ids that `decode` tells apart, the pad id 0 among them."""

    @property
    def inner_steps(self) -> int:
        """M: updates of the latent in one outer step."""

    @property
    def cycles(self) -> int:
        """Outer steps in one supervision step, as the model was trained."""

    def embed(self, tokens: Tensor) -> Tensor:
        """x: (..., cell) ids -> (..., position, width)."""

    def start(self, inputs: Tensor) -> State:
        """The learned h_0, of the shape of `inputs`."""

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        """The next latent, f(x + y + z) (eq. 1)."""

    def answer(self, state: State) -> Tensor:
        """The next answer, f(y + z) (eq. 2)."""

    def decode(self, answer: Tensor) -> Tensor:
        """Logits per cell: (..., position, width) -> (..., cell, vocabulary), float32."""

    def halt_logit(self, answer: Tensor) -> Tensor:
        """The Q-head: (..., position, width) -> (...), float32."""


class ModelInfo(NamedTuple):
    """Optional attributes of a model, and their values for a model that lacks them."""

    task: str = ""  # a name of `tiltrm.tasks`; "": unknown
    decide_above: float | None = (
        None  # an answer with a higher halt logit stops; None: uncalibrated
    )
    decide_settled: bool = False  # whether it must also equal the answer of the step before
    import_notes: Sequence[str] = ()  # assumptions of the importer
    calibration: Mapping[str, Any] | None = None  # content of calibration.json beside the weights
    tuned: Mapping[str, Any] | None = None  # content of tuned.json beside the weights
    tidy_answers: Callable[[Tensor], Tensor] | None = None  # (..., cell) -> one form of equal ones
    id_cells: int = 0  # the last cells of a question, if they hold its puzzle id, a byte each


def model_info(model: RecursiveModel) -> ModelInfo:
    """The optional attributes of any model, with the defaults of `ModelInfo` for missing ones.

    Proved by tests/model/test_protocol.py.
    """
    names = [name for name in ModelInfo._fields if hasattr(model, name)]
    return ModelInfo(**{name: getattr(model, name) for name in names})


def step(model: RecursiveModel, inputs: Tensor, state: State) -> State:
    """One deterministic outer step: M inner updates, one answer update (eqs. 1 and 2)."""
    for _ in range(model.inner_steps):
        state = State(state.answer, model.refine(inputs, state))
    return State(model.answer(state), state.latent)


def evaluations_per_step(model: RecursiveModel) -> int:
    """Network calls of one outer step for one particle: M + 1."""
    return model.inner_steps + 1
