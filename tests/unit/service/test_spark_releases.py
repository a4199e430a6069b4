"""What is said of a release of Spark that is not supported, or lacks something."""

from __future__ import annotations

import sys

import pytest

from weft.errors import UsageError
from weft.runtime.spark import compat


@pytest.mark.parametrize(
    ("version", "release"), [("4.0.5", (4, 0)), ("3.5.9", (3, 5)), ("4.3.0.dev1", (4, 3)), ("5", (5, 0))]
)
def test_the_release_of_a_version(version: str, release: tuple[int, int]) -> None:
    assert compat.release_of(version) == release


@pytest.mark.parametrize("version", ["3.4.4", "5.0.1"])
def test_another_release_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(compat, "RELEASE", compat.release_of(version))
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(UsageError, match=rf"PySpark 3\.5 or newer, below 5\.0, and PySpark {version} is installed"):
        compat.check_release()


def test_streams_need_a_newer_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "RELEASE", (3, 5))
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    with pytest.raises(UsageError, match=r"^streams need PySpark 4\.0 or newer, and PySpark 3\.5\.9 is installed$"):
        compat.require_streams("streams")


def test_streams_need_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(UsageError, match="pip install protobuf"):
        compat.require_streams("streams")
