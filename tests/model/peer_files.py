"""Files as the three peers write them, made from a model of ours by names written out by hand."""

import torch

TRM_NAMES = {
    "embedding": "embed_tokens.embedding_weight",
    "position_embedding": "embed_pos.embedding_weight",
    "token_head.weight": "lm_head.weight",
    "halt_head.weight": "q_head.weight",
    "halt_head.bias": "q_head.bias",
    "first_answer": "H_init",
    "first_latent": "L_init",
    "network.": "L_level.",
    "latent_network.": "L_level.",
    "answer_network.": "H_level.",
}
NANO_NAMES = {
    **TRM_NAMES,
    "embedding": "input_embedding.embedding_weight",
    "first_answer": "z_H_init",
    "first_latent": "z_L_init",
    "network.": "lenet.",
}


def peer_state(model, names=None, wrapper=""):
    """A peer's state_dict: the prefix as a puzzle embedding of one identifier."""
    names, state = names or TRM_NAMES, {}
    for name, tensor in model.state_dict().items():
        if name != "prefix":
            ours = next(key for key in names if name == key or name.startswith(key))
            state[wrapper + names[ours] + name.removeprefix(ours)] = tensor.clone()
    if model.config.prefix:
        state[f"{wrapper}puzzle_emb.weights"] = model.prefix.detach().reshape(1, -1).clone()
    return state


def trm_settings(config, **more):
    """The constructor's configuration of TinyRecursiveModels or HRM."""
    ways = (config.rotary and "rope") or (config.learned_positions and "learned") or "none"
    return {
        "seq_len": config.cells, "vocab_size": config.vocabulary, "hidden_size": config.width,
        "num_heads": config.heads, "expansion": config.expansion, "L_layers": config.layers,
        "H_layers": getattr(config, "answer_layers", 0), "H_cycles": config.cycles,
        "L_cycles": config.inner_steps, "mlp_t": config.token_mixing, "pos_encodings": ways,
        "puzzle_emb_len": config.prefix, "puzzle_emb_ndim": config.prefix * config.width,
        "num_puzzle_identifiers": 1, "rms_norm_eps": config.eps, "rope_theta": 10000.0, **more,
    }  # fmt: skip


def nano_file(model, **more):
    """A Lightning checkpoint of nano-trm."""
    config = model.config
    settings = {
        "hidden_size": config.width, "num_layers": config.layers, "num_heads": config.heads,
        "H_cycles": config.cycles, "L_cycles": config.inner_steps, "seq_len": config.cells,
        "ffn_expansion": config.expansion, "puzzle_emb_dim": config.prefix * config.width,
        "puzzle_emb_len": config.prefix, "pos_emb_type": "1d" if config.rotary else None,
        "use_mlp_t": config.token_mixing, "vocab_size": config.vocabulary, "rope_theta": 10000,
    }  # fmt: skip
    return {
        "state_dict": peer_state(model, NANO_NAMES), "hyper_parameters": settings, "epoch": 1,
        "pytorch-lightning_version": "2.6.6", **more,
    }  # fmt: skip


def write(path, payload):
    torch.save(payload, path)
    return path


def assert_same(got, expected, puzzles=2, sizes=True):
    """Two models of the same sizes and, to the bit, the same outputs after an outer step."""
    assert got.config == expected.config or not sizes
    generator = torch.Generator().manual_seed(5)
    config = expected.config
    tokens = torch.randint(config.vocabulary, (puzzles, config.cells), generator=generator)
    states = [model.step(model.embed(tokens), model.start(model.embed(tokens)))
              for model in (got, expected)]  # fmt: skip
    assert torch.equal(states[0].answer, states[1].answer)
    assert torch.equal(got.decode(states[0].answer), expected.decode(states[1].answer))
    assert torch.equal(got.halt_logit(states[0].answer), expected.halt_logit(states[1].answer))
