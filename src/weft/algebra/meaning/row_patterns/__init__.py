"""The meaning of row patterns: MATCH_RECOGNIZE evaluated naively over plain Python rows."""

from weft.algebra.meaning.row_patterns.table import evaluate_rows

__all__ = ["evaluate_rows"]
