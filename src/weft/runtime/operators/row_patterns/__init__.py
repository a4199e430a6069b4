"""The row pattern operator for SQL's MATCH_RECOGNIZE: an Arrow table in, an Arrow table of matches out.

`engine.py` sorts rows into partitions (`layout.py`) and evaluates row-local conditions for all rows at once, as
letters. `kernels/row_patterns/success.py` finds backwards the states that can still succeed; then `walk.py` takes the
preferred transition at each row, or `search.py` searches depth first where conditions depend on the match.
`incremental.py` does the same for rows that arrive in pieces.
"""
