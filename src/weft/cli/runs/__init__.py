"""Commands that start runs on Spark, and list, show and stop those that were started."""
