"""Predicates evaluated once for all queries: columns to codes, codes to letters, keys to slots."""
