"""Commands that serve a program, or talk to a server."""
