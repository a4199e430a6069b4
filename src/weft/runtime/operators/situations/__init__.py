"""The situation operator: partitions of a context, selection by policies, and networks of derived events.

`kernels/situations/partitions.py` puts events into slots, `blocks.py` computes the time before which a block must end,
and `search.py` selects sets. A prefix that several situations share is evaluated once per batch, and each situation
stores the events that end it (`beginnings.py`).
"""
