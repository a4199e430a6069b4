"""The automaton operator for regular queries: each is an automaton over classified events, with a match graph.

Matches that are only counted are enumerated while they are few; then `kernels/automaton/counting.py` adds up the paths
of the match graph, and with conditions `groups.py` counts groups of partial matches that no condition distinguishes.
With the strategy `rank` every lane has the whole match graph, and `kernels/automaton/ranks.py` decides which paths of
an event it enumerates. With `match`, lanes find all candidates and test those assigned to them (`candidates.py`).
Enumeration pauses regularly, so that Ctrl-C is handled.
"""
