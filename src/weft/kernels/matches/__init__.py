"""Kernels for outgoing matches: lists, ids, order, JSON."""
