"""Identities of events, and ids of matches made of them."""
