"""Profiles of operators from those of their operands: the formulas of the cost model (NEXT 4.2, corrected)."""

from __future__ import annotations

from typing import NamedTuple

MOST_MEMBERS = 64.0  # of a run when nothing bounds it
PREDICATE_COST = 0.1  # of a condition that no index answers, for each occurrence it is asked of


class Profile(NamedTuple):
    """`rate` occurrences per second, `wait` seconds until there is one, `burst` that end together, `bursts` per second.

    `work` is what the operator itself does in a second, its operands apart.
    """

    rate: float
    wait: float
    burst: float
    bursts: float
    work: float


def leaf(rate: float) -> Profile:
    """Events of a type: they cost nothing, since every event is classified anyway."""
    return Profile(rate, 1 / rate, 1.0, rate, 0.0)


def filtered(inner: Profile, fraction: float = 1.0) -> Profile:
    """`E[θ]`: every occurrence is looked at."""
    return Profile(inner.rate * fraction, inner.wait, inner.burst * fraction, inner.bursts, inner.rate)


def union(left: Profile, right: Profile) -> Profile:
    """`E1 | E2`. The document's table lacks the division of the burst size, which makes it a rate."""
    bursts = left.bursts + right.bursts
    burst = (left.burst * left.bursts + right.burst * right.bursts) / bursts
    return Profile(left.rate + right.rate, 1 / bursts, burst, bursts, left.rate + right.rate)


def exception(wanted: Profile, unwanted: Profile) -> Profile:
    r"""`E1 \ E2`: both are looked at."""
    return wanted._replace(work=wanted.rate + unwanted.rate)


def later(inner: Profile, seconds: float) -> Profile:
    """`E @ d`."""
    return inner._replace(wait=inner.wait + seconds, work=inner.rate)


def follow(left: Profile, right: Profile, keys: float = 1.0, fraction: float = 1.0, tests: int = 0) -> Profile:
    """Profile of `E1 ; E2`: left instances wait and are compared with each burst of right ones; unmatched bursts are
    dropped.

    The document's table has bursts of less than one where the left stream is the rarer. With `keys` distinct values,
    only the instances with the key of the right one are compared. `tests` conditions keep a `fraction` of the output.
    """
    work = (
        left.rate
        + right.wait / left.wait * left.burst * right.burst * right.bursts / keys
        + max(right.bursts - left.bursts, 0.0) * right.burst
        + PREDICATE_COST * tests * left.rate
    )
    burst = left.burst * max(1.0, left.bursts * right.wait)
    return Profile(left.rate * fraction, left.wait + right.wait, burst * fraction, 1 / max(left.wait, right.wait), work)


def join(left: Profile, right: Profile, seconds: float, keys: float = 1.0, fraction: float = 1.0) -> Profile:
    """`E1 ;? E2`: all pairs within a span of time (STEP 6.1); of `keys` values only equal ones meet."""
    pairs = left.rate * right.rate * seconds / keys
    rate = pairs * fraction
    return Profile(rate, left.wait + right.wait, rate / right.bursts, right.bursts, left.rate + right.rate + pairs)


def overlap(left: Profile, right: Profile, fraction: float = 1.0) -> Profile:
    """`E1, E2`: each is assumed to meet one other (STEP 6.1)."""
    rate, bursts = left.rate + right.rate, left.bursts + right.bursts
    return Profile(rate * fraction, max(left.wait, right.wait), rate * fraction / bursts, bursts, rate)


def runs(inner: Profile, members: float) -> Profile:
    """Profile of `E+`: a run of the expected length starts at each occurrence and is reported as it grows."""
    return Profile(inner.rate * members, inner.wait, members, inner.bursts, inner.rate * members)


def longest_runs(inner: Profile, members: float) -> Profile:
    """Profile of greedy iteration: one run at a time, of at least the expected number of members."""
    return Profile(inner.rate / members, inner.wait * members, inner.burst, inner.bursts / members, inner.rate)
