"""Execution of a whole plan: layer by layer in one matcher, or in several matchers, one for each lane.

A `Matcher` passes each batch to its layers (`layers.py`). The operators of a layer share predicates and keys, so that a
batch is classified once, and a batch of the input once for all layers that read only the input. Matches that other
queries read become derived events (`derived.py`); in the layer that reads them, `merging.py` orders them with the input
up to the watermarks of all feeders and numbers them by *places*, which operators use like positions.

`adapting.py` measures rates; when a comparison that the optimiser relied on no longer holds, automata, situations and
rules continue in another form with the same state, and composite queries are replaced by new ones that run in parallel
for a while (`Matcher.retire`). Each lane does so independently (`changing.py`). `layer_state.py` describes the running
structure as plain data, from which `Matcher.rebuilt` restores it.
"""
