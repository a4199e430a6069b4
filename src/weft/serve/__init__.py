"""A live program as a service: HTTP and WebSockets in, matches to subscribers, state that survives a kill.

`permissions.py: Gate` checks host, origin and token; `app.py` reads the body and passes it to `engine.py`, whose one
thread takes the queued commands (publications together), writes them to the journal (`journal.py`), has `program.py`
execute them, and answers. `batch_order.py` keeps the order of batches that a publisher has on their way at once.
Matches go as columns to `hub.py`: into the log, through the filters of all subscribers at once, and into the queue of
each; `streams.py` sends them. `folders.py` keeps a snapshot and the journal since then; a restart repeats the journal,
which yields the same matches and ids.
"""
