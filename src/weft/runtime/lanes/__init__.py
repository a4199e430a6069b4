"""Lanes, on every engine: which events a lane receives, and which matches it emits.

`routing.py` assigns events to lanes, as owned events or as copies; `ownership.py` filters the matches a lane emits.
`heavy.py` finds heavy keys in the first events. `sieve.py` drops events that no query can use, by predicates that
`uses.py` derives from the operators. A `Matcher` is created per lane: in threads by `execution/threaded_matcher.py`, on
Spark in each task.
"""
