"""The notebooks of the examples run from their first cell to their last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.spark
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert cells
    assert any(output.output_type in ("stream", "execute_result") for cell in cells for output in cell.outputs)
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
