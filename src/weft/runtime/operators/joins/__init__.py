"""The join operator for composite patterns: the graph of a plan over columnar batches.

Occurrences are rows in one store (`occurrence_store.py`); each node of the graph has its class, chosen by pattern in
`build.py`. Nodes shared by several queries run once. The graph can be extended by deployed queries and shrinks when
queries are removed.
"""
