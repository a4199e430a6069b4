"""Streams on Spark: a streaming DataFrame of events in, one of matches out."""
