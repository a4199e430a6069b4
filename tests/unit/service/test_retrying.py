"""A run whose work was interrupted starts its query again, also when that start is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import StreamingQueryException

from weft import api
from weft.connectors.files import ENDINGS, READERS
from weft.errors import UsageError
from weft.optimizer.pipeline import optimize
from weft.runtime.spark.runs import run as module
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.run import TRIES, ContinuousRun


class Failed(Py4JJavaError):
    """An error in Java, without Java."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)
        self.text = text

    def __str__(self) -> str:
        return self.text


CUT_OFF = "An error occurred while calling o7.load.\n: java.io.IOException: Broken pipe"
Outcome = Exception | None  # of a query: how it ends


class Query:
    """A query of Spark's that ends at once."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def awaitTermination(self, timeout: float | None = None) -> bool:
        if self.outcome is not None:
            raise self.outcome
        return True


def run_of(folder: Path, starts: Sequence[Exception | Query], monkeypatch: pytest.MonkeyPatch) -> ContinuousRun:
    """A run whose query starts, or fails to, in this order."""
    (folder / "in").mkdir()
    program = api.compile("SELECT * WHERE A")
    options = RunOptions(str(folder / "out"), str(folder / "state"), until="read")
    run = ContinuousRun(optimize(program), [("in", str(folder / "in"))], options, ENDINGS, READERS, program)
    left: Iterator[Exception | Query] = iter(starts)

    def begun(*_: object, **__: object) -> Query:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(run, "_begun", begun)
    monkeypatch.setattr(run, "_job", lambda _: (None, None))
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)
    return run


@pytest.mark.parametrize(
    "cut_off", [CUT_OFF, "An error occurred while calling o8.load.\n: java.io.IOException: Stream closed"]
)
def test_a_query_that_cannot_be_started_again_at_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_off: str
) -> None:
    interrupted = StreamingQueryException("Python worker exited unexpectedly")
    run = run_of(tmp_path, [Query(interrupted), Failed(cut_off), Failed(cut_off), Query(None)], monkeypatch)
    run.start()
    assert run.wait()


def test_starts_that_are_interrupted_again_and_again_end_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = StreamingQueryException("Python worker exited unexpectedly")
    run = run_of(tmp_path, [Query(interrupted), *[Failed(CUT_OFF)] * TRIES], monkeypatch)
    run.start()
    with pytest.raises(UsageError, match=r"resumes when it is started again: java\.io\.IOException: Broken pipe"):
        run.wait()


def test_the_end_of_java_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, [Query(Py4JNetworkError("Answer from Java side is empty"))], monkeypatch)
    run.start()
    with pytest.raises(UsageError, match="Spark's Java process has ended"):
        run.wait()
