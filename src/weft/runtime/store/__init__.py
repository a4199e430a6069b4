"""State between batches: buffers of events, and pages that a snapshot saves.

Events that matches show are kept by position, until the `oldest` position that may still be shown. Values that
conditions read are kept by the operators that evaluate them.
"""
