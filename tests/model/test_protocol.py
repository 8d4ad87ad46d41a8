"""The optional attributes of a model: read from any model, defaults for missing ones."""

import torch

from tiltrm.model import TRM, ModelInfo, TRMConfig, model_info

SMALL = TRMConfig(cells=9, vocabulary=5, width=32, heads=2, prefix=3)


def test_a_model_of_the_six_functions_alone_has_the_defaults():
    assert model_info(object()) == ModelInfo("", None, False, ())


def test_an_attribute_that_is_there_is_read(stubborn):
    """A foreign model may have some of them: this one knows its task and its threshold."""
    model = stubborn(torch.ones(16), task="sudoku4", decide_above=0.0)
    assert model_info(model) == ModelInfo("sudoku4", 0.0, False, ())


def test_every_model_of_ours_has_all_of_them():
    model = TRM(SMALL)
    assert all(hasattr(model, name) for name in ModelInfo._fields)
    assert model_info(model) == ModelInfo("", None, False, [])
    model.task, model.decide_above, model.decide_settled = "maze", 2.5, True
    model.import_notes = ["a note"]
    assert model_info(model) == ModelInfo("maze", 2.5, True, ["a note"])
