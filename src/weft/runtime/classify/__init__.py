"""Predicates once for all queries: columns to codes, codes to letters, keys to numbers."""
