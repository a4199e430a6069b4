"""Identities of events, and ids of matches."""
