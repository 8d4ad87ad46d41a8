"""Abuse of ARC tasks: any JSON, any text of a puzzle, any submission."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.arc.arc_samples import FULL, MINI

from tiltrm.data import read
from tiltrm.data.arc_files import arc_json
from tiltrm.data.arc_submission import read_submission
from tiltrm.errors import TiltrmError
from tiltrm.tasks.arc import ARC, MINI_ARC

from .test_fuzz import CHANGES, MANY, mutated, require_one_line

FILES = {
    "mini": json.dumps(arc_json(MINI)), "full": json.dumps(arc_json(FULL)),
    "one": json.dumps(arc_json(FULL)["small"]),
    "submission": json.dumps({"a": [{"attempt_1": [[1]], "attempt_2": [[2, 3]]}]}),
}  # fmt: skip
TEXTS = ["7: 01234/56789/00100/20003/44050", "7 t3 0213456789: 01234/56789/00100/20003/44050",
         "9 +3+4: 005/121", "005/121"]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["train", "test", "input", "output", "a"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from(sorted(FILES)), CHANGES | VALUES)
@MANY
def test_any_arc_file(bounded: Callable[[], Any], kind: str, changes: Any) -> None:
    """Changed bytes of a good file, or any value as JSON."""
    plain = not (isinstance(changes, list) and all(isinstance(one, tuple) for one in changes))
    content = json.dumps(changes).encode() if plain else mutated(FILES[kind].encode(), changes)
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / "f.json"
        path.write_bytes(content)
        for attempt in (lambda: read(path), lambda: read_submission(path)):
            try:
                found: Any = attempt()
            except TiltrmError as error:
                require_one_line(error)
                continue
            if hasattr(found, "questions"):
                assert bool(found.task.well_formed(found.questions).all())


@pytest.mark.parametrize("task", [ARC, MINI_ARC], ids=lambda task: task.name)
@given(st.sampled_from(TEXTS), CHANGES)
@MANY
def test_any_arc_text(
    bounded: Callable[[], Any], task: Any, text: str, changes: list[tuple[int, int, bytes]]
) -> None:
    """What is read is written again."""
    with bounded():
        try:
            tokens = task.encode(mutated(text.encode(), changes).decode("latin-1"))
        except TiltrmError as error:
            require_one_line(error)
            return
        assert bool(task.well_formed(tokens))
        assert torch.equal(task.encode(task.decode(tokens)), tokens)
