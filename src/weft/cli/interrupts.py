"""Ctrl-C ends a command soon, whatever it is doing: also within compiled code, which Python cannot interrupt."""

from __future__ import annotations

import os
import signal
import socket
import time
from threading import Event, Thread

INTERRUPTED = 130  # exit code
PATIENCE = 1.5  # seconds for the usual way, which says more

_finishes_first = Event()


def end_soon_after_interrupt() -> None:
    """From now on, end the process if it is still there some time after Ctrl-C."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    Thread(target=_watch, args=(reader, writer), daemon=True).start()


def finish_before_ending() -> None:
    """This command ends by itself after Ctrl-C, when what it has begun is finished."""
    _finishes_first.set()


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    # `writer` is here so that it lives as long as the thread: signals are written to it.
    while signal.SIGINT not in reader.recv(64):
        pass
    time.sleep(PATIENCE)
    if not _finishes_first.is_set():
        os.write(2, b"interrupted\n")
        os._exit(INTERRUPTED)
