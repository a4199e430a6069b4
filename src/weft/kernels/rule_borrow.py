"""The arrays of rules without their owners (see `borrow`)."""

from __future__ import annotations

from weft.kernels import rule_tables as t
from weft.kernels.borrow import borrowed
from weft.kernels.jit import spliced


@spliced
def borrow_rules(lent: t.Rules) -> t.Rules:
    """The same, borrowed."""
    return t.Rules(
        borrowed(lent.rows),
        borrowed(lent.steps),
        borrowed(lent.extents),
        borrowed(lent.tests),
        borrowed(lent.keys),
        borrowed(lent.code),
        borrowed(lent.fields),
        borrowed(lent.feeds),
        borrowed(lent.row_of),
    )


@spliced
def borrow_index(lent: t.Index) -> t.Index:
    """The same, borrowed."""
    return t.Index(
        borrowed(lent.access),
        borrowed(lent.wholes),
        borrowed(lent.floats),
        borrowed(lent.nodes),
        borrowed(lent.members),
        borrowed(lent.places),
    )


@spliced
def borrow_store(lent: t.Store) -> t.Store:
    """The same, borrowed."""
    return t.Store(
        borrowed(lent.types),
        borrowed(lent.columns),
        borrowed(lent.chains),
        borrowed(lent.chain_columns),
        borrowed(lent.times),
        borrowed(lent.starts),
        borrowed(lent.origins),
        borrowed(lent.values),
        borrowed(lent.heads),
        borrowed(lent.entries),
        borrowed(lent.positions),
        borrowed(lent.marks),
        borrowed(lent.texts),
        borrowed(lent.text_offsets),
    )


@spliced
def borrow_lanes(lent: t.Lanes) -> t.Lanes:
    """The same, borrowed."""
    return t.Lanes(
        borrowed(lent.series),
        borrowed(lent.columns),
        borrowed(lent.order),
        lent.stride,
        borrowed(lent.slots),
        borrowed(lent.keys),
        borrowed(lent.counts),
        borrowed(lent.lanes),
        borrowed(lent.times),
        borrowed(lent.records),
        borrowed(lent.numbers),
    )


@spliced
def borrow_work(lent: t.Work) -> t.Work:
    """The same, borrowed."""
    return t.Work(
        borrowed(lent.frames),
        borrowed(lent.picked),
        borrowed(lent.queue),
        borrowed(lent.stack),
        borrowed(lent.results),
        borrowed(lent.partials),
        borrowed(lent.counts),
        borrowed(lent.pending),
        borrowed(lent.fixed),
        borrowed(lent.memos),
    )


@spliced
def borrow_output(lent: t.Output) -> t.Output:
    """The same, borrowed."""
    return t.Output(
        borrowed(lent.rows),
        borrowed(lent.starts),
        borrowed(lent.ends),
        borrowed(lent.offsets),
        borrowed(lent.positions),
        borrowed(lent.labels),
        borrowed(lent.kinds),
        borrowed(lent.words),
    )
