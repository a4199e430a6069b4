"""Files of events on Spark: read by the tasks of a batch, or found and read as they come in a stream."""
