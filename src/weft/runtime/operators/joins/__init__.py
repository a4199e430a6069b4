"""The engine of composite patterns: the operators of a plan's graph over columnar batches."""
