"""Checkpoints of TinyRecursiveModels, nano-trm and HRM, read into tiltrm's own models."""

from tiltrm.model.importers.run import import_checkpoint

__all__ = ["import_checkpoint"]
