"""Situations: participants by partition, and the search for matching sets."""
