"""What a command loads only if it needs it: pandas, which Arrow would load to convert its first value."""

from __future__ import annotations

import sys
from opcode import opmap
from typing import Any


class _PandasFinder:
    """Tells Arrow that there is no pandas, and whoever else asks where it is.

    Arrow asks from compiled code; `import pandas` in Python shows in the frame that runs it.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse `pandas` to compiled code; else leave the search to the finders that follow."""
        if name != "pandas":
            return
        if not _is_imported_by_python():
            raise ModuleNotFoundError("weft keeps Arrow from loading pandas", name=name)
        sys.meta_path.remove(self)
        _shim_of_arrow().__init__()  # so that Arrow looks for it once more


def _is_imported_by_python() -> bool:
    """Return whether the import that a finder is asked for is a statement of Python's, or a call of `importlib`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    is_statement = frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_NAME"]
    return is_statement or str(frame.f_globals.get("__name__")).startswith("importlib")


def _shim_of_arrow() -> Any:
    """Return what Arrow asks whether values are pandas'."""
    import pyarrow as pa

    return pa.lib._pandas_api


def hide_pandas_from_arrow() -> None:
    """Keep Arrow from loading pandas, a quarter of a second, unless something else in this process loads it."""
    if "pandas" not in sys.modules and hasattr(_shim_of_arrow(), "__init__"):
        sys.meta_path.insert(0, _PandasFinder())
