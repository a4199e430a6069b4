"""Servers of `weft serve` as processes of their own, for tests and benchmarks: started, asked, and killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

PATIENCE = 120.0  # seconds for a start, in which kernels may be compiled


class ServerProcess:
    """A server on a free port of this machine; `with` it, it ends with the block."""

    def __init__(self, *arguments: str, cwd: Path | None = None) -> None:
        chosen = [] if "--port" in arguments else ["--port", "0"]
        command = [sys.executable, "-m", "weft", "serve", *chosen, *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
        self.said: list[str] = []
        self.url = ""
        self._is_there = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._is_there.wait(PATIENCE) or not self.url:
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"the server did not start: {''.join(self.said)}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"serves at (\S+) ", line)
            if found:
                self.url = found[1]
                self._is_there.set()
        self._is_there.set()

    @property
    def port(self) -> int:
        """The port that was chosen."""
        return int(self.url.rpartition(":")[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
