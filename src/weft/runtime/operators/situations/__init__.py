"""The situation operator: partitions of a context, selection by policies, and networks of derived events.

`kernels/situations/partitions.py` puts events into slots, `blocks.py` computes before which time a block must end, and
`search.py` selects. The prefix that several situations share is evaluated once per batch, and each situation keeps the
events that end it (`beginnings.py`).
"""
