"""From what a user gives to batches of events in stream order."""
