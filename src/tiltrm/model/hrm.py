"""The Hierarchical Reasoning Model: one network for the latent, another for the answer."""

from dataclasses import dataclass

from torch import Tensor

from tiltrm.errors import SettingsError
from tiltrm.model.base import State, step
from tiltrm.model.trm import Network, Recursive, TRMConfig


@dataclass(frozen=True)
class HRMConfig(TRMConfig):
    """Sizes of an HRM. The defaults are the public Sudoku model; `layers` counts the latent's."""

    layers: int = 4
    prefix: int = 1
    token_mixing: bool = False
    rotary: bool = True
    inner_steps: int = 2
    cycles: int = 2
    answer_layers: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answer_layers < 1:
            raise SettingsError(f"answer_layers must be at least 1, got {self.answer_layers}")


class HRM(Recursive):
    """Two networks: refine is f_L(x + y + z), answer is f_H(y + z).

    The public code runs the same sequence, `cycles` times (`inner_steps` of L, one of H).

    The Q-head has two outputs. `halt_logit` is the first one alone: it was trained to predict
    whether the answer is right, as a guide and a threshold need. HRM's own rule stops when halt >
    continue, that is, when further steps do not pay; the difference is near 0 for a hopeless state
    as well as for a solved one, so it cannot rank particles.
    Proved by tests/model/test_reference.py::test_hrm_step.
    """

    config: HRMConfig

    def __init__(self, config: HRMConfig, scale: float = 1.0) -> None:
        super().__init__(config, halt_outputs=2)
        self.latent_network = Network(config, config.layers, scale)
        self.answer_network = Network(config, config.answer_layers, scale)

    def refine(self, inputs: Tensor, state: State) -> Tensor:
        latent: Tensor = self.latent_network(state.latent, state.answer, self.rotary, inputs)
        return latent

    def answer(self, state: State) -> Tensor:
        answer: Tensor = self.answer_network(state.answer, state.latent, self.rotary)
        return answer

    def step(self, inputs: Tensor, state: State) -> State:
        """One deterministic outer step (eqs. 1 and 2)."""
        return step(self, inputs, state)
