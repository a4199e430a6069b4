"""Files of programs that change while they run."""

from __future__ import annotations

import os
from pathlib import Path

from weft.running.program_files import ProgramFiles


def test_a_folder_stands_for_the_programs_in_it(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (tmp_path / "one.ceql").write_text("a")
    files = ProgramFiles([str(tmp_path / "one.ceql"), str(rules)])
    assert not files.have_changed()
    (rules / "b.tesla").write_text("b")
    (rules / "a.epn").write_text("b")
    for other in ("notes.txt", ".hidden.ceql", "_part.ceql"):
        (rules / other).write_text("c")
    assert files.paths() == [str(tmp_path / "one.ceql"), str(rules / "a.epn"), str(rules / "b.tesla")]
    assert files.have_changed()
    assert not files.have_changed()


def test_a_file_that_changes_or_goes_is_noticed(tmp_path: Path) -> None:
    one = tmp_path / "one.ceql"
    one.write_text("a")
    files = ProgramFiles([str(one)])
    one.write_text("ab")
    assert files.have_changed()
    os.utime(one, ns=(1, 1))
    assert files.have_changed()
    one.unlink()
    assert files.have_changed()
    assert not files.have_changed()
