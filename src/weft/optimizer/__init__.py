"""Rewriting of the algebra into a cheaper form of the same meaning.

`pipeline.py` has the order of the rules, `rules/` one pure function per file. For composite queries, `chooser.py`
divides the pattern into chains (`chains.py`, with the conditions that prevent reordering) and unions, operands first;
`cost/brackets.py` and `cost/branches.py` find the cheapest form, the rules build it, and `invariants.py` checks it.
`trace.py` records each rewrite with its costs and each refusal; `sharing.py` reverts rewrites that cost the whole
program more, and `join_order.py` compares rewritten sequences and unions by prices fitted to the kernels
(`weft bench brackets`). Every choice by cost also records the comparisons it rests on (`trace.Inequality`), so that
running queries can be replanned when measured rates contradict them.
"""
