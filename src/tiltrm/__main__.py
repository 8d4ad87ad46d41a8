"""`python -m tiltrm` is `tiltrm`."""

from tiltrm.cli import __main__  # noqa: F401
