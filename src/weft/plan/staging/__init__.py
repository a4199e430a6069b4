"""Strategy `placed`: the operators of queries on nodes, in stages (NEXT 4.4, Step 4.4).

`placing.py` decides where operators run, and which patterns are divided into shares; `fragments.py` makes lanes of what
runs in one node at one stage, and channels between them.
"""
