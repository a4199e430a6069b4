"""Ctrl-C ends a command soon, whatever it is doing: also within compiled code, which Python cannot interrupt."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from threading import Event, Thread

from weft.source import printable

INTERRUPTED = 130  # exit code
INTERRUPT_GRACE_S = 1.0  # seconds for the usual way, which says more
ORDERLY = 1.5  # seconds for what has something to finish

_has_order = Event()
_happened = Event()
_said = Event()


def end_soon_after_interrupt() -> None:
    """From now on, end the process if it is still there some time after Ctrl-C."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    Thread(target=_watch, args=(reader, writer), daemon=True).start()


def end_in_order() -> None:
    """This command finishes something after Ctrl-C, if that does not take too long."""
    _has_order.set()


def say_interrupted(*more: object) -> None:
    """Say on stderr that it was interrupted."""
    _said.set()
    print(printable("; ".join(["interrupted", *map(str, more)])), file=sys.stderr, flush=True)


def was_interrupted() -> bool:
    """Whether somebody pressed Ctrl-C, and is watched for: what fails then fails because of it."""
    return _happened.is_set()


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    # `writer` is here so that it lives as long as the thread: signals are written to it.
    while signal.SIGINT not in reader.recv(64):
        pass
    _happened.set()
    time.sleep(ORDERLY if _has_order.is_set() else INTERRUPT_GRACE_S)
    if not _said.is_set():
        say_interrupted()
    os._exit(INTERRUPTED)
