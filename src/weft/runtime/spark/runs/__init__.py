"""`weft run` on Spark: a run, what it writes, what its checkpoint keeps, and what becomes of it when it fails."""
