"""The HTTP server, whose clients share batches, and the page that shows a run step by step.

The modules that speak HTTP (app, guard, handler, metrics, requests, server, stream) need the extra
[serve]. The others do not, so `tiltrm solve --html` works without it.
"""
