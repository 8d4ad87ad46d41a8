"""The folder of `tiltrm site`, without a browser: files, sizes, addresses, refusals."""

import gzip
import json
import re
import sys
from pathlib import Path

import pytest

from tiltrm.cli.main import main
from tiltrm.errors import DataError, SettingsError
from tiltrm.model import save
from tiltrm.model.trm import TRM
from tiltrm.tasks.pencil.clauses import have_ortools

pytest.importorskip("onnx", reason="onnx is not installed (pip install 'tiltrm[export]')")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tiltrm.export import runtime, site


@pytest.fixture
def fake_runtime(tmp_path: Path) -> Path:
    """A folder with files of the names that the site copies."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    for name in runtime.FILES:
        (folder / name).write_text(f"{name} " * 100)
    return folder


def test_the_files_are_complete_and_name_no_other_address(
    toy: TRM, tmp_path: Path, fake_runtime: Path
) -> None:
    out = tmp_path / "site"
    sizes = site.write({"toy": toy}, out, given_runtime=fake_runtime)
    about = json.loads((out / site.MARK).read_text("utf-8"))
    assert about["models"][0]["task"] == "sudoku4"
    assert {row["name"] for row in about["form"]["settings"]} >= {"particles", "noise", "guide"}
    for name, size in about["files"].items():
        assert (out / name).stat().st_size == size == sizes[name]
    assert set(about["models"][0]["files"].values()) < set(about["files"])
    written = [path for path in out.rglob("*") if path.suffix in (".js", ".html", ".css")]
    for path in written:
        if "runtime" not in path.relative_to(out).parts:
            found = set(re.findall(r"https?://[\w./-]+", path.read_text("utf-8")))
            assert found <= {"http://www.w3.org/2000/svg", "https://puzz.link/p"}, path
    page = (out / "index.html").read_text("utf-8")
    assert not re.findall(r'(?:src|href)="/', page)  # any sub-path
    assert "Content-Security-Policy" in page
    assert "in your browser" in page
    assert "VERSION" not in (out / "service.js").read_text("utf-8")
    assert 'id="replay">{}</script>' in (out / "static" / "replay.html").read_text("utf-8")


def test_graphs_are_stored_in_halves_and_unpack_to_themselves(
    toy: TRM, tmp_path: Path, fake_runtime: Path
) -> None:
    import onnx

    out = tmp_path / "site"
    site.write({"toy": toy}, out, given_runtime=fake_runtime, precision="float16")
    about = json.loads((out / site.MARK).read_text("utf-8"))
    stored = gzip.decompress((out / about["models"][0]["files"]["step"]).read_bytes())
    half = -(-len(stored) // 2)
    whole = bytearray(len(stored))
    whole[::2], whole[1::2] = stored[:half], stored[half:]
    graph = onnx.load_from_string(bytes(whole))
    assert [each.name for each in graph.graph.input] == ["inputs", "answer", "latent", "noise"]


def test_the_same_site_twice_is_the_same_bytes(
    toy: TRM, tmp_path: Path, fake_runtime: Path
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        site.write({"toy": toy}, folder, given_runtime=fake_runtime)
    one, two = ({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
                 if path.is_file()} for folder in folders)  # fmt: skip
    assert one == two


def test_another_runtime_has_other_addresses(toy: TRM, tmp_path: Path, fake_runtime: Path) -> None:
    """The service worker keeps these files by address, so a changed one needs a new address."""
    places = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        sizes = site.write({"toy": toy}, folder, given_runtime=fake_runtime)
        places.append({name for name in sizes if name.startswith("runtime/")})
        assert any(name.startswith("toy on") for name in site.loaded_bytes(sizes))
        (fake_runtime / runtime.FILES[0]).write_text("a newer script")
    assert len(places[0]) == len(places[1]) == len(runtime.FILES)
    assert not places[0] & places[1]


def test_refusals(
    toy: TRM, tmp_path: Path, fake_runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="expected the folder `dist`"):
        runtime.find(tmp_path)
    save(toy, tmp_path / "toy")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    words = ["site", "--model", str(tmp_path / "toy"), "--runtime", str(fake_runtime), "--out"]
    assert main([*words, str(tmp_path / "full")]) == 2
    assert "which holds other things" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "site")]) == 0
    assert "a visitor loads" in capsys.readouterr().out
    assert main([*words, str(tmp_path / "site")]) == 0  # its own folder may be replaced


def test_a_task_whose_rules_the_page_lacks_is_refused(
    toy: TRM, tmp_path: Path, fake_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "RULES_KNOWN", ("maze",))
    with pytest.raises(SettingsError, match="whose rules the page knows, got one for sudoku4"):
        site.write({"toy": toy}, tmp_path / "site", given_runtime=fake_runtime)


def test_generated_pencil_puzzles_need_or_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "static").mkdir()
    monkeypatch.setattr(site, "GENERATED", dict.fromkeys(site.GENERATED, 1))
    if have_ortools():
        site._write_puzzles(tmp_path, {"pencil", "maze"})
        found = json.loads((tmp_path / "static" / "generated.json").read_text("utf-8"))
        assert set(found) == {"sudoku", "lightup", "nurikabe", "heyawake", "tapa", "maze"}
        assert found["tapa"][0].startswith("https://puzz.link/p?tapa/")
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    site._write_puzzles(tmp_path, {"pencil"})
    found = json.loads((tmp_path / "static" / "generated.json").read_text("utf-8"))
    assert set(found) == {"sudoku"}  # the page says that it has no others
