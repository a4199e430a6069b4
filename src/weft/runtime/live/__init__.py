"""Deployment and removal of queries over one stream, and subscriptions to their matches.

`deployments.py` extends one `Matcher` by the layers of each deployment; they read events from then on, and the output
of running queries. `lanes.py` does so in several lanes: queries that have a key in common are in all of them
(`keyed_lanes.py`), others in one. `subscriptions.py` delivers matches, in pieces (`pieces.py`); `filters.py` indexes
content filters by their constants, and evaluates the rest over columns with the `Classifier` of queries.
"""
