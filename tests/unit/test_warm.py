"""`weft warm`: what it says, and what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli import warm as command
from weft.cli.main import app
from weft.kernels import warming


def warm() -> Result:
    return CliRunner().invoke(app, ["warm"])


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
