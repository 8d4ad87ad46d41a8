"""Write a model as ONNX graphs, and print how far each precision is from torch."""

import argparse
import json
from pathlib import Path

from tiltrm.cli.extras import needs_extra
from tiltrm.errors import SettingsError
from tiltrm.model import load
from tiltrm.solving import task_of


def run(arguments: argparse.Namespace) -> int:
    """Export, compare one noisy outer step with torch, and report."""
    with needs_extra("export", "export"):
        from tiltrm.export import folder, networks
    loaded = load(arguments.model, config=arguments.config, puzzle_id=arguments.puzzle_id)
    model = networks.exportable(loaded)
    task = task_of(model, arguments.task)
    name = Path(arguments.model).name
    check_target(arguments.onnx, folder.ABOUT)
    sizes = folder.export(model, name, task, arguments.onnx, arguments.precision)
    differences = {
        precision: folder.largest_difference(model, folder.OnnxModel(arguments.onnx, precision))
        for precision in arguments.precision
    }
    if arguments.json:
        print(json.dumps(folder.as_json(sizes, differences)))
        return 0
    print(f"{name} in {arguments.onnx}; one outer step with noise, beside torch:")
    for precision, found in differences.items():
        shown = ", ".join(f"{part} {value:.1e}" for part, value in found.items())
        print(f"  {precision:8} {sizes[precision] / 1e6:6.1f} MB; largest difference: {shown}")
    return 0


def check_target(out: Path, mark: str) -> None:
    """Refuse a folder that holds anything but an earlier result, which has the file `mark`."""
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / mark).exists())):
        raise SettingsError(
            f"expected a new folder or one that this command wrote, got {out}, which holds other "
            "things; choose another"
        )
