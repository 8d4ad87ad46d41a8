"""Prometheus metrics: requests by route and status, their seconds, and the engine's counts."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tiltrm.serve.engine import Engine

SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class EngineCollector(Collector):
    """The engine's counts at the time of the request."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def collect(self) -> Iterator[Metric]:
        """A family for each count."""
        counts = self.engine.counts
        puzzles = CounterMetricFamily(
            "tiltrm_puzzles", "Puzzles that ended, by outcome.", labels=["outcome"]
        )
        for outcome in ("solved", "failed", "abandoned"):
            puzzles.add_metric([outcome], getattr(counts, outcome))
        yield puzzles
        for name, words, value in (
            ("tiltrm_evaluations", "Network calls for solved puzzles.", counts.evaluations),
            ("tiltrm_batches", "Outer steps of shared batches.", counts.batches),
            ("tiltrm_trajectories", "Trajectories in these batches.", counts.trajectories),
            ("tiltrm_busy_seconds", "Time spent stepping.", counts.busy),
        ):
            yield CounterMetricFamily(name, words, value=value)
        yield GaugeMetricFamily(
            "tiltrm_held_puzzles", "Puzzles accepted and not finished.", value=self.engine.held
        )
        yield GaugeMetricFamily(
            "tiltrm_queue_limit", "Largest number of these.", value=self.engine.queue
        )


class Metrics:
    """The metrics of one server; its own registry, since a process may run several."""

    def __init__(self, engine: Engine) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tiltrm_requests", "Answers by route and status.", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "tiltrm_request_seconds", "Time to the end of an answer.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.registry.register(EngineCollector(engine))

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
