"""A server's figures in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

COUNTERS = {
    "events": "Events accepted",
    "late": "Events that came too late and took no part",
    "unreadable": "Events that could not be read",
    "requests": "Publications",
    "delivered": "Matches taken by subscribers",
    "missed": "Matches that subscribers were too slow for",
    "work_seconds": "Seconds of work of the engine",
    "snapshots": "Snapshots taken by this process",
}
GAUGES = {
    "subscribers": "Subscribers that are connected",
    "queued_bytes": "Bytes of publications that wait",
    "journal_bytes": "Bytes of the journal since the last snapshot",
    "state_bytes": "Bytes of state",
}


class Figures:
    """Collects a server's metrics on demand."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        for key, text in COUNTERS.items():
            yield CounterMetricFamily(f"weft_serve_{key}", text, value=self._figures[key])
        for key, text in GAUGES.items():
            yield GaugeMetricFamily(f"weft_serve_{key}", text, value=self._figures[key])
        matches = CounterMetricFamily("weft_serve_matches", "Matches of a query", labels=["query"])
        for query, count in self._figures["matches"].items():
            matches.add_metric([query], count)
        yield matches


def figures_text(figures: Mapping[str, Any]) -> bytes:
    """Return metrics in Prometheus' format."""
    registry = CollectorRegistry()
    registry.register(Figures(figures))
    return generate_latest(registry)
