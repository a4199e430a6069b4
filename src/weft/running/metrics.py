"""`/metrics` in Prometheus' format and `/health`, served for a run on a separate port."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from weft.errors import UsageError
from weft.running.activity import Activity
from weft.runtime.watching.left_out import by_query

LOOPBACK = "127.0.0.1"
STALLED_AFTER = 300.0  # seconds without a trigger that has come to its end

COUNTERS = {
    "events": "Events taken",
    "late": "Events that came too late and took no part",
    "unreadable": "Events that could not be read",
    "triggers": "Triggers that were written",
    "shed": "Events that were left out within limits",
    "sampled": "Matches that were left out within limits",
    "dropped": "Partial matches, and what else waited, that were dropped within limits",
}
GAUGES = {
    "state_bytes": "Bytes of state",
    "held": "Events that wait for the watermark",
    "behind": "Number of events since the oldest one that a later match may contain",
    "waiting": "What is kept that may still become part of a match",
    "lag": "Ticks from the watermark to the latest event",
    "seconds": "Seconds that the last trigger took",
}


class Metrics:
    """Collect the figures of runs on demand."""

    def __init__(self, runs: Mapping[str, Activity]) -> None:
        self._runs = runs

    def collect(self) -> Iterator[Metric]:
        """Return all metrics of all runs; the label `run` is a run's name."""
        summaries: dict[str, Any] = {name: activity.summary() for name, activity in self._runs.items()}
        for key, text in COUNTERS.items():
            family = CounterMetricFamily(f"weft_{key}", text, labels=["run"])
            for name, summary in summaries.items():
                family.add_metric([name], summary[key])
            yield family
        matches = CounterMetricFamily("weft_matches", "Matches of a query", labels=["run", "query"])
        silent = GaugeMetricFamily(
            "weft_query_silent_seconds", "Silence of a query that is longer than ever before", labels=["run", "query"]
        )
        for name, summary in summaries.items():
            for query, own in summary["queries"].items():
                matches.add_metric([name, query], own["matches"])
                silent.add_metric([name, query], own["silent_for"] or 0)
        yield matches
        yield silent
        reached = CounterMetricFamily(
            "weft_step", "Partial matches that reached a step", labels=["run", "query", "step"]
        )
        for name, summary in summaries.items():
            for one, count in summary["steps"].items():
                query, _, step = one.rpartition("/")
                reached.add_metric([name, query, step], count)
        yield reached
        yield _left_out(summaries)
        yield from _by_operator(summaries)
        for key, text in GAUGES.items():
            gauge = GaugeMetricFamily(f"weft_{key}", text, labels=["run"])
            for name, summary in summaries.items():
                last = summary["last_trigger"]
                if last is not None and last[key] is not None:
                    gauge.add_metric([name], last[key])
            yield gauge
        uptime = GaugeMetricFamily("weft_uptime_seconds", "Seconds since the run started", labels=["run"])
        for name, summary in summaries.items():
            uptime.add_metric([name], summary["uptime"])
        yield uptime


def _left_out(summaries: Mapping[str, Any]) -> Metric:
    """Return the losses within limits, by query."""
    labels = ["run", "way", "query", "step"]
    family = CounterMetricFamily("weft_left_out", "What was shed, sampled or dropped of a query", labels=labels)
    for name, summary in summaries.items():
        for one in by_query(summary["left_out"], summary["queries"]):
            family.add_metric([name, one.way, one.query, one.step], one.number)
    return family


def _by_operator(summaries: Mapping[str, Any]) -> Iterator[Metric]:
    """Return what operators received and emitted, and the events of lanes."""
    for key, text in {
        "received": "Events that operators received",
        "emitted": "Matches that operators emitted",
    }.items():
        family = CounterMetricFamily(f"weft_operator_{key}", text, labels=["run", "operator"])
        for name, summary in summaries.items():
            for operator in summary["operators"]:
                family.add_metric([name, operator["name"]], operator[key])
        yield family
    lanes = GaugeMetricFamily("weft_lane_taken", "Events that a lane has taken", labels=["run", "lane"])
    for name, summary in summaries.items():
        for lane in (summary["last_trigger"] or {}).get("lanes", ()):
            lanes.add_metric([name, str(lane["lane"])], lane["taken"])
    yield lanes


def metrics_text(runs: Mapping[str, Activity]) -> bytes:
    """Return all metrics in Prometheus' format."""
    registry = CollectorRegistry()
    registry.register(Metrics(runs))
    return generate_latest(registry)


def health(activity: Activity, now: float | None = None) -> dict[str, object]:
    """Return `ok`, or `stalled` if no trigger has ended for long."""
    summary: dict[str, Any] = activity.summary()
    last = summary["last_trigger"]
    since = (now or time.time()) - (summary["started"] if last is None else last["at"])
    status = "ok" if since < STALLED_AFTER else "stalled"
    return {"status": status, "uptime": summary["uptime"], "seconds_since_trigger": since}


def serve(address: str, runs: Mapping[str, Activity]) -> ThreadingHTTPServer:
    """Serve `/metrics` and `/health` in a thread, on PORT of this machine or on HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        server = ThreadingHTTPServer((host or LOOPBACK, int(port)), _handler(runs))
    except (ValueError, OSError, OverflowError) as problem:
        raise UsageError(f"cannot listen on {address!r}: {problem}; give a free PORT, or HOST:PORT") from None
    threading.Thread(target=server.serve_forever, name="weft-metrics", daemon=True).start()
    return server


def _handler(runs: Mapping[str, Activity]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers the two addresses."""

        def do_GET(self) -> None:
            """One request."""
            if self.path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(runs))
            elif self.path == "/health":
                states = {name: health(activity) for name, activity in runs.items()}
                well = all(state["status"] == "ok" for state in states.values())
                body = json.dumps({"status": "ok" if well else "stalled", "runs": states})
                self._answer(200 if well else 503, "application/json", body.encode())
            else:
                self._answer(404, "text/plain", b"only /metrics and /health are here\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged."""

    return Handler
