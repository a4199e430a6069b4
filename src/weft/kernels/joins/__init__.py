"""Operators that join occurrences: sequence, overlap, repetition, and negation."""
