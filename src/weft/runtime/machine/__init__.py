"""Input of the machine in `weft.kernels.machine`: values of events, and conditions over several events as code.

Conditions on one event belong to the classifier. Those over several events are compiled in one place (`code.py`) for
all languages: an operator only maps variables to slots, and provides results it computes itself (its `Terms`). Values
are a kind and a word each, so that integers are exact. Comparisons of two attributes do not use the machine: kernels
test them in their loops. `evaluator.py` has the texts and scratch arrays of one set of conditions.
"""
