"""A running `weft serve` as the workbench sees it: queries, figures, files to publish, and matches as they come."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UsageError, WeftError

if TYPE_CHECKING:
    from weft.client.connection import Client, RemoteSubscription

PATIENCE = 5.0  # seconds for which a server that does not answer is tried
FORBIDDEN = 403
KEPT = 500  # matches that are kept for the page


class MatchTail:
    """The latest matches of one subscription, read in a thread; `total` is how many have come."""

    def __init__(self, subscription: RemoteSubscription) -> None:
        self.total = 0
        self.problem: str | None = None
        self._subscription = subscription
        self._latest: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._thread = threading.Thread(target=self._read, name="weft matches", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for match in self._subscription:
                self._latest.appendleft(match.to_json())
                self.total += 1
        except WeftError as problem:
            self.problem = str(problem)

    @property
    def missed(self) -> int:
        """How many matches were lost, because this reader was too slow."""
        return self._subscription.missed

    def latest(self, count: int) -> list[dict[str, Any]]:
        """Return the latest matches, the newest first, each as the JSON object that `weft match` writes."""
        return list(self._latest)[:count]

    def close(self) -> None:
        """End the subscription."""
        self._subscription.close()


class ServerConnection:
    """A connection to one server. What the server refuses is raised as `weft.ServiceError`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        import weft

        self.url = url.strip().rstrip("/")
        if not self.url:
            raise UsageError("give the address of a server, as `weft serve` prints it: http://127.0.0.1:8787")
        self._client: Client = weft.connect(self.url, token or None, patience=PATIENCE)
        self.tail: MatchTail | None = None
        try:
            self._client.stats()
        except BaseException:
            self._client.close()
            raise

    def queries(self) -> list[dict[str, Any]]:
        """Return the queries that run there, with their matches; none if the token does not allow to deploy."""
        from weft.client.answers import ServiceError

        try:
            return self._client.queries()
        except ServiceError as problem:
            if problem.status == FORBIDDEN:
                return []
            raise

    def stats(self) -> dict[str, Any]:
        """Return the server's figures."""
        return self._client.stats()

    def deploy(self, text: str, language: str, name: str) -> tuple[str, ...]:
        """Deploy a program; a query of it that runs already under its name is replaced. Return the names."""
        running = {str(query["name"]) for query in self.queries()}
        if name in running:
            return self._client.replace(name, text, language).names
        return self._client.deploy(text, language, name).names

    def remove(self, name: str) -> None:
        """Remove a query."""
        self._client.remove(name)

    def publish(self, file: Path) -> str:
        """Publish the events of a file; return what became of them."""
        before = self._client.flush()
        accepted, rejected, late = before.accepted, before.rejected, before.late
        self._client.publish_place(str(file))
        done = self._client.flush()
        said = f"{done.accepted - accepted:,} accepted, {done.rejected - rejected:,} rejected"
        if done.late > late:
            said += f" ({done.late - late:,} of them late)"
        if done.rejected > rejected and done.rejects:
            said += f"; the last: {done.rejects[-1]['reason']}"
        return said

    def watch(self, query: str, where: str | None) -> MatchTail:
        """Subscribe to the matches of a query (`*`: all) instead of the previous one."""
        self.unwatch()
        self.tail = MatchTail(self._client.subscribe(query, where or None))
        return self.tail

    def unwatch(self) -> None:
        """End the subscription, if there is one."""
        if self.tail is not None:
            self.tail.close()
            self.tail = None

    def close(self) -> None:
        """End the subscription and the connection."""
        self.unwatch()
        self._client.close()
