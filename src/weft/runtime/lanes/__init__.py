"""Lanes at work, on every engine: which events a lane is given, which matches it tells, and lanes in threads."""
