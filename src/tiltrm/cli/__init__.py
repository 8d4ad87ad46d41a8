"""The command line: one thin module per command, all behind `tiltrm`."""

from tiltrm.cli.main import main

__all__ = ["main"]
