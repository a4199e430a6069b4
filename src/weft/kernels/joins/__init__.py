"""Operators that join occurrences: one after the other, overlapping, repeated, not at all."""
