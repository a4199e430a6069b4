"""Running on Spark: an embedded session, batch and streaming DataFrames, files, and continuous runs."""
