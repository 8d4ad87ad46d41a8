"""Optional dependencies of commands: a missing one becomes a sentence that says what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from tiltrm.errors import SettingsError

PACKAGES = {  # extra -> the modules that it installs
    "serve": ("fastapi", "uvicorn", "prometheus_client", "pydantic", "starlette"),
    "export": ("onnx", "onnxruntime"),
}


@contextmanager
def needs_extra(command: str, extra: str) -> Iterator[None]:
    """Import what needs the extra in here; SettingsError if one of its packages is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES[extra]:
            raise
        raise SettingsError(
            f"tiltrm {command} needs {error.name}, which is not here; pip install 'tiltrm[{extra}]'"
        ) from error
