"""What `import tiltrm` offers, pinned."""

import types

import tiltrm

PUBLIC = {
    "Adaptive", "CheckpointError", "DataError", "DegenerateError", "DeviceError", "Exploration",
    "PuzzleError", "RecursiveModel", "Result", "SettingsError", "Solution", "Stage", "State",
    "TiltrmError", "diagnose", "explore", "guides", "load", "save", "solve",
}  # fmt: skip


def test_exported_names_are_these_and_no_others() -> None:
    assert set(tiltrm.__all__) == PUBLIC
    assert tiltrm.__all__ == sorted(tiltrm.__all__)
    held = {
        name
        for name, value in vars(tiltrm).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert held | {"guides"} == PUBLIC


def test_explore_is_the_function_whatever_is_imported_later() -> None:
    from tiltrm.settings import Exploration

    assert callable(tiltrm.explore)
    assert tiltrm.Exploration is Exploration
