"""A server whose clients share batches, and the page where the cloud moves.

Only `app`, `metrics` and `limits` need the extra [serve]; the rest is plain tiltrm.
"""
