"""Why a run on Spark failed: a user's mistake, a damaged checkpoint, a process that died, or something else."""

from __future__ import annotations

import re

from weft.errors import BudgetError, InputError, UsageError, WeftError
from weft.runtime.spark.runs.checkpoint_files import damaged
from weft.runtime.spark.runs.ownership import free_bytes
from weft.runtime.spark.runs.verifying import find_damage
from weft.runtime.spark.shipping import MISSING

JAVA_GONE = "Spark's Java process has ended, most likely for want of memory"
MORE_MEMORY = "give it more (PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell')"
_NOT_STARTED = "Python worker failed to connect back"  # within the ten seconds that Spark gives it
# What Spark says when a process that worked for it is gone; the work can be done again.
_DIED = (
    "Python worker exited unexpectedly",
    _NOT_STARTED,
    "PYTHON_WORKER",
    "ExecutorLostFailure",
    "Lost executor",
    "FetchFailed",
    "InterruptedAttempt",  # our own: the next attempt sees the committed state
)
# The same, most likely: a connection to such a process has ended.
_CUT_OFF = (
    "Connection reset",
    "Connection refused",
    "Broken pipe",
    "Stream closed",
    "java.net.SocketException",
    "java.nio.channels.ClosedChannelException",
    "java.io.EOFException",
)
# What it says when its files of a checkpoint are not what it wrote.
_DAMAGED = re.compile(
    r"CANNOT_LOAD_STATE_STORE|FAILED_READ_STATE_STORE|STATE_STORE|RocksDBException|Corruption|checksum"
    r"|Malformed log file|Incomplete log file|MISSING_METADATA_FILE|STREAMING_CHECKPOINT|LOG_VERSION"
    r"|JsonParseException|JsonMappingException|MappingException|JsonEOFException|batch \d+ doesn't exist"
    r"|SQLSTATE: XXKST"  # of the state store, without a word
)
_FULL = ("No space left on device", "Disk quota exceeded", "There is not enough space", "ENOSPC")
LEAST_FREE = 1 << 16  # bytes: with less than that on its disk Spark fails in many words
_CONCURRENT = re.compile(
    r"Multiple streaming queries are concurrently using|CONCURRENT_STREAM_LOG_UPDATE|ConcurrentModificationException"
    r"|Concurrent update to the (?:commit )?log|STREAM_RUN_ID_MISMATCH"
)
_STREAM_FAILED = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: *")  # whatever it says next
_CALLED = "An error occurred while calling "  # by which Py4J begins; what was raised follows ": " in the next line
_TRACE = "Traceback (most recent call last)"
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception): .")
_LACKING = re.compile(r"ModuleNotFoundError: No module named '(pyarrow|pandas|numpy|numba)\b")


def own_error(failure: Exception) -> Exception:
    """The user's mistake as the task said it; any other failure as it is."""
    for line in str(failure).splitlines():
        for kind in (BudgetError, InputError, UsageError):
            _, found, message = line.partition(f"weft.errors.{kind.__name__}: ")
            if found:
                return as_weft(kind, message)
        if MISSING in line:
            return as_weft(UsageError, line[line.index(MISSING) :])
        if lacking := _LACKING.search(line):
            return as_weft(
                UsageError,
                f"the Python of an executor has no {lacking[1]}, which weft needs: install weft there, or name a "
                "Python that has it (PYSPARK_PYTHON, or spark.pyspark.python), see docs/spark.md",
            )
    return failure


def as_weft(kind: type[WeftError], message: str) -> WeftError:
    """A mistake of that kind."""
    return kind(message.strip())


def is_passing(failure: Exception, checkpoint: str) -> bool:
    """Whether the same may go well when it is tried again: work was interrupted, and all files are whole."""
    text = str(failure)
    if is_full(text, checkpoint):
        return False
    if any(sign in text for sign in _DIED):
        return True
    interrupted = any(sign in text for sign in _CUT_OFF) or is_suspicious(failure)
    return interrupted and find_damage(checkpoint) is None


def is_suspicious(failure: Exception) -> bool:
    """Whether Spark could not read what it keeps in the checkpoint, for whatever reason."""
    return _DAMAGED.search(str(failure)) is not None


def is_full(text: str, checkpoint: str) -> bool:
    """Whether there was no room left on a disk."""
    free = free_bytes(checkpoint) if _DAMAGED.search(text) else None
    return any(sign in text for sign in _FULL) or (free is not None and free < LEAST_FREE)


def told(failure: Exception, checkpoint: str) -> Exception:
    """A failure as one sentence."""
    known = own_error(failure)
    if known is not failure:
        return known
    text = str(failure)
    why = reason_in(text)
    if is_full(text, checkpoint):
        return UsageError(
            f"there is no room left on the disk of the checkpoint {checkpoint}, or of what the run writes ({why}): "
            "make room and start it again; it goes on where it was, and the checkpoint is not damaged"
        )
    if _CONCURRENT.search(text):
        return UsageError(
            f"another run uses the checkpoint {checkpoint} ({why}): stop that one and start this one again, or use "
            "another checkpoint and another sink"
        )
    damage = find_damage(checkpoint) if is_suspicious(failure) else None
    if damage is not None:
        return damaged(checkpoint, damage)
    if _NOT_STARTED in text:
        return UsageError(
            "a Python process of the run did not start within the ten seconds that Spark gives it: this machine does "
            "too much else. Start the run again; it goes on where it was"
        )
    if is_suspicious(failure):
        return UsageError(
            f"Spark could not read its state, though all files of the checkpoint {checkpoint} are whole ({why}): start "
            "the run again; it goes on where it was"
        )
    return UsageError(f"Spark stopped the run, which resumes when it is started again: {why}")


def reason_in(text: str) -> str:
    """The line of a failure that says most, cut to what one reads."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    lines = lines[1:] if lines and lines[0].startswith(_CALLED) else lines
    causes = [line.partition("Caused by: ")[2] for line in lines if line.startswith("Caused by: ")]
    chosen = _STREAM_FAILED.sub("", causes[-1] if causes else next(iter(lines), "no reason given"))
    if _TRACE in chosen:  # of Python: what was raised comes last
        chosen = next((line for line in reversed(lines) if _RAISED.match(line)), chosen.partition(_TRACE)[0].strip())
    return chosen if len(chosen) <= 300 else f"{chosen[:300]} …"
