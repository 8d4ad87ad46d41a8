"""Kernels in bfloat16 and e4m3 beside the ceilings of both: `python -m benchmarks.kernels_fp8`.

Sections: matrix products at the model's shapes and large; every variant of the token-mixing and
channel-mixing kernels with its error against float64; whole explorations in evaluations a second
(the bundled models as they are, compact, in e4m3; models of 81 and 97 positions with random
weights); with --data, answers of adaptive solving in each precision; slopes for 88, 81 and 97
positions. On a GPU, kernels are compiled first, all sections at once. A child process runs the
sections; if it dies, another one goes on with the next section.
Without a GPU it runs tiny sizes in Triton's interpreter, only to check itself.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from benchmarks.accuracy import accuracy
from benchmarks.clock import seconds
from benchmarks.explore import bare, network_flops, workload
from benchmarks.kernels import label, launches, with_slopes
from benchmarks.measure import Check, Row, Table, reason
from benchmarks.problem import CUDA, DEVICE, DTYPE, EPS, Problem, problem
from tiltrm.kernels import available, fuse, reference
from tiltrm.kernels.eight_bit import quantise
from tiltrm.kernels.launch import RESTS
from tiltrm.model import load
from tiltrm.model.layers import rms_norm
from tiltrm.model.trm import TRM, TRMConfig

BATCH = 768 if CUDA else 1
SMALL = 16 if CUDA else 1
WIDTH = 512 if CUDA else 64
HIDDEN = (1536, 512, 384) if CUDA else (256,)  # channel mixing: as trained, and compact
TOKEN_HIDDEN = {88: 256, 81: 256, 97: 512} if CUDA else {81: 256}
FINER = (32, 16)  # a cut of the positions that is not in use
EIGHT_BIT_ERROR = 8e-2 if CUDA else 0.2  # that e4m3 explains; the interpreter loses carries


def named(launch: Any) -> str:
    """The label of a launch."""
    return "as it serves" if launch is None else label(launch)


def first(work: Callable[..., tuple[Tensor, ...]], *arguments: Any, **named: Any) -> Tensor:
    """The first of several results."""
    return work(*arguments, **named)[0]


def products(table: Table) -> None:
    """The library's matrix products, bfloat16 and e4m3."""
    rows = BATCH * 88
    shapes = [(8192, 8192, 8192)] if CUDA else [(64, 64, 64)]
    shapes += [(rows, 2 * hidden, WIDTH) for hidden in HIDDEN]
    shapes += [(rows, WIDTH, hidden) for hidden in HIDDEN]
    source = torch.randn(2**28 if CUDA else 2**12, device=DEVICE).to(DTYPE)
    target = torch.empty_like(source)
    moved = 2.0 * source.nbytes
    ms = table.add("products", "copy", partial(target.copy_, source), moved=moved)
    table.bytes = moved / (ms * 1e-3)
    from tiltrm.kernels.channels_eight_bit import product
    from tiltrm.kernels.quantised import EIGHT_BIT

    for m, n, k in shapes:
        a, b = (torch.randn(side, k, device=DEVICE).to(DTYPE) for side in (m, n))
        flops, name = 2.0 * m * n * k, f"{m} x {n} x {k}"
        ms = table.add("products", f"bf16 {name}", partial(torch.mm, a, b.T), flops=flops)
        table.flops = table.flops or flops / (ms * 1e-3)
        a8, b8 = a.to(EIGHT_BIT), b.to(EIGHT_BIT)
        table.add("products", f"e4m3 {name}", partial(product, a8, b8, DTYPE), flops=flops)
        if CUDA:
            scales = torch.ones(m, 1, device=DEVICE), torch.ones(1, n, device=DEVICE)
            by_row = partial(torch._scaled_mm, a8, b8.T, *scales, out_dtype=DTYPE)
            table.add("products", f"e4m3 by row {name}", by_row, flops=flops)


def gluon(p: Problem, columns: int) -> Tensor:
    """Token mixing by the variant in Gluon."""
    from benchmarks import tokens_gluon  # here: a Triton without Gluon fails in its own row

    return tokens_gluon.forward(p.x, *p.tokens, EPS, columns=columns)


def with_gluon(name: str, compact: bool) -> Any:
    """A bundled model whose token mixing, for inference, is the variant in Gluon."""
    from benchmarks import tokens_gluon
    from tiltrm.kernels import tokens

    def forward(x: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        y: Tensor = tokens_gluon.forward(x, gate_up, down, eps)
        return y, y.new_empty((x.shape[0], x.shape[2]), dtype=torch.float32)  # slopes need it

    tokens.forward = forward  # type: ignore[assignment]
    return load(name, device=DEVICE, compact=compact)


def with_finer_cuts(make: Callable[[], Any]) -> Any:
    """A model of 97 positions whose token mixing cuts them at 64, 96 and 112."""
    RESTS.insert(-1, FINER)
    return make()


def token_launches(positions: int) -> tuple[list[Any], list[Any]]:
    """Variants in bfloat16 and in e4m3; None is the one that serves."""
    if positions == 88 or not CUDA:
        plain = launches((128, 64, 8, 1, 1), (64, 64, 4, 2, 1), (128, 32, 8, 2))
        eight = launches((64, 32, 4, 1, 2), (128, 64, 8, 1, 1), (128, 32, 8, 1, 1))
        return [None, *plain], [None, *eight]
    if positions == 97:
        plain, eight = launches((128, 64, 8, 2), (64, 64, 4, 2)), launches((128, 64, 8, 1, 1))
        return [None, *plain], [None, *eight]
    return [None], [None]


def tokens_section(table: Table) -> None:
    """Token mixing, bfloat16 and e4m3, for every number of positions."""
    from tiltrm.kernels import tokens, tokens_eight_bit
    from tiltrm.kernels.quantised import token_weights

    for positions, hidden in TOKEN_HIDDEN.items():
        plain, eight = token_launches(positions)
        p, small = (problem(n, positions, WIDTH, (hidden, 128)) for n in (BATCH, SMALL))
        wide = small.double()
        truth = reference.mix_tokens(wide.x, *wide.tokens, EPS)

        def forward(p: Problem, launch: Any) -> Tensor:
            return tokens.forward(p.x, *p.tokens, EPS, launch)[0]

        def forward_eight(p: Problem, mlp: Any, launch: Any) -> Tensor:
            return tokens_eight_bit.forward(p.x, mlp, EPS, launch)[0]

        for launch in plain:
            table.add(
                "tokens", f"{positions} bf16 {named(launch)}", partial(forward, p, launch),
                flops=p.token_flops, check=Check(partial(forward, small, launch), truth),
            )  # fmt: skip
        for columns in (32, 64) if CUDA and positions != 97 else ():  # 97: too wide to stay on chip
            table.add(
                "tokens", f"{positions} bf16 Gluon 128x{columns}", partial(gluon, p, columns),
                flops=p.token_flops, check=Check(partial(gluon, small, columns), truth),
            )  # fmt: skip
        mlps = token_weights(*p.tokens), token_weights(*small.tokens)
        for launch in eight:
            table.add(
                "tokens", f"{positions} e4m3 {named(launch)}",
                partial(forward_eight, p, mlps[0], launch), flops=p.token_flops,
                check=Check(partial(forward_eight, small, mlps[1], launch), truth),
                wrong=EIGHT_BIT_ERROR,
            )  # fmt: skip


def channels_section(table: Table) -> None:
    """The gated product and the whole of channel mixing, bfloat16 and e4m3, for every hidden."""
    from tiltrm.kernels import channels, channels_eight_bit
    from tiltrm.kernels.quantised import EIGHT_BIT, ROW_SCALE, channel_weights

    for hidden in HIDDEN:
        plain, eight = [None], [None]
        if hidden in (256, 512):
            plain += launches((128, 128, 8, 3, 1), (128, 64, 4, 3, 2))
            eight += launches(
                (128, 128, 8, 3, 1), (128, 64, 4, 3, 2), (128, 64, 4, 2, 2), depth=128
            )
        p, small = (problem(n, 88, WIDTH, (128, hidden)) for n in (BATCH, SMALL))
        wide = small.double()
        gate, up = (wide.rows @ wide.channels[0].T).chunk(2, dim=-1)
        truth, flops = torch.nn.functional.silu(gate) * up, p.channel_flops * 2 / 3
        for launch in plain:
            table.add(
                "channels", f"gated {hidden} bf16 {named(launch)}",
                partial(channels.gated, p.rows, p.channels[0], launch), flops=flops,
                check=Check(partial(channels.gated, small.rows, small.channels[0], launch), truth),
            )  # fmt: skip
        mlp, few = channel_weights(*p.channels), channel_weights(*small.channels)
        x8, few8 = ((q.rows * ROW_SCALE).to(EIGHT_BIT) for q in (p, small))

        def gated_eight(launch: Any, few: Any = few, few8: Tensor = few8) -> Tensor:
            scale: float = few.up_scale / (2 * few.half_gate)  # of the hidden side
            hidden: Tensor = channels_eight_bit.gated(few8, few, launch)
            return hidden.float() / scale

        for launch in eight:
            table.add(
                "channels", f"gated {hidden} e4m3 {named(launch)}",
                partial(channels_eight_bit.gated, x8, mlp, launch), flops=flops,
                check=Check(partial(gated_eight, launch), truth), wrong=EIGHT_BIT_ERROR,
            )  # fmt: skip
        truth = reference.mix_channels(wide.x, *wide.channels, EPS).flatten(0, 1)
        whole = partial(channels.forward, eps=EPS)
        table.add(
            "channels", f"whole {hidden} bf16", partial(whole, p.rows, *p.channels),
            flops=p.channel_flops,
            check=Check(partial(first, whole, small.rows, *small.channels), truth),
        )  # fmt: skip
        both = partial(channels_eight_bit.forward, eps=EPS)
        table.add(
            "channels", f"whole {hidden} e4m3", partial(both, p.rows, x8, mlp),
            flops=p.channel_flops, wrong=EIGHT_BIT_ERROR,
            check=Check(partial(both, small.rows, few8, few), truth),
        )  # fmt: skip
    norm = channels_eight_bit.residual_norm
    for flag in (False, True):
        table.add(
            "channels", f"norm{' and its e4m3' * flag}",
            partial(norm, p.rows, p.row_slopes, EPS, eight_bit=flag),
            moved=(3.0 + flag / 2) * p.x.nbytes,
            check=Check(
                partial(first, norm, small.rows, small.row_slopes, EPS, eight_bit=flag),
                rms_norm(wide.x + wide.slope, EPS).flatten(0, 1),
            ),
        )  # fmt: skip


def models() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The models of `explorations`, each made when it is its turn."""
    for name in ("sudoku-extreme", "maze-hard") if CUDA else ("sudoku-extreme",):
        for compact in (False, True):
            for fp8 in (False, True):
                title = f"{name}{' compact' * compact} {'e4m3' if fp8 else 'bf16'}"
                yield title, partial(load, name, device=DEVICE, compact=compact, fp8=fp8)
    for prefix in (0, 16):
        for fp8 in (False, True):

            def fresh(prefix: int = prefix, fp8: bool = fp8) -> TRM:
                torch.manual_seed(0)
                model = fuse(TRM(TRMConfig(prefix=prefix)).to(DEVICE, DTYPE).requires_grad_(False))
                model.task = "sudoku"
                return quantise(model) if fp8 else model

            yield f"random, {81 + prefix} positions {'e4m3' if fp8 else 'bf16'}", fresh
            if prefix and not fp8:
                yield "random, 97 positions bf16, three cuts", partial(with_finer_cuts, fresh)
    for compact in (False, True) if CUDA else ():
        title = f"sudoku-extreme{' compact' * compact} bf16, Gluon"
        yield title, partial(with_gluon, "sudoku-extreme", compact)


def explorations(table: Table) -> None:
    """Whole explorations, evaluations a second."""
    from tiltrm.kernels import tokens

    base, kept = 0.0, tokens.forward
    for name, make in models():
        tokens.forward = kept
        RESTS[:] = [rest for rest in RESTS if rest != FINER]
        try:
            if time.monotonic() - table.started > table.seconds:
                raise TimeoutError("skipped, out of time")
            model = make()
            if isinstance(table, CompilingTable):
                some = torch.ones(1, model.cells, dtype=torch.long, device=DEVICE)
                bare(model, some, SMALL, 1)
                continue
            count, versions = workload(model, 16 if CUDA else 1, 2 if CUDA else 1)
            if not CUDA:  # the interpreter is not made for the explorer's threads
                del versions["explore"]
            rates = []
            for work in versions.values():
                if CUDA:
                    work()
                rates.append(count / min(seconds(work, torch.device(DEVICE)) for _ in range(2)))
            base = base or rates[0]
            flops = rates[0] * network_flops(model)
            print(
                f"{time.monotonic() - table.started:5.1f} s  explore   {name:40} {rates[0]:12,.0f} "
                f"evaluations/s, {rates[0] / base:5.2f} x the first, bare {rates[-1]:12,.0f}, "
                f"{flops / 1e12:6.1f} TFLOP/s, {flops / max(table.flops, 1.0):4.0%}", flush=True,
            )  # fmt: skip
            del model, versions, work
        except Exception as failure:
            print(f"        explore   {name:40} {reason(failure)}", flush=True)
            stop_if_broken()
    tokens.forward = kept


def answers(table: Table, data: Path | None, limit: int) -> None:
    """Adaptive solving by the bundled model in each precision: accuracy and evaluations."""
    if data is None:
        print("        answers   needs --data FILE with labels", flush=True)
        return
    for compact in (False, True):
        for fp8 in (False, True):
            title = f"{'compact' if compact else 'whole'} {'e4m3' if fp8 else 'bf16'}"
            try:
                model = load("sudoku-extreme", device=DEVICE, compact=compact, fp8=fp8)
                found = str(accuracy(model, data, limit))
            except Exception as failure:
                found = reason(failure)
            print(
                f"{time.monotonic() - table.started:5.1f} s  answers   {title:14} {found}",
                flush=True,
            )
            stop_if_broken()


def slopes(table: Table) -> None:
    """Forward and backward of a layer with 88, 81 and 97 positions against float64."""
    for positions, hidden in TOKEN_HIDDEN.items():
        few = problem(SMALL, positions, WIDTH, (hidden, HIDDEN[0]))
        truth = with_slopes(few.block(torch.float64), few.double())
        p = problem(BATCH, positions, WIDTH, (hidden, HIDDEN[0]))
        table.add(
            "slopes", f"forward+backward {positions}", partial(with_slopes, fuse(p.block()), p),
            flops=3 * p.flops, check=Check(partial(with_slopes, fuse(few.block()), few), truth),
        )  # fmt: skip


SECTIONS: dict[str, Callable[..., None]] = {
    "products": products, "explore": explorations, "tokens": tokens_section,
    "channels": channels_section, "answers": answers, "slopes": slopes,
}  # fmt: skip
COMPILED, COMPILING = ("explore", "tokens", "channels", "slopes"), 30.0  # at once, seconds
BROKEN = 75  # exit code of a child whose CUDA context is lost


def stop_if_broken() -> None:
    """End this process if CUDA no longer answers: nothing after it could run."""
    try:
        if CUDA:
            torch.cuda.synchronize()
    except Exception as failure:
        print(f"        CUDA context lost: {reason(failure)}", flush=True)
        os._exit(BROKEN)


class StoppingTable(Table):
    """A Table that ends the process after a failure that CUDA does not survive."""

    def add(self, *arguments: Any, **named: Any) -> float:
        found = super().add(*arguments, **named)
        if self.rows[-1].note:
            stop_if_broken()
        return found


class CompilingTable(StoppingTable):
    """A Table that only runs the checks, so that compiled kernels are on disk for the next run."""

    def add(self, *arguments: Any, check: Check | None = None, **named: Any) -> float:
        try:
            if check is not None:
                check.work()
        except Exception:
            stop_if_broken()
        return 1.0


def child(options: argparse.Namespace) -> None:
    """Run the sections in this process."""
    wanted, limit, ceiling = options.only, options.seconds, options.child
    if not available():
        sys.exit("the kernels need Triton and a Hopper GPU (or TRITON_INTERPRET=1); none found")
    table = CompilingTable(limit) if options.compile else StoppingTable(limit)
    table.flops = ceiling
    for name in wanted:
        print(f"section {name}", flush=True)
        try:
            more = (options.data, options.puzzles) if name == "answers" else ()
            SECTIONS[name](table, *more)
        except Exception as failure:
            table.rows.append(Row(name, "section failed", note=reason(failure)))
            print(str(table.rows[-1]), flush=True)
            stop_if_broken()
        if name == "products":
            print(f"ceiling {table.flops:.6e}", flush=True)


def compile_all(wanted: list[str], limit: float) -> None:
    """Compile the kernels of several sections at once, each in a process of its own."""
    own = [sys.executable, "-m", "benchmarks.kernels_fp8", "--child", "1", "--compile"]
    running = [
        subprocess.Popen(
            [*own, "--seconds", str(limit), "--only", name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for name in wanted
    ]  # fmt: skip
    end = time.monotonic() + limit
    for process in running:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    codes = dict(zip(wanted, (process.returncode for process in running), strict=True))
    print(f"compiled in {time.monotonic() - end + limit:.1f} s; exit codes {codes}", flush=True)


def parent(options: argparse.Namespace) -> None:
    """Run children until every section had its turn or the time is up."""
    wanted, limit = options.only or list(SECTIONS), options.seconds
    started, ceiling = time.monotonic(), 0.0
    if CUDA:
        compile_all([name for name in wanted if name in COMPILED], min(COMPILING, 0.3 * limit))
    given = ["--puzzles", str(options.puzzles)]
    given += [] if options.data is None else ["--data", str(options.data)]
    while wanted and limit - (time.monotonic() - started) > 5:
        left = limit - (time.monotonic() - started)
        own = ["--child", str(ceiling), "--seconds", str(left - 3), "--only", *wanted, *given]
        command = [sys.executable, "-m", "benchmarks.kernels_fp8", *own]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            watchdog = threading.Timer(left + 5, running.kill)
            watchdog.start()
            current = wanted[0]
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                if line.startswith("section "):
                    current = line.split()[1]
                elif line.startswith("ceiling "):
                    ceiling = float(line.split()[1])
            code = running.wait()
            watchdog.cancel()
        if code == 0:
            return
        print(f"the process of section {current} ended with code {code}; going on", flush=True)
        wanted = wanted[wanted.index(current) + 1 :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=95.0, help="start no variant after this")
    parser.add_argument("--only", nargs="*", default=[], choices=[*SECTIONS], help="sections")
    parser.add_argument("--data", type=Path, help="puzzles with labels, for answers")
    parser.add_argument("--puzzles", type=int, default=2000, help="of --data")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)  # the measured ceiling
    options = parser.parse_args()
    if options.child is not None:
        child(options)
    else:
        parent(options)


if __name__ == "__main__":
    main()
