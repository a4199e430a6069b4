"""`kafka:` and `delta:` URIs: topics and tables that `weft run` reads and writes through Spark's connectors."""

from __future__ import annotations

from weft.connectors.adapters.registry import Adapter, Role
from weft.connectors.uris import Uri
from weft.errors import UsageError
from weft.runtime.spark.connections.addresses import sink_address, source_address


def _wrong(uri: Uri, role: Role) -> str | None:
    """What is wrong with the address, in one sentence."""
    parse = source_address if role == "source" else sink_address
    try:
        parse(uri.text, role)
    except UsageError as problem:
        return str(problem).removeprefix(f"{role}: ")
    return None


_BOTH: frozenset[Role] = frozenset({"source", "sink"})
KAFKA = Adapter(
    "kafka",
    "a topic, for weft run on Spark: kafka://HOST:PORT/TOPIC",
    spark_roles=_BOTH,
    source_options={
        "format": "json or avro",
        "schema": "the columns of payloads, or a file that has them",
        "starting": "earliest, latest or a time",
    },
    sink_options={"key": "the key of records: id, query or event.FIELD"},
    lacks=_wrong,
)
DELTA = Adapter(
    "delta",
    "a Delta table, for weft run on Spark: delta:PATH",
    spark_roles=_BOTH,
    source_options={"starting": "earliest, latest or a version of the table"},
    lacks=_wrong,
)
