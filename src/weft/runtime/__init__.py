"""Runtime around the kernels: events as columns, time, state, matches; in this process and on Spark.

The order of its folders: `data` (events, blocks, matches), `store` (buffers and pages), `classify` and `machine`
(conditions), `operators` (one folder for each kind), `execution` (layers, matchers), `local` and `spark`, `live`.
"""
