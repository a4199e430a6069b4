"""Limits on resources: budgets and their enforcement, load shedding, and eviction.

A `Guard` (`guarding.py`) wraps the matcher. `plan/shedding.py` determines which events can be lost without adding a
match, `shedding.py` which of them are least important. Operators evict the oldest partial matches where
`plan/dropping.py` allows it. A full queue of a live program leaves a gap in the numbers of events (`waiting.py`), and
`looking.py` decides whether examining the remaining events pays off.
"""
