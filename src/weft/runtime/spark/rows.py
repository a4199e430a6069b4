"""One row for each event of each match: the match, the variable, its number in the match, and all its columns."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.runtime.spark.columns import quoted

_ORIGIN, _REMEMBERED = "weft_origin", 256
BESIDE = ("query", "match_id", "variable", "number")  # what stands beside the columns of an event


@dataclass(frozen=True)
class Origin:
    """How matches were found."""

    program: Program
    time: str
    type: str
    order: tuple[str, ...]
    key: tuple[str, ...] = ()

    def as_metadata(self) -> dict[str, str]:
        """A note for the column of ids, by which this process knows it again."""
        name = uuid.uuid4().hex
        _origins[name] = self
        while len(_origins) > _REMEMBERED:
            _origins.popitem(last=False)
        return {_ORIGIN: name}


_origins: OrderedDict[str, Origin] = OrderedDict()


def origin_of(matches: DataFrame) -> Origin | None:
    """How matches were found, if this process found them."""
    noted = next(((field.metadata or {}).get(_ORIGIN) for field in matches.schema if field.name == "id"), None)
    return None if noted is None else _origins.get(noted)


def match_rows(matches: DataFrame) -> DataFrame:
    """The events of matches, row by row in stream order; an event of two variables comes once for each.

    `number` counts the events of a match from 1. All variables must show the same columns.
    """
    variables = variables_in(matches)
    each = F.array_compact(F.array(*(_events(name) for name in variables)))
    ordered = F.array_sort(F.flatten(each), lambda left, right: left["number"] - right["number"])
    flat = matches.select("query", F.col("id").alias("match_id"), F.explode(ordered).alias("each"))
    names = next(iter(variables.values()))
    beside = [f"match_{name}".replace("match_match_", "match_") if name in names else name for name in BESIDE]
    values = [F.col("query"), F.col("match_id"), F.col("each.variable"), F.col("each.number")]
    own = [F.col("each")["event"][name].alias(name) for name in names]
    return flat.select(*(value.alias(name) for value, name in zip(values, beside, strict=True)), *own)


def variables_in(matches: DataFrame) -> dict[str, list[str]]:
    """The variables of matches, each with the columns that it shows."""
    if not {"query", "id"} <= set(matches.columns):
        raise UsageError("weft.rows takes matches as weft.match gives them, with query, id and variables")
    kind = next((field.dataType for field in matches.schema if field.name == "variables"), None)
    if not isinstance(kind, StructType) or not len(kind):
        raise UsageError("these matches have no variables, so there are no events to show: select some")
    return {field.name: field.dataType.elementType.names for field in kind}


def _events(variable: str) -> Column:
    """The events of a variable, each with its number in the match."""
    return F.zip_with(
        F.col("bindings")[variable],
        F.col(f"variables.{quoted(variable)}"),
        lambda position, event: F.struct(
            F.lit(variable).alias("variable"),
            F.call_function("array_position", F.col("positions"), position).cast("int").alias("number"),
            event.alias("event"),
        ),
    )
