"""The command line: thin shells around the public functions. One file per command."""
