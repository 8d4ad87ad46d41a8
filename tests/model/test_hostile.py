"""Broken, foreign and malicious files: an error meant for the user, and no code run."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from peer_files import nano_file, peer_state, trm_settings, write

from tiltrm.errors import CheckpointError, SettingsError
from tiltrm.model import TRM, TRMConfig, load, save

CONFIG = TRMConfig(cells=9, vocabulary=5, width=32, heads=2, prefix=3, inner_steps=2, cycles=2)
MEANT = (CheckpointError, SettingsError)
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def attempt(path, **arguments):
    """Loads, or fails with an error meant for the user, in one line."""
    message = ""
    try:
        load(path, **arguments)
    except MEANT as error:
        message = str(error)
    assert "\n" not in message


def saved(payload):
    buffer = io.BytesIO()
    torch.save(payload, buffer)
    return buffer.getvalue()


torch.manual_seed(0)
MODEL = TRM(CONFIG)
PEER = saved(peer_state(MODEL, wrapper="_orig_mod.model.inner."))
NANO = saved(nano_file(MODEL))


@FEW
@given(data=st.binary(max_size=300), name=st.sampled_from(["step_1", "a.ckpt", "a.safetensors"]))
@example(data=b"", name="step_1")
@example(data=b"\x80\x02}.", name="step_1")
@example(data=b"PK\x03\x04", name="a.ckpt")
@example(data=b"\xff" * 8 + b"{}", name="a.safetensors")
@example(data=(2).to_bytes(8, "little") + b"{}", name="a.safetensors")
def test_random_bytes(tmp_path, data, name):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CheckpointError):
        load(tmp_path / name)


@FEW
@given(kept=st.floats(0, 0.999), which=st.sampled_from([PEER, NANO]))
def test_truncated(tmp_path, kept, which):
    (tmp_path / "step_1").write_bytes(which[: int(kept * len(which))])
    with pytest.raises(CheckpointError):
        load(tmp_path / "step_1", config=trm_settings(CONFIG))


@FEW
@given(at=st.integers(0, len(NANO) - 1), value=st.integers(0, 255))
def test_one_changed_byte(tmp_path, at, value):
    data = bytearray(NANO)
    data[at] = value
    (tmp_path / "a.ckpt").write_bytes(data)
    attempt(tmp_path / "a.ckpt")


@FEW
@given(
    names=st.lists(st.from_regex(r"[a-z./]{0,12}[a-z]", fullmatch=True), max_size=4),
    data=st.binary(max_size=50),
)
@example(names=["archive/data.pkl", "archive/version"], data=b"\x80\x02}.")
def test_any_zip(tmp_path, names, data):
    with zipfile.ZipFile(tmp_path / "step_1", "w") as archive:
        for name in dict.fromkeys(names):
            archive.writestr(name, data)
    with pytest.raises(CheckpointError):
        load(tmp_path / "step_1")


class Bomb:
    """Writes a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (Path(self.path), "run")


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_is_not_run(tmp_path, protocol):
    mark = tmp_path / "mark"
    (tmp_path / "plain").write_bytes(pickle.dumps(Bomb(mark), protocol))
    buffer = io.BytesIO()
    torch.save({"state_dict": Bomb(mark)}, buffer, pickle_protocol=max(2, protocol))
    (tmp_path / "zipped").write_bytes(buffer.getvalue())
    for name in ("plain", "zipped"):
        with pytest.raises(CheckpointError, match="holds code"):
            load(tmp_path / name)
    assert not mark.exists()


@pytest.mark.parametrize(
    "payload",
    [None, 3, [torch.zeros(2)], {}, {"a": 1}, {"state_dict": 4}, {"state_dict": {}}, MODEL,
     {1: torch.zeros(2)}, {"L_level.layers.0.x": torch.zeros(2)}, {"lenet.": torch.zeros(())},
     {"H_level.layers.9999.a": torch.zeros(2), "H_init": torch.zeros(4)},
     {"L_level.layers.x.a": torch.zeros(2, 2), "embed_tokens.embedding_weight": torch.zeros(5)}],
)  # fmt: skip
def test_files_of_something_else(tmp_path, payload):
    with pytest.raises(MEANT):
        load(write(tmp_path / "step_1", payload))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars | st.integers(-(10**400), 10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@FEW
@given(
    changes=st.dictionaries(
        st.sampled_from([*trm_settings(CONFIG), "arch", "model", "no_ACT_continue", "extra"]),
        values, max_size=3,
    ),
    inside=st.booleans(),
)  # fmt: skip
@example(changes={"hidden_size": 10**9, "num_heads": None}, inside=False)
@example(changes={"L_layers": 10**9}, inside=False)
@example(changes={"seq_len": 10**9, "mlp_t": False}, inside=False)
@example(changes={"expansion": float("inf")}, inside=False)
@example(changes={"arch": {"hidden_size": True}}, inside=True)
def test_settings_of_any_type(tmp_path, changes, inside):
    path = tmp_path / "step_1"
    path.write_bytes(PEER)
    config = trm_settings(CONFIG) | changes
    if inside:
        payload = nano_file(MODEL)
        payload["hyper_parameters"] |= json.loads(json.dumps(changes, default=str))
        attempt(write(tmp_path / "a.ckpt", payload))
    attempt(path, config=config)


@FEW
@given(text=st.text(max_size=80) | values.map(json.dumps), name=st.sampled_from(["json", "yaml"]))
@example(text='{"hidden_size": ' + "9" * 5000 + "}", name="json")
@example(text="[" * 20000, name="json")
def test_configuration_files_of_any_text(tmp_path, text, name):
    path = tmp_path / "step_1"
    path.write_bytes(PEER)
    config = tmp_path / f"config.{name}"
    config.write_bytes(text.encode("utf-8", "surrogatepass"))
    attempt(path, config=config)
    attempt(path)


@FEW
@given(
    sizes=st.dictionaries(st.sampled_from([*CONFIG.__dataclass_fields__, "x"]), values, max_size=3),
    others=st.dictionaries(
        st.sampled_from(["kind", "task", "dtype", "checksum", "decide_above", "notes", "sizes"]),
        values, max_size=2,
    ),
)  # fmt: skip
def test_native_manifests_of_any_type(tmp_path_factory, sizes, others):
    folder = save(MODEL, tmp_path_factory.mktemp("native") / "m")
    stored = json.loads((folder / "config.json").read_text())
    stored["sizes"] |= sizes
    (folder / "config.json").write_text(json.dumps(stored | others))
    attempt(folder)


@FEW
@given(data=st.binary(max_size=200), kept=st.floats(0, 1))
def test_native_weights_of_any_bytes(tmp_path_factory, data, kept):
    folder = save(MODEL, tmp_path_factory.mktemp("native") / "m")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: int(kept * weights.stat().st_size)] + data + b"x")
    with pytest.raises(CheckpointError):
        load(folder)


@FEW
@given(name=st.text(max_size=300))
@example(name="\0")
@example(name="a" * 5000)
@example(name="")
def test_names_of_any_text(name):
    with pytest.raises(CheckpointError):
        load(name)


def test_tensors_that_repeat_their_storage_are_refused_unread(tmp_path):
    """6 KB of file were 8.7 GB of weights."""
    state = peer_state(MODEL, wrapper="")
    name = next(iter(state))
    state[name] = torch.zeros(1).expand(100_000, 100_000)
    torch.save(state, tmp_path / "step_1")
    with pytest.raises(CheckpointError, match="repeats 4; save a contiguous copy"):
        load(tmp_path / "step_1", config=trm_settings(CONFIG))


def test_one_storage_under_a_thousand_names_is_refused(tmp_path):
    large = torch.zeros(1_000_000)
    torch.save({f"a{n}.weight": large for n in range(1000)}, tmp_path / "step_1")
    with pytest.raises(CheckpointError, match="got names for 4,000,000,000"):
        load(tmp_path / "step_1", config=trm_settings(CONFIG))


def test_a_compressed_archive_is_refused_unread(tmp_path):
    inner = zipfile.ZipFile(io.BytesIO(PEER))
    with zipfile.ZipFile(tmp_path / "a.ckpt", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in inner.namelist():
            bomb.writestr(name, inner.read(name))
        bomb.writestr("archive/data/999", b"\0" * 50_000_000)
    with pytest.raises(CheckpointError, match="unpacks to"):
        load(tmp_path / "a.ckpt", config=trm_settings(CONFIG))


@pytest.mark.parametrize(
    ("name", "value"),
    [("expansion", 1e-9), ("expansion", 0.01), ("rotary_theta", 5e-324), ("width", 0),
     ("heads", 2**11), ("prefix", -1), ("cells", 0)],
)  # fmt: skip
def test_sizes_that_no_model_can_have(tmp_path, name, value):
    save(MODEL, tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    known = json.loads(config.read_text())
    known["sizes"][name] = value
    config.write_text(json.dumps(known))
    with pytest.raises(MEANT):
        load(tmp_path / "m")


def test_a_configuration_without_end(tmp_path):
    save(MODEL, tmp_path / "m")
    with (tmp_path / "m" / "config.json").open("r+b") as config:
        config.truncate(10**11)  # a sparse file
    with pytest.raises(CheckpointError, match="at most 10,000,000 bytes"):
        load(tmp_path / "m")


def test_weights_without_end(tmp_path):
    save(MODEL, tmp_path / "m")
    with (tmp_path / "m" / "model.safetensors").open("r+b") as weights:
        weights.truncate(10**12)
    with pytest.raises(CheckpointError, match="broken file"):
        load(tmp_path / "m")
