"""The command line: one thin module per command, behind the program `tiltrm`."""

from tiltrm.cli.main import main

__all__ = ["main"]
