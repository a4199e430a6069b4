"""Patterns written in Python: FlinkCEP's vocabulary, with conditions that are expressions over attributes."""

from weft.pattern.builder import AfterMatch, Pattern
from weft.pattern.expressions import Condition, Value, coalesce, e
from weft.pattern.functions import function
from weft.pattern.gathered import step

__all__ = ["AfterMatch", "Condition", "Pattern", "Value", "coalesce", "e", "function", "step"]
