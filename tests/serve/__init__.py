"""Tests of tiltrm.serve."""
