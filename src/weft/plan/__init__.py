"""From the algebra to physical operators, and to the automata and tables they run on.

`planner.py` has the one function that plans; nothing else does. `layers.py` groups queries that see the same events
into *layers*, each after those that feed it, and creates their operators (`operators.py`): automata, graphs of joins,
situations with their search, rules. `weft explain --stage plan` prints the result.

Sequences of single events connected only by equal keys are keyed chains (`chains.py`), one operator; other composite
patterns are joined occurrence by occurrence (`graph.py`), in the order that the optimiser chose. For situations,
`search.py` derives steps and blocks from the dependencies between slots. `row_patterns/` compiles a row pattern to
states with transitions in order of preference; loops, PERMUTE and anchors are resolved there.

`partitioning/` has one file for each split strategy, which returns a `Split` or the reason why it does not apply;
`choice.py` compares the estimated loads. `parallel/` has Step's rates and tasks, from which `--lanes auto` follows.
`forms/` judges running queries by measured rates, and plans the forms they go over to.
`changes.py` compares a program with its replacement, `reuse.py` finds running sub-patterns for a new query.
`shedding.py` says which events may be shed, `dropping.py` which partial matches may be evicted.
"""
