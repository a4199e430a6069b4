"""Lanes, on every engine: which events a lane receives, and which matches it emits."""
