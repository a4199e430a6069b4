"""Matches as rows, lines and JSON."""
