"""Automata: partial matches as a compact graph, and the matches enumerated from it."""
