"""Figures and pages. They read results that others have made, never a model."""
