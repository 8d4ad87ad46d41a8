"""Draw docs/images/cloud.svg: the answers of a cloud of 16 trajectories to AI Escargot, by step.

Run `python docs/cloud.py`. A cell is darker the less the trajectories agree on its digit.
"""

from pathlib import Path

import torch

import tiltrm
from tiltrm.explore.result import token_marginals
from tiltrm.tasks import SUDOKU

PUZZLE = "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3.."
STEPS = (1, 3, 5, 7)
SIZE = 360


def main() -> None:
    """Explore the puzzle once and draw the cloud at some of its steps side by side."""
    model = tiltrm.load("sudoku-extreme")
    tokens = SUDOKU.encode(PUZZLE)[None]
    settings = tiltrm.Exploration(outer_steps=STEPS[-1], noise=0.3)
    trace = tiltrm.explore(model, tokens, settings, seed=0, trace=True).trace
    assert trace is not None
    panels = []
    for column, n in enumerate(STEPS):
        weights = trace.log_weights[:, n - 1].double().exp()
        marginal = token_marginals(trace.answers[:, n - 1], weights, model.vocabulary)[0]
        probability, leading = marginal.max(-1)
        picture = SUDOKU.picture(tokens[0], leading.to(torch.uint8), probability.float())
        body = picture[picture.index(">") + 1 : picture.rindex("</svg>")]
        box = picture[picture.index("viewBox=") :].split('"')[1]
        violations = int(SUDOKU.violations(tokens[0], leading))
        caption = f"step {n}: " + ("solved" if violations == 0 else f"{violations} rules broken")
        panels.append(
            f'<svg x="{column * (SIZE + 20)}" y="34" width="{SIZE}" height="{SIZE}" '
            f'viewBox="{box}">{body}</svg><text x="{column * (SIZE + 20) + SIZE / 2}" y="22" '
            f'text-anchor="middle" font-family="sans-serif" font-size="18">{caption}</text>'
        )
    width, height = len(STEPS) * (SIZE + 20) - 20, SIZE + 40
    out = Path(__file__).parent / "images" / "cloud.svg"
    out.parent.mkdir(exist_ok=True)
    out.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(panels)}</svg>\n',
        "utf-8",
    )


if __name__ == "__main__":
    main()
