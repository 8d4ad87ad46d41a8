"""The forward pass of TRM and HRM written out in plain float64 NumPy, from the formulas.

It shares nothing with tiltrm but the names of the tensors: a yardstick for the torch modules.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class NumpyModel:
    """A model of given sizes (`config`) and tensors (`state`, as in a state_dict)."""

    def __init__(self, config, state):
        self.config = config
        self.w = {name: tensor.detach().double().numpy() for name, tensor in state.items()}
        self.hrm = any(name.startswith("answer_network.") for name in self.w)

    def embed(self, tokens) -> Array:
        cells = self.w["embedding"][np.asarray(tokens)]
        prefix = np.broadcast_to(self.w["prefix"], (len(cells), *self.w["prefix"].shape))
        both = np.concatenate((prefix, cells), axis=1)
        if "position_embedding" in self.w:
            both = (both + self.w["position_embedding"]) / np.sqrt(2)
        return np.sqrt(self.config.width) * both

    def start(self, inputs: Array) -> tuple[Array, Array]:
        answer = np.zeros_like(inputs) + self.w["first_answer"]
        return answer, np.zeros_like(inputs) + self.w["first_latent"]

    def step(self, inputs: Array, answer: Array, latent: Array) -> tuple[Array, Array]:
        """One outer step: inner_steps updates of the latent, one of the answer."""
        low, high = ("latent_network", "answer_network") if self.hrm else ("network", "network")
        for _ in range(self.config.inner_steps):
            latent = self.network(low, latent + answer + inputs)
        return self.network(high, answer + latent), latent

    def decode(self, answer: Array) -> Array:
        return answer[:, self.config.prefix :] @ self.w["token_head.weight"].T

    def halt(self, answer: Array) -> Array:
        return answer[:, 0] @ self.w["halt_head.weight"][0] + self.w["halt_head.bias"][0]

    def network(self, name: str, x: Array) -> Array:
        layers = {key.split(".")[2] for key in self.w if key.startswith(f"{name}.layers.")}
        for layer in sorted(layers):
            x = self.block(f"{name}.layers.{layer}.", x)
        return x

    def block(self, at: str, x: Array) -> Array:
        if self.config.token_mixing:
            turned = np.swapaxes(x, 1, 2)
            x = np.swapaxes(self.norm(turned + self.swiglu(f"{at}mlp_t.", turned)), 1, 2)
        else:
            x = self.norm(x + self.attention(f"{at}self_attn.", x))
        return self.norm(x + self.swiglu(f"{at}mlp.", x))

    def norm(self, x: Array) -> Array:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config.eps)

    def swiglu(self, at: str, x: Array) -> Array:
        both = x @ self.w[f"{at}gate_up_proj.weight"].T
        half = both.shape[-1] // 2
        gate, up = both[..., :half], both[..., half:]
        return (gate / (1 + np.exp(-gate)) * up) @ self.w[f"{at}down_proj.weight"].T

    def attention(self, at: str, x: Array) -> Array:
        """Head by head, puzzle by puzzle; rotary positions as a product of complex numbers."""
        heads, size = self.config.heads, x.shape[-1] // self.config.heads
        qkv = x @ self.w[f"{at}qkv_proj.weight"].T
        mixed = np.zeros_like(x)
        for puzzle in range(len(x)):
            for head in range(heads):
                query, key, value = (
                    qkv[puzzle, :, (part * heads + head) * size : (part * heads + head + 1) * size]
                    for part in range(3)
                )
                if self.config.rotary:
                    query, key = self.turn(query), self.turn(key)
                score = np.exp(query @ key.T / np.sqrt(size))
                score /= score.sum(-1, keepdims=True)
                mixed[puzzle, :, head * size : (head + 1) * size] = score @ value
        return mixed @ self.w[f"{at}o_proj.weight"].T

    def turn(self, x: Array) -> Array:
        """The pair (i, i + half) at position p is turned by p * theta^(-i / half)."""
        half = x.shape[-1] // 2
        angle = np.outer(np.arange(len(x)), self.config.rotary_theta ** (-np.arange(half) / half))
        turned = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
        return np.concatenate((turned.real, turned.imag), axis=-1)
