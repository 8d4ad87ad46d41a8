"""A server whose clients share batches, and the page where the cloud moves.

What speaks HTTP needs the extra [serve]. `recording`, `replay` and the engine with what it steps
are plain tiltrm, so that `tiltrm solve --html` works without it.
"""
