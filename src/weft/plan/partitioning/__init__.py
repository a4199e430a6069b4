"""Splitting the work of queries into lanes: one file for each strategy; `choice.py` decides between them."""
