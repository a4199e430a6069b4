"""Kernels for incoming events: columns to codes, several sources to one order."""
