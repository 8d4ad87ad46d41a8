"""Peers' checkpoints in every variant: what is loaded, inferred, noted, refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peer_files import assert_same, nano_file, peer_state, trm_settings, write
from safetensors.torch import save_file

from tiltrm.errors import CheckpointError, DeviceError, SettingsError
from tiltrm.model import HRM, TRM, HRMConfig, TRMConfig, describe, load
from tiltrm.model.importers.files import parse_yaml

SMALL = {"cells": 9, "vocabulary": 5, "width": 32, "heads": 2, "inner_steps": 2, "cycles": 2}
MLP = TRMConfig(**SMALL, prefix=3)
ATTENTION = TRMConfig(**SMALL, prefix=2, token_mixing=False, rotary=True)
LEARNED = TRMConfig(**SMALL, prefix=2, token_mixing=False, learned_positions=True)
TWO = HRMConfig(**SMALL, prefix=1, layers=2, answer_layers=1)


def make(config):
    torch.manual_seed(1)
    model = HRM(config) if isinstance(config, HRMConfig) else TRM(config)
    for parameter in (model.prefix, model.halt_head.weight, model.halt_head.bias):
        torch.nn.init.normal_(parameter)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize(
    "wrapper",
    ["", "model.", "inner.", "model.inner.", "_orig_mod.model.inner.", "model._orig_mod.inner.",
     "_orig_mod.", "module._orig_mod.model.inner."],
)  # fmt: skip
@pytest.mark.parametrize("config", [MLP, TWO])
def test_wrapped_names(tmp_path, wrapper, config):
    model = make(config)
    path = write(tmp_path / "step_1", peer_state(model, wrapper=wrapper))
    assert_same(load(path, config=trm_settings(config)), model)


@pytest.mark.parametrize("config", [MLP, ATTENTION, LEARNED, TWO])
def test_every_variant_loads(tmp_path, config):
    model = make(config)
    path = write(tmp_path / "step_1", peer_state(model, wrapper="_orig_mod.model.inner."))
    got = load(path, config=trm_settings(config))
    assert_same(got, model)
    assert not got.training
    assert not any(parameter.requires_grad for parameter in got.parameters())
    save_file(peer_state(model), tmp_path / "peer.safetensors")
    assert_same(load(tmp_path / "peer.safetensors", config=trm_settings(config)), model)


@pytest.mark.parametrize("width", [8, 24, 100])
@pytest.mark.parametrize("layers", [1, 5])
def test_any_width_and_depth(tmp_path, width, layers):
    """Of all three codes, with the sizes left to the tensors where these show them."""
    shown = ("seq_len", "num_heads", "H_cycles", "L_cycles", "puzzle_emb_len", "pos_encodings")
    for usual in (MLP, ATTENTION, TWO):
        config = replace(usual, width=width, layers=layers)
        if usual is TWO:
            config = replace(config, answer_layers=3)
        model = make(config)
        given = {name: value for name, value in trm_settings(config).items() if name in shown}
        assert_same(load(write(tmp_path / "step_1", peer_state(model)), config=given), model)
        if usual is not TWO:
            assert_same(load(write(tmp_path / "last.ckpt", nano_file(model))), model)


@pytest.mark.parametrize(
    "config", [MLP, ATTENTION, replace(MLP, prefix=0), replace(ATTENTION, rotary=False)]
)
def test_nano_trm(tmp_path, config):
    """Its settings are inside; the output folder among them is a path, which is no code."""
    model = make(config)
    payload = nano_file(model)
    payload["hyper_parameters"]["output_dir"] = Path("runs/1")
    assert_same(load(write(tmp_path / "last.ckpt", payload)), model)


def test_older_nano_trm_names(tmp_path):
    model = make(MLP)
    payload = nano_file(model)
    state, settings = payload["state_dict"], payload["hyper_parameters"]
    state["puzzle_emb.embedding.weight"] = state.pop("puzzle_emb.weights")
    settings["use_mlp"] = settings.pop("use_mlp_t")
    assert_same(load(write(tmp_path / "last.ckpt", payload)), model)


@pytest.mark.parametrize("where", ["callback", "another callback", "callback with a state",
                                   "helper", "shadow"])  # fmt: skip
def test_averaged_weights_are_preferred(tmp_path, where):
    """The average holds what is trained; the initial state and puzzle embedding stay."""
    model, average = make(MLP), make(MLP)
    for parameter in average.parameters():
        if parameter is not average.prefix:
            parameter.mul_(0.5)
    untrained = ("_init", "puzzle_emb.weights")
    if "callback" in where:
        kept = nano_file(average)["state_dict"]
        ema = {name: tensor for name, tensor in kept.items() if not name.endswith(untrained)}
        kept = {"decay": 0.999, "ema_weights": ema}
        if where == "another callback":  # whose name does not say what it keeps
            kept = {"weights": ema}
        if where == "callback with a state":
            kept = {"state": {"model": ema, "decay": 0.999}}
        name = "EMACallback" if where == "callback" else "WeightAveraging"
        payload = nano_file(model, callbacks={name: kept})
    else:
        kept = peer_state(average, wrapper="_orig_mod.model.inner.")
        ema = {name: tensor for name, tensor in kept.items() if not name.endswith(untrained)}
        shadow = {"mu": 0.999, "shadow": ema} if where == "shadow" else ema
        weights = peer_state(model, wrapper="_orig_mod.model.inner.")
        payload = {"model": weights, "optimizers": [], "step": 7, "ema_helper": shadow}
    got = load(write(tmp_path / "file", payload), config=trm_settings(MLP) | {"use_mlp_t": True})
    assert_same(got, average)
    assert any("averaged weights" in note for note in got.import_notes)


@pytest.mark.parametrize("whole", [True, False])
def test_an_average_kept_as_a_list_is_in_the_order_of_the_weights(tmp_path, whole):
    """Of the whole state_dict, or of the trained tensors alone."""
    model, average = make(MLP), make(MLP)
    for parameter in average.parameters():
        if parameter is not average.prefix:
            parameter.mul_(0.5)
    kept = nano_file(average)["state_dict"]
    untrained = ("_init", "puzzle_emb.weights")
    ema = [tensor for name, tensor in kept.items() if whole or not name.endswith(untrained)]
    payload = nano_file(model, callbacks={"EMA": {"cur_step": 7, "ema_weights": ema}})
    got = load(write(tmp_path / "file", payload))
    assert_same(got, average)
    assert any("averaged weights (EMA) of callbacks/EMA/ema_w" in note for note in got.import_notes)
    payload = nano_file(model, callbacks={"EMA": {"cur_step": 7, "ema_weights": ema[:-1]}})
    got = load(write(tmp_path / "file", payload))
    assert_same(got, model)
    assert any("raw weights are used" in note for note in got.import_notes)


def test_weights_that_lightning_averaged_are_the_weights(tmp_path):
    """Its callback stores the average as the state_dict, and the raw weights beside it."""
    model, average = make(MLP), make(MLP)
    average.embedding.mul_(0.5)
    payload = nano_file(average, current_model_state=nano_file(model)["state_dict"],
                        averaging_state={"n_averaged": torch.tensor(9)})  # fmt: skip
    assert_same(load(write(tmp_path / "file", payload)), average)


@pytest.mark.parametrize("shape", [(2,), (5, 32)])
def test_average_of_a_part_is_left_and_noted(tmp_path, shape):
    """One weight of another shape, or of the right one: half an average would be no model."""
    model = make(MLP)
    ema = {"lm_head.weight": torch.ones(shape)}
    payload = nano_file(model, callbacks={"EMACallback": {"ema": ema}})
    got = load(write(tmp_path / "last.ckpt", payload))
    assert_same(got, model)
    assert any("raw weights are used" in note for note in got.import_notes)


def test_given_settings_win_over_those_inside(tmp_path):
    path = write(tmp_path / "last.ckpt", nano_file(make(MLP)))
    got = load(path, config={"L_cycles": 5})
    assert got.config == replace(MLP, inner_steps=5)


def test_configuration_beside_the_file(tmp_path):
    model = make(ATTENTION)
    path = write(tmp_path / "step_1", peer_state(model))
    (tmp_path / "all_config.yaml").write_text(yaml_of(trm_settings(ATTENTION)))
    assert_same(load(path), model)
    (tmp_path / "config.json").write_text(json.dumps(trm_settings(ATTENTION, L_cycles=5)))
    assert load(path).inner_steps == 5
    assert_same(load(path, config=tmp_path / "all_config.yaml"), model)


def yaml_of(settings):
    arch = "".join(f"  {name}: {value}\n" for name, value in settings.items())
    return (
        f"arch:\n{arch}  loss:\n    name: losses@ACTLossHead\n    L_cycles: 99\n  name: trm\n"
        "data_paths:\n- data/sudoku\nlr: 1.0e-04\n"
    )


@pytest.mark.parametrize("section", ["arch", "model"])
def test_settings_in_the_section_of_the_network(tmp_path, section):
    model = make(ATTENTION)
    path = write(tmp_path / "step_1", peer_state(model))
    nested = {section: trm_settings(ATTENTION), "L_cycles": 99, "lr": 1e-4}
    assert_same(load(path, config=nested), model)


def test_buffers_that_are_no_weights_are_passed_over(tmp_path):
    model = make(ATTENTION)
    state = peer_state(model, wrapper="model.inner.")
    for name in ("rotary_emb.cos_cached", "rotary_emb.sin_cached", "rotary_emb.inv_freq"):
        state[f"model.inner.{name}"] = torch.zeros(11, 16)
    for name in ("local_weights", "local_ids"):
        state[f"model.inner.puzzle_emb.{name}"] = torch.zeros(7, 64)
    path = write(tmp_path / "step_1", state)
    assert_same(load(path, config=trm_settings(ATTENTION)), model)


def test_plain_yaml():
    text = "a: 1 # one\nb: 1.0e-05\nc:\n  d: 'x: y'\n  e: null\nf: True\n- g\nh: [1, 2]\ni: text\n"
    assert parse_yaml(text) == {
        "a": 1, "b": 1e-5, "c": {"d": "x: y", "e": None}, "f": True, "h": "[1, 2]", "i": "text",
    }  # fmt: skip


SUDOKU = {"width": 128, "heads": 2}
MAZE = {"width": 128, "heads": 2, "cells": 900, "vocabulary": 6, "inner_steps": 4}
ATTENDING = {"token_mixing": False, "rotary": True}


@pytest.mark.parametrize(
    ("config", "given", "assumed"),
    [
        (TRMConfig(**SUDOKU, prefix=16), {}, ["H_cycles 3", "L_cycles 6"]),
        (TRMConfig(**SUDOKU, prefix=0, expansion=7.0), {}, ["H_cycles 3", "L_cycles 6"]),
        (TRMConfig(**MAZE, prefix=0), {}, ["H_cycles 3", "L_cycles 4"]),
        (
            TRMConfig(**MAZE, **ATTENDING, prefix=16), {"num_heads": 2, "seq_len": 900},
            ["puzzle_emb_len 16", "pos_encodings rope", "H_cycles 3", "L_cycles 4"],
        ),
        (
            HRMConfig(**SUDOKU, layers=2, answer_layers=3), {"num_heads": 2, "seq_len": 81},
            ["pos_encodings rope", "H_cycles 2", "L_cycles 2"],
        ),
        (
            TRMConfig(**SUDOKU, **ATTENDING, prefix=20), {"num_heads": 2, "seq_len": 81},
            ["puzzle_emb_len 20", "pos_encodings rope", "H_cycles 3", "L_cycles 6"],
        ),
    ],
)  # fmt: skip
def test_sizes_are_inferred_from_the_tensors(tmp_path, config, given, assumed):
    """Settings that neither the tensors nor `config=` show get the published value and a note."""
    got = load(write(tmp_path / "step_1", peer_state(make(config))), config=given or None)
    assert got.config == config
    assert got.task == ("maze" if config.cells == 900 else "sudoku")
    notes = [note.split(" assumed")[0] for note in got.import_notes if " assumed" in note]
    assert notes == assumed
    assert all(note in describe(got) for note in got.import_notes)


@pytest.mark.parametrize(
    ("config", "given", "missing"),
    [
        (TRMConfig(**MAZE, **ATTENDING, prefix=16), {}, "seq_len and num_heads"),
        (HRMConfig(**SUDOKU), {}, "seq_len and num_heads"),
        (TRMConfig(**SUDOKU, **ATTENDING, prefix=16), {"seq_len": 81}, "num_heads"),
        (TRMConfig(**SUDOKU, **ATTENDING, prefix=16), {"num_heads": 2}, "seq_len"),
        (replace(LEARNED, prefix=0), {}, "num_heads"),
        # 116 positions: 100 cells and 16 of the puzzle embedding, or 81 and 35, or others
        (TRMConfig(**SUDOKU, cells=100, prefix=16), {}, "seq_len"),
        (TRMConfig(**SUDOKU, cells=25, vocabulary=9, prefix=16), {}, "seq_len"),
    ],
)
def test_sizes_that_the_tensors_do_not_show_are_asked_for(tmp_path, config, given, missing):
    """A wrong number of cells or heads gives a model that loads and thinks differently."""
    path = write(tmp_path / "step_1", peer_state(make(config)))
    with pytest.raises(CheckpointError, match=rf"expected {missing} in .*--config") as caught:
        load(path, config=given or None)
    assert "config= in Python" in str(caught.value)


@pytest.mark.parametrize("config", [ATTENTION, TWO])
def test_numbers_that_leave_no_trace_in_the_tensors_are_taken_from_the_settings(tmp_path, config):
    """Of another rotary base or epsilon the file looks the same, and thinks differently."""
    config = replace(config, rotary_theta=50.0, eps=0.03)
    model = make(config)
    assert_same(
        load(
            write(tmp_path / "step_1", peer_state(model)),
            config=trm_settings(config, rope_theta=50.0),
        ),
        model,
    )
    if not isinstance(config, HRMConfig):
        payload = nano_file(model)
        payload["hyper_parameters"] |= {"rope_theta": 50, "rms_norm_eps": 0.03}
        assert_same(load(write(tmp_path / "last.ckpt", payload)), model)


def test_an_expansion_of_any_size_is_found(tmp_path):
    """Hidden widths are multiples of 256, so several expansions give the same tensors."""
    model = make(TRMConfig(width=128, heads=2, prefix=0, expansion=40.0))
    got = load(write(tmp_path / "step_1", peer_state(model)))
    assert_same(got, model, sizes=False)


@pytest.mark.parametrize("given", [{}, {"puzzle_emb_len": 16}, {"seq_len": 25}])
def test_learned_positions_show_the_cells(tmp_path, given):
    """Alone where there is no puzzle embedding, else with its length or the number of cells."""
    config = replace(LEARNED, cells=25, vocabulary=9, cycles=3, inner_steps=6)
    config = replace(config, prefix=16 if given else 0)
    path = write(tmp_path / "step_1", peer_state(make(config)))
    assert load(path, config={"num_heads": 2, **given}).config == config


def test_puzzle_embedding_is_padded_and_its_blank_row_used(tmp_path):
    """3 positions of width 32 from 40 numbers: the rest is zero, as the peers pad it."""
    model = make(MLP)
    state = peer_state(model)
    blank, other = torch.randn(2, 40)
    state["puzzle_emb.weights"] = torch.stack((blank, other, other))
    settings = trm_settings(MLP, puzzle_emb_ndim=40)
    got = load(write(tmp_path / "step_1", state), config=settings)
    assert torch.equal(got.prefix[0].flatten(), torch.cat((blank, torch.zeros(56))))
    assert any("3 puzzle ids" in note for note in got.import_notes)


def test_halting_output_is_the_first_of_two(tmp_path):
    model = make(MLP)
    state = peer_state(model)
    state["q_head.weight"] = torch.cat((model.halt_head.weight, torch.full((1, 32), 9.0)))
    state["q_head.bias"] = torch.cat((model.halt_head.bias, torch.full((1,), 9.0)))
    path = write(tmp_path / "step_1", state)
    assert_same(load(path, config=trm_settings(MLP)), model)
    got = load(path, config=trm_settings(MLP, no_ACT_continue=False))
    assert any("no_ACT_continue" in note for note in got.import_notes)


def test_stored_bfloat16_is_widened(tmp_path):
    model = make(MLP).to(torch.bfloat16)
    path = write(tmp_path / "step_1", peer_state(model))
    got = load(path, config=trm_settings(MLP))
    assert got.embedding.dtype == torch.float32
    assert_same(got, model.float())
    assert load(path, config=trm_settings(MLP), dtype=torch.bfloat16).prefix.dtype == torch.bfloat16


def test_every_wrong_tensor_is_named(tmp_path):
    state = peer_state(make(MLP), wrapper="model.inner.")
    del state["model.inner.H_init"], state["model.inner.L_level.layers.1.mlp.down_proj.weight"]
    state["model.inner.lm_head.weight"] = torch.zeros(4, 32)
    state["model.inner.q_head.bias"] = torch.zeros(3)
    state["model.inner.gate.weight"] = torch.zeros(2, 2)
    state["model.inner.embedding"] = torch.zeros(5, 32)  # our own name is no name of theirs
    state["model.inner.L_init"] = torch.zeros(32, dtype=torch.int64)
    with pytest.raises(CheckpointError) as caught:
        load(write(tmp_path / "step_1", state), config=trm_settings(MLP))
    assert str(caught.value).split(": ", 1)[1] == (
        "missing: H_init (32,), L_level.layers.1.mlp.down_proj.weight (32, 256); "
        "unexpected: model.inner.embedding (5, 32), model.inner.gate.weight (2, 2); "
        "misshapen: model.inner.lm_head.weight (expected (5, 32), got (4, 32)), "
        "model.inner.q_head.bias (expected (1,), got (3,)); "
        "not plain floating-point: model.inner.L_init (torch.int64, torch.strided, cpu); "
        "check the configuration or take the file it belongs to"
    )


@pytest.mark.parametrize(
    "settings",
    [{"hidden_size": 64}, {"L_layers": 3}, {"seq_len": 10}, {"mlp_t": False}, {"expansion": 40},
     {"puzzle_emb_ndim": 0}, {"pos_encodings": "learned"}, {"vocab_size": 6}],
)  # fmt: skip
def test_a_configuration_of_another_model_is_refused(tmp_path, settings):
    path = write(tmp_path / "step_1", peer_state(make(MLP)))
    with pytest.raises(CheckpointError, match=r"missing|misshapen|unexpected"):
        load(path, config=trm_settings(MLP) | settings)


def test_missing_puzzle_embedding_is_not_made_up(tmp_path):
    state = peer_state(make(MLP))
    del state["puzzle_emb.weights"]
    with pytest.raises(CheckpointError, match=r"missing: puzzle_emb.weights \(3, 32\);"):
        load(write(tmp_path / "step_1", state), config=trm_settings(MLP))


def test_two_models_in_one_file(tmp_path):
    state = peer_state(make(MLP)) | peer_state(make(MLP), wrapper="model.inner.")
    with pytest.raises(CheckpointError, match="expected one tensor"):
        load(write(tmp_path / "step_1", state))


def test_foreign_tensors(tmp_path):
    path = write(tmp_path / "step_1", {"conv.weight": torch.zeros(3)})
    with pytest.raises(CheckpointError, match=r"got conv\.weight, none of which was understood;"):
        load(path)
    many = {f"block.{number:02}.weight": torch.zeros(3) for number in range(20)}
    with pytest.raises(CheckpointError, match=r"got block\.00.*block\.11\.weight and 8 more, none"):
        load(write(tmp_path / "step_2", many))


def test_names_that_a_known_code_does_not_use_are_named(tmp_path):
    """A gate of another attention, a second network: which tensors were not understood."""
    state = peer_state(make(MLP))
    state |= {f"gate.{number:02}.weight": torch.zeros(2, 2) for number in range(15)}
    message = r"unexpected: gate\.00\.weight \(2, 2\), .*gate\.11\.weight \(2, 2\) and 3 more"
    with pytest.raises(CheckpointError, match=message):
        load(write(tmp_path / "step_1", state), config=trm_settings(MLP))


def test_two_dimensional_rotary_is_refused(tmp_path):
    payload = nano_file(make(ATTENTION))
    payload["hyper_parameters"]["pos_emb_type"] = "2d"
    with pytest.raises(CheckpointError, match=r"pos_emb_type must be one of .* got 2d"):
        load(write(tmp_path / "last.ckpt", payload))


def test_unused_settings_are_noted(tmp_path):
    path = write(tmp_path / "step_1", peer_state(make(MLP)))
    got = load(path, config=trm_settings(MLP, num_head=3))
    assert any("num_head" in note and "no effect" in note for note in got.import_notes)


def test_loading_leaves_the_global_random_state(tmp_path):
    path = write(tmp_path / "step_1", peer_state(make(ATTENTION)))
    before = torch.get_rng_state()
    load(path, config=trm_settings(ATTENTION))
    assert torch.equal(torch.get_rng_state(), before)


def test_devices_and_dtypes(tmp_path):
    path = write(tmp_path / "step_1", peer_state(make(MLP)))
    with pytest.raises(DeviceError, match="'abacus'"):
        load(path, device="abacus")
    with pytest.raises(SettingsError, match=r"got torch.int32"):
        load(path, dtype=torch.int32)
