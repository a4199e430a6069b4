"""Matches on their way out: lists, ids, order, JSON."""
