"""Check and time every variant of the fused kernels: `python -m benchmarks.kernels`.

Prints a table last: milliseconds (median), TFLOP/s of counted arithmetic (TB/s for copy and norm),
the share of the ceiling measured in the same run, and the relative error against float64 on fresh
inputs. A variant that fails says why and the rest goes on. Without a GPU it runs tiny sizes in
Triton's interpreter, only to check itself: such times mean nothing.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from benchmarks.measure import Check, Row, Table, reason
from benchmarks.problem import CUDA, DEVICE, DTYPE, EPS, Problem, problem
from tiltrm.explore.keys import normals, pair_counters
from tiltrm.kernels import available, fuse, reference
from tiltrm.model.layers import rms_norm

SIZES = (88, 512, (256, 1536)) if CUDA else (88, 64, (256, 256))
BATCHES = (16, 768, 4096) if CUDA else (1, 1, 2)


def launches(*shapes: tuple[int, ...], **changes: Any) -> list[Any]:
    """(rows, columns, warps, stages[, persistent]) as launches."""
    from tiltrm.kernels.launch import Launch

    made = []
    for rows, columns, warps, stages, *persistent in shapes:
        launch = Launch(rows, columns, warps=warps, stages=stages, persistent=sum(persistent))
        made.append(launch._replace(**changes))
    return made


def label(launch: Any) -> str:
    name = f"{launch.rows}x{launch.columns} w{launch.warps} s{launch.stages}"
    name += f" persistent {launch.persistent}" if launch.persistent else ""
    return name + ("" if launch.fast else " exact")


def compete(
    table: Table, section: str, key: str, variants: list[Any], flops: float,
    work: Callable[[Any], Any], few: Callable[[Any], Any], truth: Tensor | Sequence[Tensor],
) -> None:  # fmt: skip
    """Time variants of one kernel; the fastest right one serves from here on."""
    from tiltrm.kernels.launch import LAUNCHES

    best = float("inf")
    for launch in variants:
        name, check = f"{key} {label(launch)}", Check(partial(few, launch), truth)
        ms = table.add(section, name, partial(work, launch), flops=flops, check=check)
        if ms < best:
            best, LAUNCHES[key] = ms, launch


def ceilings(table: Table) -> None:
    side = 8192 if CUDA else 64
    a, b = (torch.randn(side, side, device=DEVICE).to(DTYPE) for _ in range(2))
    ms = table.add("ceilings", f"matrix product {side}", lambda: a @ b, flops=2.0 * side**3)
    table.flops = 2.0 * side**3 / (ms * 1e-3)
    source = torch.randn(16 * side * side, device=DEVICE).to(DTYPE)
    target = torch.empty_like(source)
    moved = 2.0 * source.nbytes
    ms = table.add("ceilings", "copy", lambda: target.copy_(source), moved=moved)
    table.bytes = moved / (ms * 1e-3)


def tokens_section(table: Table, p: Problem, small: Problem) -> None:
    from tiltrm.kernels import tokens

    def forward(p: Problem, launch: Any) -> Tensor:
        return tokens.forward(p.x, *p.tokens, EPS, launch)[0]

    variants = launches(
        (128, 32, 8, 2), (128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 4, 2), (256, 32, 8, 2),
        (128, 64, 8, 2, 1), (128, 64, 8, 1, 1), (64, 64, 4, 2, 1),
    )  # fmt: skip
    variants += launches((128, 32, 8, 2), (128, 64, 8, 2, 1), fast=False)
    wide = small.double()
    truth = reference.mix_tokens(wide.x, wide.tokens[0], wide.tokens[1], EPS)
    works = partial(forward, p), partial(forward, small)
    compete(table, "tokens", "tokens", variants, p.token_flops, *works, truth)


def gated_section(table: Table, p: Problem, small: Problem) -> None:
    from benchmarks.kernel_variants import gated_by_tile
    from tiltrm.kernels import channels

    def product(p: Problem) -> Tensor:
        gate, up = (p.rows @ p.channels[0].T).chunk(2, dim=-1)
        return F.silu(gate) * up

    def gated(p: Problem, launch: Any) -> Tensor:
        return channels.gated(p.rows, p.channels[0], launch)

    flops = p.channel_flops * 2 / 3
    table.add("gated", "library product alone", lambda: p.rows @ p.channels[0].T, flops=flops)
    table.add("gated", "library product, eager gate", partial(product, p), flops=flops)
    truth = product(small.double())
    for launch in launches((128, 128, 8, 3), (128, 128, 8, 4), (128, 64, 8, 3), (64, 128, 4, 2)):
        by_tile = partial(gated_by_tile, launch=launch)
        table.add(
            "gated", f"by tile {label(launch)}", partial(by_tile, p.rows, p.channels[0]),
            flops=flops, check=Check(partial(by_tile, small.rows, small.channels[0]), truth),
        )  # fmt: skip
    variants = launches(
        (128, 128, 8, 3, 1), (128, 128, 8, 4, 1), (128, 64, 4, 3, 2), (128, 64, 8, 4, 1),
    )  # fmt: skip
    variants += launches((128, 128, 8, 3, 1), fast=False)
    works = partial(gated, p), partial(gated, small)
    compete(table, "gated", "gated", variants, flops, *works, truth)
    hidden = product(p)
    table.add("gated", "down, library", lambda: hidden @ p.channels[1].T, flops=flops / 2)


def norm_section(table: Table, p: Problem, small: Problem) -> None:
    from tiltrm.kernels import channels
    from tiltrm.kernels.elementwise import perturbed

    def norm(p: Problem, launch: Any) -> Tensor:
        return channels.residual_norm(p.rows, p.row_slopes, EPS, launch)[0]

    def noise(p: Problem) -> Tensor:
        keys, x = torch.arange(len(p.x), device=DEVICE), p.x.flatten(1)
        scales = torch.full((len(x), 1), 0.3, device=DEVICE)
        return perturbed(x, keys, scales, pair_counters(x.shape[1], x.device))

    wide = small.double()
    truth = rms_norm(wide.x + wide.slope, EPS).flatten(0, 1)
    for launch in launches((1, 0, 1, 1), (4, 0, 4, 1), (8, 0, 4, 1), (8, 0, 8, 1)):
        table.add(
            "norm", f"norm {label(launch)}", partial(norm, p, launch), moved=3.0 * p.x.nbytes,
            check=Check(partial(norm, small, launch), truth),
        )  # fmt: skip
    keys = torch.arange(len(small.x), device=DEVICE)
    truth = wide.x.flatten(1) + 0.3 * normals(keys, wide.x[0].numel()).double()
    table.add(
        "norm", "exploration noise", partial(noise, p), moved=2.0 * p.x.nbytes,
        check=Check(partial(noise, small), truth),
    )  # fmt: skip


def layer_section(table: Table, problems: Sequence[Problem], small: Problem) -> None:
    truth = small.block(torch.float64)(small.x.double()).detach()
    with torch.no_grad():
        for p in problems:
            for name in ("eager", "fused"):
                block, few = p.block(), small.block()
                if name == "fused":
                    block, few = fuse(block), fuse(few)
                table.add(
                    "layer", f"forward {name}, batch {len(p.x)}", partial(block, p.x),
                    flops=p.flops, check=Check(partial(few, small.x), truth),
                )  # fmt: skip


def backward_section(table: Table, p: Problem, small: Problem) -> None:
    from tiltrm.kernels import tokens

    def inputs(p: Problem, launch: Any) -> Tensor:
        saved = tokens.forward(p.x, *p.tokens, EPS) if p is small else kept
        return tokens.inputs_backward(p.slope, p.x, *p.tokens, *saved, launch)[0]

    def weights(p: Problem, launch: Any) -> tuple[Tensor, Tensor]:
        return tokens.weights_backward(p.x, *p.tokens, p.slope, launch)

    kept = tokens.forward(p.x, *p.tokens, EPS)
    wide = small.double()
    leaves = [t.requires_grad_() for t in (wide.x, *wide.tokens)]
    y = reference.mix_tokens(leaves[0], leaves[1], leaves[2], EPS)
    truth = torch.autograd.grad(y, leaves, wide.slope)
    variants = launches((128, 32, 8, 2), (128, 64, 8, 2), (64, 32, 4, 2), (64, 64, 4, 2))
    compete(
        table, "backward", "tokens inputs", variants, p.token_flops,
        partial(inputs, p), partial(inputs, small), truth[0],
    )  # fmt: skip
    # The weights' slopes are linear in dz, so any dz serves: the slope itself, without the norm.
    turned = leaves[0].transpose(1, 2)
    out = reference.gated_mlp(turned, leaves[1], leaves[2]).transpose(1, 2)
    truth = torch.autograd.grad(out, leaves[1:], wide.slope)
    variants = launches((128, 64, 8, 2), (64, 64, 8, 2), (64, 64, 8, 3))
    compete(
        table, "backward", "tokens weights", variants, p.token_flops,
        partial(weights, p), partial(weights, small), truth,
    )  # fmt: skip
    hidden_section(table, p, small)


def hidden_section(table: Table, p: Problem, small: Problem) -> None:
    from benchmarks.kernel_variants import hidden_backward_by_library
    from tiltrm.kernels import channels

    def hidden(p: Problem, launch: Any) -> tuple[Tensor, Tensor]:
        return channels.hidden_backward(p.rows, *p.channels, p.row_slopes, launch)

    wide = small.double()
    both = (wide.rows @ wide.channels[0].T).requires_grad_()
    gate, up = both.chunk(2, dim=-1)
    value = F.silu(gate) * up
    (slope,) = torch.autograd.grad(value, both, wide.row_slopes @ wide.channels[1])
    variants = launches((128, 64, 8, 3), (128, 64, 8, 4), (64, 64, 4, 3))
    works, truth = (partial(hidden, p), partial(hidden, small)), (slope, value.detach())
    library, flops = hidden_backward_by_library, p.channel_flops
    table.add(
        "backward", "gated backward library", partial(library, p.rows, *p.channels, p.row_slopes),
        flops=flops,
        check=Check(partial(library, small.rows, *small.channels, small.row_slopes), truth),
    )  # fmt: skip
    compete(table, "backward", "gated backward", variants, flops, *works, truth)


def with_slopes(block: nn.Module, p: Problem) -> Any:
    """Forward and backward of one layer, as training runs it."""
    leaves = [p.x.detach().requires_grad_(), *block.parameters()]
    return torch.autograd.grad(block(leaves[0]), leaves, p.slope)


def training_section(table: Table, p: Problem, small: Problem) -> None:
    pairs = [(p, small)]
    if CUDA:  # other cuts of the positions, for their errors
        others = problem(16, 81, 512, (256, 1536)), problem(16, 97, 512, (512, 1536))
        pairs += [(other, other) for other in others]
    for size, few in pairs:
        truth = with_slopes(few.block(torch.float64), few.double())
        for name in ("eager", "fused"):
            block, tiny = size.block(), few.block()
            if name == "fused":
                block, tiny = fuse(block), fuse(tiny)
            table.add(
                "training", f"forward+backward {name}, {len(size.x)} x {size.x.shape[1]}",
                partial(with_slopes, block, size), flops=3 * size.flops,
                check=Check(partial(with_slopes, tiny, few), truth),
            )  # fmt: skip


def compiled_section(table: Table, problems: Sequence[Problem]) -> None:
    first = problems[0]
    for name in ("compiled", "fused, compiled"):
        torch._dynamo.reset()
        block: Any = first.block() if name == "compiled" else fuse(first.block())
        block = torch.compile(block, dynamic=False, fullgraph=True)
        work = partial(with_slopes, block, first)
        title = f"forward+backward {name}, batch {len(first.x)}"
        table.add("compiled", title, work, flops=3 * first.flops)
        with torch.no_grad():
            for p in problems if name == "compiled" else problems[:1]:
                title = f"forward {name}, batch {len(p.x)}"
                table.add("compiled", title, partial(block, p.x), flops=p.flops)


def run(table: Table, wanted: Sequence[str]) -> None:
    small, *problems = (problem(batch, *SIZES) for batch in BATCHES)
    sections: dict[str, Callable[[], None]] = {
        "ceilings": partial(ceilings, table),
        "tokens": partial(tokens_section, table, problems[0], small),
        "gated": partial(gated_section, table, problems[0], small),
        "norm": partial(norm_section, table, problems[0], small),
        "layer": partial(layer_section, table, problems, small),
        "backward": partial(backward_section, table, problems[0], small),
        "training": partial(training_section, table, problems[0], small),
        "compiled": partial(compiled_section, table, problems),
    }
    for name in wanted or sections:
        try:
            sections[name]()
        except Exception as failure:
            table.rows.append(Row(name, "section failed", note=reason(failure)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="start no variant after this")
    parser.add_argument("--only", nargs="*", default=[], help="sections, in the order to run")
    parser.add_argument("--out", type=Path, help="write the rows as JSON lines")
    options = parser.parse_args()
    if not available():
        sys.exit("the kernels need Triton and a Hopper GPU (or TRITON_INTERPRET=1); none found")
    table = Table(options.seconds)

    def give_up() -> None:
        table.print()
        print("gave up: a variant hung", flush=True)
        os._exit(3)

    watchdog = threading.Timer(options.seconds + 30.0, give_up)
    watchdog.daemon = True
    watchdog.start()
    run(table, options.only)
    watchdog.cancel()
    if options.out:
        options.out.write_text("".join(json.dumps(row._asdict()) + "\n" for row in table.rows))
    table.print()


if __name__ == "__main__":
    main()
