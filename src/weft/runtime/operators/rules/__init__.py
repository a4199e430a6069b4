"""The rule operator: rules that define events from events, as tables over one store of events.

`compile.py` compiles rules to tables (`kernels/rules/tables.py`); rules that differ only in constants share a row.
`kernels/rules/look_back.py` finds the rules that start at an event by an index, searches back for all rules of a row
together, and writes firings. The tables grow and shrink with deployments.
"""
