"""The situation operator: partitions of a context, selection by policies, and networks of derived events."""
