"""Write the page as static files that solve in the browser."""

import argparse
import json

from tiltrm.cli.export_command import check_target
from tiltrm.cli.extras import needs_extra
from tiltrm.cli.serve_command import model_sources
from tiltrm.model import load


def run(arguments: argparse.Namespace) -> int:
    """Load the models, write the folder, and say what a visitor loads."""
    with needs_extra("site", "export"):
        from tiltrm.export import networks, site
    check_target(arguments.out, site.MARK)
    loaded = {name: load(source) for name, source in model_sources(arguments).items()}
    if not arguments.model:  # of those bundled, the ones whose rules the page knows
        loaded = {name: model for name, model in loaded.items() if model.task in site.RULES_KNOWN}
    models = {name: networks.exportable(model) for name, model in loaded.items()}
    sizes = site.write(
        models, arguments.out, task=arguments.task, precision=arguments.precision,
        given_runtime=arguments.runtime,
    )  # fmt: skip
    if arguments.json:
        print(json.dumps(sizes))
        return 0
    print(f"{len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB in {arguments.out}")
    for name, size in site.loaded_bytes(sizes).items():
        print(f"  a visitor loads {size / 1e6:.1f} MB for {name}")
    print(f"try it: python3 -m http.server --directory {arguments.out}")
    return 0
