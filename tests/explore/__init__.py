"""Tests of tiltrm.explore."""
