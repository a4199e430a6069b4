"""Kills of a server under load: one publishes, one subscribes, and the server is killed and started again."""

from __future__ import annotations

import random
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.serving import ServerProcess

import weft

PROGRAM = """define Paired(n: double)
from   Second(n = $n) and last First(n = $n) within 1 s from Second
where  n = Second.n
"""
STEP = 25  # pairs that are published at a time
BEHIND = 20_000  # pairs by which the subscriber may be behind: the server's log reaches back further


@dataclass
class Outcome:
    """What publisher and subscriber saw."""

    published: int = 0  # pairs
    accepted: int = 0  # events
    received: list[int] = field(default_factory=list)  # numbers of pairs, in the order of their matches
    ids: list[str] = field(default_factory=list)
    missed: int = 0
    kills: int = 0
    late: int = 0

    @property
    def lost(self) -> int:
        """Pairs that were accepted, and of which no match came."""
        return len(set(range(self.published)) - set(self.received))

    @property
    def twice(self) -> int:
        """Ids that came more than once."""
        return len(self.ids) - len(set(self.ids))


def free_port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def killed_under_load(folder: Path, kills: int, seed: int = 0, longest: float = 2.0) -> Outcome:
    """Kill a server so many times, each at a random moment after its start, while events come and matches go."""
    (folder / "paired.tesla").write_text(PROGRAM)
    port, chance, outcome, stop = free_port(), random.Random(seed), Outcome(), threading.Event()
    arguments = ["paired.tesla", "--state", "state", "--snapshot", "1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    server = ServerProcess(*arguments, cwd=folder)
    subscribed = threading.Event()

    def publish() -> None:
        with weft.connect(url, patience=3600) as client:
            while not stop.is_set():
                numbers = range(outcome.published, outcome.published + STEP)
                client.publish(
                    [
                        {"type": kind, "ts": 2 * n + at, "n": n}
                        for n in numbers
                        for at, kind in enumerate(("First", "Second"))
                    ]
                )
                outcome.published += STEP
                time.sleep(0.005)
                while outcome.published > len(outcome.received) + BEHIND and not stop.is_set():
                    time.sleep(0.005)
            done = client.flush()
            outcome.accepted, outcome.late = done.accepted, done.late

    def subscribe() -> None:
        with weft.connect(url, patience=3600) as client, client.subscribe("Paired") as matches:
            subscribed.set()
            for match in matches:
                outcome.ids.append(match.id)
                outcome.received.append(int(str(match.event["n"]).partition(".")[0]))
                outcome.missed = matches.missed

    subscriber = threading.Thread(target=subscribe, daemon=True)
    subscriber.start()
    assert subscribed.wait(60)
    publisher = threading.Thread(target=publish, daemon=True)
    publisher.start()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, longest))
            server.stop(signal.SIGKILL)
            outcome.kills += 1
            server = ServerProcess(*arguments, cwd=folder)
        stop.set()
        publisher.join(300)
        until = time.monotonic() + 60
        while outcome.lost and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        stop.set()
        server.stop(signal.SIGKILL)
    return outcome
