"""For the API reference: the comment behind a field is its documentation.

Records of this repository write shapes and meanings at the end of a field's line. Python drops
such comments, so this extension of griffe (which mkdocstrings reads the source with) keeps them.
"""

from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Give every field of a class that has none a docstring from its trailing comment."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """`answers: Tensor  # (puzzle, cell) uint8` is documented as '(puzzle, cell) uint8'."""
        if attr.docstring or not attr.lines or not isinstance(attr.parent, griffe.Class):
            return
        _, found, comment = attr.lines[-1].partition("  # ")
        if found and not comment.startswith(("noqa", "type:", "fmt:")):
            attr.docstring = griffe.Docstring(comment.strip(), parent=attr)
