"""The result of a diagnosis: the verdict and every figure behind it, as text and as JSON."""

import json
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DiagnosisReport:
    """One diagnosis. `figures` has stability, alignment (by guide), entropy, and with labels
    accuracy, as plain lists and numbers."""

    verdict: str
    reasons: tuple[str, ...]
    suggested: dict[str, float | None]
    certainty: float
    figures: dict[str, Any]
    puzzles: int
    evaluations: int
    shortened: str  # in words, how much smaller the run is than the paper's

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: NaN and infinities become None."""
        return {
            "verdict": self.verdict, "reasons": list(self.reasons), "suggested": self.suggested,
            "certainty": self.certainty, "puzzles": self.puzzles,
            "evaluations": self.evaluations, "shortened": self.shortened,
            **_plain(self.figures),
        }  # fmt: skip

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(_plain(self.as_dict()), allow_nan=False)

    def words(self) -> str:
        """A summary for a terminal."""
        lines = [f"{self.verdict}  (certainty {self.certainty:.2f}, {self.puzzles} puzzles, "
                 f"{self.evaluations:,} evaluations)"]  # fmt: skip
        lines += [f"  because {reason}" for reason in self.reasons]
        suggested = ", ".join(f"{n} {_number(v)}" for n, v in self.suggested.items())
        lines.append(f"  suggested: {suggested}")
        lines += [f"  {line}" for line in (*_stability(self.figures), *_labelled(self.figures))]
        lines.append(f"  {self.shortened}")
        return "\n".join(lines)


def _number(value: float | None) -> str:
    return "none of those tried" if value is None else f"{value:g}"


def _stability(figures: dict[str, Any]) -> list[str]:
    found = figures["stability"]
    if not found["tubes"]:
        return []
    survival = [f"{t['survival']:.2f} at {t['noise']:g}" for t in found["tubes"] if t["alpha"] == 1]
    lines = [f"survival in the tube of alpha = 1 by noise: {', '.join(survival)}"]
    for name, rho in found["rho"].items():
        lines.append(
            f"rho, {name}: mean {rho['mean']:.3g}, largest {rho['largest']:.3g}, "
            f"below 1 at {rho['below_one']:.0%}"
        )
    lines += sorted({tube["hypothesis"] for tube in found["tubes"]})
    exceeded = sum(tube["exceeds_secant_bound"] for tube in found["tubes"])
    if exceeded:
        lines.append(
            f"measured deviations exceed the bound from random secants in {exceeded} of "
            f"{len(found['tubes'])} tubes"
        )
    return lines


def _labelled(figures: dict[str, Any]) -> list[str]:
    if "accuracy" not in figures:
        return ["no labels were read"]
    solved = ", ".join(f"{name} {share:.1%}" for name, share in figures["accuracy"].items())
    lines = [f"solved: {solved}"]
    for name, study in figures["alignment"].items():
        auroc, gap, shift = (study[key][-1] for key in ("auroc", "gap", "shift"))
        last = (
            "no cloud is partly right" if math.isnan(auroc)
            else f"in-cloud AUROC {auroc:.3f}, gap {gap:.3g}, shift {shift:+.1%}"
        )  # fmt: skip
        gained = study["whole_run"]["gained"]
        lines.append(f"{name}, last step: {last}; all tilts of a whole run: {gained:+z.1%}")
    entropy = figures["entropy"]
    top = entropy["puzzles_by_entropy"]["terminal"]["abstain_on_top"]
    tokens = entropy["token_auroc"]["terminal"]
    auroc = "undefined, all are right or all wrong" if math.isnan(tokens) else f"{tokens:.3f}"
    lines.append(f"token AUROC of H on free cells: {auroc}")
    lines.append(f"accuracy without the {top['share']:.0%} of highest H: {top['accuracy']:.1%}")
    lines.append(entropy["puzzles_by_entropy"]["terminal"]["conformal"]["statement"])
    return lines


def _plain(value: Any) -> Any:
    """The value with None for NaN and infinities, which JSON does not have; keys as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
