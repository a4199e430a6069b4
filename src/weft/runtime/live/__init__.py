"""Queries that come and go over one stream, and those who subscribe to what they find."""
