"""Names of columns as Spark's expressions take them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Exactly this name, dots and all."""
    return "`" + name.replace("`", "``") + "`"
