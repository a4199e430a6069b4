"""`weft warm`: what it says, and what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli.main import app
from weft.cli.setup import warm as command
from weft.kernels import warming
from weft.runtime.spark import archive


def warm(*options: str) -> Result:
    return CliRunner().invoke(app, ["warm", *(options or ["--no-spark"])])


def test_nothing_is_compiled_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(warming, "all_kernels", list)
    result = warm()
    assert result.exit_code == 0
    assert result.output.startswith("all kernels were compiled before")


def test_kernels_that_cannot_be_compiled_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(warming, "all_kernels", lambda: ["weft.kernels.nowhere:nothing"])
    result = warm()
    assert result.exit_code == 1
    assert "weft.kernels.nowhere:nothing" in result.output


def test_without_a_private_folder_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "cache_folder", lambda: None)
    result = warm()
    assert result.exit_code == 1
    assert "set WEFT_CACHE" in result.output


def test_what_spark_loads_is_kept_once_and_taken_from_then_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The Java that is started writes the file; here one is put in its place."""
    kept: list[Path] = []

    def keep(file: Path) -> None:
        kept.append(file)
        file.write_bytes(b"classes")

    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(command, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(archive, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(archive, "keep_classes", keep)
    monkeypatch.setattr(warming, "all_kernels", list)
    assert archive.archive_options() == []
    assert f"what Spark's Java loads is in {tmp_path}" in warm("--spark").output
    assert f"-XX:SharedArchiveFile={kept[0]}" in archive.archive_options()
    assert "was kept before" in warm("--spark").output
    assert len(kept) == 1


def test_a_java_that_keeps_no_classes_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs do without; nothing unfinished is left."""
    monkeypatch.setattr(archive.sys, "executable", "true")
    assert archive.keep_classes(tmp_path / "spark.jsa") == "this Java keeps none"
    assert list(tmp_path.iterdir()) == []
