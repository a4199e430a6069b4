"""Situations at work: partitions of a context, selection by policies, and the network that derived events form."""
