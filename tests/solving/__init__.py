"""Tests of tiltrm.solving."""
