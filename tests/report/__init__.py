"""Tests of the drawings, on shards made by hand."""
