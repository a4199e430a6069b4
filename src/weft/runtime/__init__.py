"""Drives the kernels: events as columns, time, state, matches; in this process and on Spark."""
