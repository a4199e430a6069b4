"""State between batches: buffers of events, and the pages of snapshots.

Events that matches include are stored by position, until the `oldest` position that a later match may contain. Values
that conditions read are stored by the operators that evaluate them.
"""
