"""Sources and sinks beyond files: topics of Kafka and tables of Delta, through Spark's own connectors."""
