"""weft finds patterns of events: in files, in tables and in live streams, on one core and on Spark."""
