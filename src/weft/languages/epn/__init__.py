"""Patterns with policies: event processing networks of sequence, all, any and absence."""
