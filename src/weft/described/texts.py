"""The table of descriptions: what an argument means, by its name."""

from __future__ import annotations

TEXTS = {
    # What is matched, and where.
    "events": "Dicts, an Arrow table or record batches, a pandas, Polars or Spark frame, or paths of files; or several "
    "such sources by name. A named source that is an iterator is live: a thread reads it.",
    "program": "A compiled program, a `weft.Pattern`, the text of a program, the path of its file, or several "
    "of these.",
    "frame": "A Spark DataFrame, batch or streaming, or paths of files. A frame of Kafka's records "
    '(`spark.readStream.format("kafka")`) stands for the events in their payloads.',
    "matches": "A DataFrame that `weft.match` returned.",
    "engine": "`local` (this process), `spark`, or `meaning` (the definition, slow). By default Spark frames "
    "are matched "
    "on Spark and everything else in this process.",
    "language": "The language of a program given as text, where neither its file's ending nor its first word tells it: "
    "ceql, eql, step, tesla, epn or sql.",
    # What the columns of events mean.
    "time": "The column with an event's time.",
    "type": "The column with an event's type.",
    "order": "One or several columns that decide between events with equal times, as in `ORDER BY ts, seq`.",
    "key": "One or several columns that tell events apart: ids of matches are made of them.",
    "rejects": "A list that events which cannot be read are appended to; without it there is a warning.",
    # Time.
    "delay": "By how many ticks an event of a live source may come after later ones; what comes later than "
    "that is late.",
    "idle_after": "After how many seconds without events a live source is no longer waited for; `rate`: by "
    "the rate that "
    "the program declares for it; None: it is always waited for.",
    "max_jump": "An event more than so many seconds ahead of the others waits until others confirm it; None: time "
    "follows any event.",
    # How it runs.
    "strategy": "How work is shared out: key, slice, replicate, query, rank, match, one or placed. By default the "
    "best by cost.",
    "lanes": "Into how many shares the work is split; `auto`: as many as the program's rates ask for.",
    "threads": "How many lanes this process works on at once.",
    "optimize": "Whether the program is rewritten into its cheapest form. The matches are the same.",
    "statistics": "Rates and selectivities to optimise by: a `weft.Statistics`, or a file that `weft stats` wrote.",
    "budget": "How much state, time and output the program may take and what happens at the limit: a `weft.Budget`, "
    "several, or such by the names of queries.",
    "shed": "A `weft.Shed`: which events are left out when there are too many.",
    # Spark only.
    "rows": "Whether the result has a row for each event of each match, as `weft.rows` gives.",
    "positions": "Whether the result has the columns positions and bindings too.",
    "heavy_keys": "Whether a job looks for frequent keys of a batch now, and gives them lanes of their own.",
    "adapt": "Whether a stream may change to a cheaper form of its queries between two triggers.",
    "checkpoint": "The checkpoint of the stream's query, so that queries which it has seen keep their state in another "
    "program.",
    "state": "Where a stream keeps its state: `files` beside the checkpoint, or in the state store of `spark`.",
    "scan": "`auto` lets tasks read the files of a plain scan of Parquet themselves, `spark` leaves that to Spark.",
    "columns": "Which columns of a batch's matches are built; all unless they are named.",
    "payload": "The columns of Kafka's payloads: a StructType, or text as in `ts TIMESTAMP, type STRING`.",
    "schema": "The frame's columns (a StructType), in a function of a declarative pipeline, where no frame "
    "may be asked.",
    "streaming": "Whether the frame is a stream, where no frame may be asked.",
    # Running programs.
    "queue": "How many events may wait for a thread that matches them; without it `push` matches.",
    "when_full": "What `push` does when the queue is full: `wait`, `drop` waiting events where that never invents a "
    "match, or `refuse` new ones.",
    "url": "The address of the server.",
    "token": "A token that the server knows.",
    "asynchronous": "Whether the methods of the client are coroutines.",
    "patience": "For how many seconds a request without an answer is tried again.",
    "verify": "Whether the server's certificate is checked, or a file of certificates to check it by.",
    "source": "The name by which the server knows this publisher; made up unless it is given.",
    # Patterns in Python.
    "step": "The name of a step, or a pattern as a group.",
    "name": "The name of a step; of a program, what its query is called.",
    "skip": "One of `weft.AfterMatch`: where the next match may begin.",
    "condition": "A condition, built of `weft.e` and `weft.step` or as text.",
    "types": "The types of events that the step takes.",
    "attributes": "Attributes that all events of a match have in common.",
    "least": "How many events, at least.",
    "most": "How many events, at most; `least` unless it is given.",
    "duration": "A number of `unit`, a timedelta, or a text as in `10 min`.",
    "unit": "The unit of a number.",
    # SQL.
    "spark": "A Spark session.",
    "tables": "Tables by name, where the names are no Python names.",
    "named": "Tables by name: Arrow tables, pandas and Polars frames, lists of dicts, files.",
    "max_steps": "How many steps one attempt may take where conditions depend on the match so far.",
    # What is shown and measured.
    "stage": "syntax, algebra, optimized, plan or tables.",
    "format": "text, json or dot.",
    "rates": "Whether the events and tasks of each component are shown.",
    "model": "Whose costs the rates are for: this machine unless it is given, `step2012`, or a file.",
    "nodes": "The plan for so many nodes, with operators placed one by one: that of strategy='placed'.",
    "sample": "Of how many events, the first ones, the statistics are; all unless it is given.",
    "time_unit": "One tick of event time: ns, us, ms, s, min, h or d.",
}
