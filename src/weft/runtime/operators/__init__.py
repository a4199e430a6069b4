"""Physical operators at run time, one folder for each kind: events in, matches out, state as pages."""
