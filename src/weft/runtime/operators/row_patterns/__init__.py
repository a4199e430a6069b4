"""SQL's row patterns in process: an Arrow table in, an Arrow table of matches out."""
