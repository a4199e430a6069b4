"""The outside world: files of events in, files of matches out."""
