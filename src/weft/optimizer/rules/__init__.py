"""One file per rule; the file, the function and the line in the trace have the same name."""
