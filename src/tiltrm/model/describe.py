"""A model in words."""

from tiltrm.model.base import evaluations_per_step
from tiltrm.model.build import Model, kind_of
from tiltrm.model.hrm import HRM
from tiltrm.model.puzzle_rows import puzzle_rows


def describe(model: Model) -> str:
    """A few lines for a person: the kind of model, its sizes, and the importer's assumptions."""
    config = model.config
    mixing = "token mixing" if config.token_mixing else f"attention with {config.heads} heads"
    positions = "rotary" if config.rotary else "learned" if config.learned_positions else "no"
    layers = f"{config.layers} layers"
    if isinstance(model, HRM):
        layers = (
            f"{config.layers} layers for the latent, {model.config.answer_layers} for the answer"
        )
    weights = sum(parameter.numel() for parameter in model.parameters())
    lines = [
        f"{kind_of(model).upper()} for {model.task or 'an unknown task'}, {weights:,} weights",
        f"{config.cells} cells, {config.prefix} prefix positions, {config.vocabulary} token ids",
        f"width {config.width}, {layers}, {mixing}, {positions} positions",
        f"a supervision step is {config.cycles} outer steps of {evaluations_per_step(model)} "
        "evaluations",
    ]
    if (rows := puzzle_rows(model)) > 1:
        told = "which the tokens tell" if config.puzzle_starts else f"{model.puzzle_id} in use"
        told = f"which {config.id_cells} cells of a puzzle hold" if config.id_cells else told
        named = f", the last {model.puzzle_names[-1]!r:.60}" if model.puzzle_names else ""
        lines.append(f"{rows:,} puzzle ids, {told}{named}")
    if model.decide_above is not None:
        which = "a settled answer" if model.decide_settled else "an answer"
        lines.append(f"{which} is decided at a halt logit above {model.decide_above:g}")
    return "\n".join([*lines, *(f"note: {note}" for note in model.import_notes)])
