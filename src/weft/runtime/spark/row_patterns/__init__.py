"""SQL's row patterns on Spark: the same engine in tasks, and Catalyst for expressions that it does not know."""
