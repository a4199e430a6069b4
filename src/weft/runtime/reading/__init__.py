"""Reading: from a user's data to batches of events in stream order.

`order.py` sorts finite input and assigns positions. Of several live sources, `arrivals.py` reads each in a thread, and
`stabilise.py` merges them: events that every source has passed are sorted together (`kernels/events/merge.py`). It also
determines the watermark.
"""
