"""The three codes whose checkpoints are read, and their names for each tensor and setting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tiltrm.errors import CheckpointError
from tiltrm.model.build import few

IGNORED = ("cos_cached", "sin_cached", "inv_freq", "local_weights", "local_ids")  # not weights
ALIASES = {"puzzle_emb.embedding.weight": "puzzle_emb.weights"}  # an older nano-trm's name


@dataclass(frozen=True)
class PeerFormat:
    """Names of one code. Mappings go from tiltrm's name to the peer's."""

    name: str
    kind: str  # of model: trm or hrm
    mark: str  # begins the name of some tensor; the first peer whose mark is found is taken
    tensors: Mapping[str, str]
    networks: Mapping[str, str]
    settings: Mapping[str, tuple[str, ...]]
    prefix: int | None  # its default length of the puzzle embedding; None: as long as it needs

    def ours(self, name: str) -> str:
        """tiltrm's name of the peer's tensor; where there is none, a name that fits no model."""
        name = ALIASES.get(name, name)
        for ours, theirs in self.tensors.items():
            if name == theirs:
                return ours
        for ours, theirs in self.networks.items():
            if name.startswith(f"{theirs}.layers."):
                return ours + name.removeprefix(theirs)
        return f"?{name}"

    def theirs(self, name: str) -> str:
        """The peer's name of tiltrm's tensor."""
        for ours, theirs in self.networks.items():
            if name.startswith(f"{ours}.layers."):
                return theirs + name.removeprefix(ours)
        return self.tensors.get(name, name)


SETTINGS: Mapping[str, tuple[str, ...]] = {
    "cells": ("seq_len",),
    "vocabulary": ("vocab_size",),
    "width": ("hidden_size",),
    "heads": ("num_heads",),
    "layers": ("L_layers",),
    "expansion": ("expansion",),
    "token_mixing": ("mlp_t",),
    "prefix": ("puzzle_emb_len",),
    "prefix_numbers": ("puzzle_emb_ndim",),
    "positions": ("pos_encodings",),
    "rotary_theta": ("rope_theta",),
    "inner_steps": ("L_cycles",),
    "cycles": ("H_cycles",),
    "eps": ("rms_norm_eps",),
}
TENSORS: Mapping[str, str] = {
    "embedding": "embed_tokens.embedding_weight",
    "prefix": "puzzle_emb.weights",
    "position_embedding": "embed_pos.embedding_weight",
    "token_head.weight": "lm_head.weight",
    "halt_head.weight": "q_head.weight",
    "halt_head.bias": "q_head.bias",
    "first_answer": "H_init",
    "first_latent": "L_init",
}
HRM_CODE = PeerFormat(
    name="HRM",
    kind="hrm",
    mark="H_level.",
    tensors=TENSORS,
    networks={"latent_network": "L_level", "answer_network": "H_level"},
    settings={**SETTINGS, "answer_layers": ("H_layers",)},
    prefix=None,
)
NANO_TRM = PeerFormat(
    name="nano-trm",
    kind="trm",
    mark="lenet.",
    tensors={
        **TENSORS,
        "embedding": "input_embedding.embedding_weight",
        "first_answer": "z_H_init",
        "first_latent": "z_L_init",
    },
    networks={"network": "lenet"},
    settings={
        **SETTINGS,
        "layers": ("num_layers",),
        "expansion": ("ffn_expansion",),
        "token_mixing": ("use_mlp_t", "use_mlp"),
        "prefix_numbers": ("puzzle_emb_dim",),
        "positions": ("pos_emb_type",),
    },
    prefix=16,
)
TINY_RECURSIVE_MODELS = PeerFormat(
    name="TinyRecursiveModels",
    kind="trm",
    mark="L_level.",
    tensors=TENSORS,
    networks={"network": "L_level"},
    settings=SETTINGS,
    prefix=16,
)
PEERS = (HRM_CODE, NANO_TRM, TINY_RECURSIVE_MODELS)  # HRM first: it has an L_level too


def recognise(names: Iterable[str], source: str) -> PeerFormat:
    """The code that wrote tensors of these plain names."""
    held = sorted(names)
    for peer in PEERS:
        if any(name.startswith(peer.mark) for name in held):
            return peer
    expected = ", ".join(f"{peer.mark}layers (of {peer.name})" for peer in PEERS)
    raise CheckpointError(
        f"expected tensors named {expected} in {source}, got {few(held)}, none of which was "
        "understood; give a checkpoint of one of these codes"
    )
