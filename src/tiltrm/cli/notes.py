"""Notes on stderr about guides that were fitted on other weights."""

import sys
from collections.abc import Iterable

from tiltrm.model.base import RecursiveModel
from tiltrm.solving.guide_folder import guide_note


def say_guide_notes(command: str, guides: Iterable[object], model: RecursiveModel) -> None:
    """Say for each learned guide among these that it was fitted on other weights, if it was."""
    for note in filter(None, (guide_note(guide, model) for guide in dict.fromkeys(guides))):
        for line in note.splitlines():
            print(f"tiltrm {command}: note: {line}", file=sys.stderr)
