"""Write the page as static files that solve in the browser."""

import argparse
import json

from tiltrm.cli.export_command import check_target
from tiltrm.cli.extras import needs_extra
from tiltrm.cli.serve_command import model_sources
from tiltrm.model import load
from tiltrm.model.checkpoint import bundled


def run(arguments: argparse.Namespace) -> int:
    """Load the models, write the folder, and say what a visitor loads."""
    with needs_extra("site", "export"):
        from tiltrm.export import networks, site
    check_target(arguments.out, site.MARK)
    sources = model_sources(arguments)
    models = {name: networks.exportable(load(source)) for name, source in sources.items()}
    sizes = site.write(
        models, arguments.out, task=arguments.task, precision=arguments.precision,
        given_runtime=arguments.runtime,
        bundled=[name for name, source in sources.items() if source in bundled()],
    )  # fmt: skip
    if arguments.json:
        print(json.dumps(sizes))
        return 0
    print(f"{len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB in {arguments.out}")
    for name, size in site.loaded_bytes(sizes).items():
        print(f"  a visitor loads {size / 1e6:.1f} MB for {name}")
    print(f"try it: python3 -m http.server --directory {arguments.out}")
    return 0
