"""Algebra to better algebra of the same meaning: `pipeline.py` has the rules in their order, `rules/` one file each."""
