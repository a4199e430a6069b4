"""Six common patterns, for weft and as the Spark SQL that a careful user writes, and the events to find them in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SYMBOLS, ACCOUNTS = 100, 100_000
LARGE = 900  # a trade of this volume or more is large: one in ten
WITHIN = 1000  # milliseconds
_KINDS = pa.array(["SELL", "BUY", "CANCEL"])


@dataclass(frozen=True)
class Task:
    """A pattern: the query for weft, its language, and SQL that gives the same matches from the view `events`.

    `payments`: its events are payments, else trades.
    """

    name: str
    language: str
    query: str
    sql: str
    payments: bool = False


_LARGE_TRADES = f"a[volume >= {LARGE}] AND b[volume >= {LARGE}] AND c[volume >= {LARGE}]"
_BACKWARDS = "OVER (PARTITION BY name ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"

TASKS = (
    Task(
        "three events, skip till next, by symbol",
        "eql",
        f"""
        SELECT * FROM SELL a ; BUY b ; SELL c
        WHERE FILTER(a.name = b.name), FILTER(b.name = c.name),
              FILTER(a.volume >= {LARGE}), FILTER(b.volume >= {LARGE}), FILTER(c.volume >= {LARGE})
        """,
        # Both windows have one order, so that rows are shuffled and sorted once; small trades are left in the scan.
        f"""
        WITH large AS (SELECT type, ts, name FROM events WHERE volume >= {LARGE} AND type IN ('SELL', 'BUY')),
        sells AS (SELECT *, last(if(type = 'SELL', ts, NULL), true) {_BACKWARDS} AS sell FROM large),
        buys AS (SELECT *, last(if(type = 'BUY', struct(ts, sell), NULL), true) {_BACKWARDS} AS buy FROM sells)
        SELECT name, ts, buy.ts AS second, buy.sell AS third FROM buys WHERE type = 'SELL' AND buy.sell IS NOT NULL
        """,
    ),
    Task(
        "the same, contiguous",
        "ceql",
        f"SELECT * WHERE SELL AS a : BUY AS b : SELL AS c FILTER {_LARGE_TRADES} PARTITION BY [name] WITHIN 1 HOUR",
        f"""
        SELECT * FROM (
          SELECT name, type, ts, volume,
            lead(struct(type, ts, volume), 1) OVER (PARTITION BY name ORDER BY ts) AS b,
            lead(struct(type, ts, volume), 2) OVER (PARTITION BY name ORDER BY ts) AS c FROM events)
        WHERE type = 'SELL' AND b.type = 'BUY' AND c.type = 'SELL'
          AND volume >= {LARGE} AND b.volume >= {LARGE} AND c.volume >= {LARGE} AND c.ts - ts <= 3600000
        """,
    ),
    Task(
        "the same, all combinations within 1 s",
        "ceql",
        f"""
        SELECT * WHERE SELL AS a ; BUY AS b ; SELL AS c FILTER {_LARGE_TRADES}
        PARTITION BY [name] WITHIN {WITHIN} MILLISECONDS
        """,
        # Joins on the second and the next one: a join on an interval alone would compare all pairs of a symbol.
        f"""
        WITH large AS (SELECT type, ts, name, ts div {WITHIN} AS second FROM events WHERE volume >= {LARGE}),
        a AS (SELECT name, ts, explode(array(second, second + 1)) AS second FROM large WHERE type = 'SELL'),
        pairs AS (
          SELECT a.name, a.ts AS first, b.ts AS middle, b.second FROM a JOIN large b
            ON a.name = b.name AND a.second = b.second
          WHERE b.type = 'BUY' AND b.ts > a.ts AND b.ts <= a.ts + {WITHIN}),
        b AS (SELECT name, first, middle, explode(array(second, second + 1)) AS second FROM pairs)
        SELECT b.name, b.first, b.middle, c.ts AS last FROM b JOIN large c
          ON b.name = c.name AND b.second = c.second
        WHERE c.type = 'SELL' AND c.ts > b.middle AND c.ts <= b.first + {WITHIN}
        """,
    ),
    Task(
        "two small, one large payment, 100k accounts",
        "eql",
        """
        SELECT * FROM PAYMENT s ; PAYMENT t ; PAYMENT l
        WHERE FILTER(s.account = t.account), FILTER(t.account = l.account),
              s.amount < 65 AND t.amount < 65 AND l.amount > 35
        """,
        """
        SELECT * FROM (
          SELECT account, ts, amount,
            lead(struct(ts, amount), 1) OVER (PARTITION BY account ORDER BY ts) AS t,
            lead(struct(ts, amount), 2) OVER (PARTITION BY account ORDER BY ts) AS l FROM events)
        WHERE amount < 65 AND t.amount < 65 AND l.amount > 35
        """,
        payments=True,
    ),
    Task(
        "rising run of at least 10, by symbol",
        "ceql",
        """
        SELECT MAX * WHERE (SELL OR BUY OR CANCEL):+ AS run FILTER INCREASING(run[price]) AND COUNT(run) >= 10
        PARTITION BY [name] WITHIN 1 HOUR
        """,
        # Each event that is not above the one before it begins a run; the tenth of a run and all after it end a match.
        """
        WITH steps AS (
          SELECT name, ts, price, price > lag(price) OVER (PARTITION BY name ORDER BY ts) AS rises FROM events),
        runs AS (
          SELECT *, count(if(rises, NULL, 1)) OVER (PARTITION BY name ORDER BY ts) AS run FROM steps),
        places AS (SELECT *, row_number() OVER (PARTITION BY name, run ORDER BY ts) AS place FROM runs)
        SELECT name, run, ts, place FROM places WHERE place >= 10
        """,
    ),
    Task(
        "a cancellation, then a sale, no purchase between",
        "eql",
        """
        SELECT * FROM (CANCEL a ; SELL b) \\ BUY c WHERE FILTER(a.name = b.name), FILTER(c.name = a.name)
        """,
        f"""
        WITH nearest AS (
          SELECT type, ts, name, last(if(type = 'SELL', ts, NULL), true) {_BACKWARDS} AS sale,
            last(if(type = 'BUY', ts, NULL), true) {_BACKWARDS} AS bought FROM events)
        SELECT name, ts, sale FROM nearest
        WHERE type = 'CANCEL' AND sale IS NOT NULL AND (bought IS NULL OR bought > sale)
        """,
    ),
)

# The fourth, with the rows that weft gives: an id, the times, and all attributes of the events.
WRITTEN = replace(
    TASKS[3],
    sql="""
        SELECT md5(concat_ws(',', s.id, t.id, l.id)) AS id, s.ts AS start, l.ts AS end, struct(s, t, l) AS variables
        FROM (
          SELECT struct(type, ts, account, amount, place, id) AS s,
            lead(struct(type, ts, account, amount, place, id), 1) OVER (PARTITION BY account ORDER BY ts) AS t,
            lead(struct(type, ts, account, amount, place, id), 2) OVER (PARTITION BY account ORDER BY ts) AS l
          FROM events)
        WHERE s.amount < 65 AND t.amount < 65 AND l.amount > 35
        """,
)

_TRADE = "struct(type, ts, name, price, volume, id)"
# The second in the same way: few matches of many events.
WRITTEN_RARELY = replace(
    TASKS[1],
    sql=f"""
        SELECT md5(concat_ws(',', a.id, b.id, c.id)) AS id, a.ts AS start, c.ts AS end, struct(a, b, c) AS variables
        FROM (
          SELECT {_TRADE} AS a, lead({_TRADE}, 1) OVER (PARTITION BY name ORDER BY ts) AS b,
            lead({_TRADE}, 2) OVER (PARTITION BY name ORDER BY ts) AS c FROM events)
        WHERE a.type = 'SELL' AND b.type = 'BUY' AND c.type = 'SELL'
          AND a.volume >= {LARGE} AND b.volume >= {LARGE} AND c.volume >= {LARGE} AND c.ts - a.ts <= 3600000
        """,
)


def trades(count: int, seed: int = 7) -> pa.Table:
    """One trade each millisecond of one of 100 symbols; half are sales, one in ten is a cancellation; prices wander."""
    random = np.random.default_rng(seed)
    symbols = random.integers(0, SYMBOLS, count)
    kinds = random.choice(3, count, p=[0.5, 0.4, 0.1])
    return pa.table(
        {
            "type": _KINDS.take(pa.array(kinds)),
            "ts": np.arange(count),
            "name": pa.array([f"S{number:02d}" for number in range(SYMBOLS)]).take(pa.array(symbols)),
            "price": _wandering(symbols, random),
            "volume": random.integers(1, 1000, count),
            "id": np.arange(count),
        }
    )


def payments(count: int, seed: int = 7) -> pa.Table:
    """One payment each millisecond, from one of 100,000 accounts, of 0 to 100."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(["PAYMENT"]).take(pa.array(np.zeros(count, np.int64))),
            "ts": np.arange(count),
            "account": random.integers(0, ACCOUNTS, count),
            "amount": random.uniform(0, 100, count).round(2),
            "place": pa.array([f"P{number}" for number in range(500)]).take(pa.array(random.integers(0, 500, count))),
            "id": np.arange(count),
        }
    )


def _wandering(symbols: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.float64]:
    """A price for each trade, a random step from the one before it of the same symbol."""
    order = np.argsort(symbols, kind="stable")
    prices = np.empty(len(symbols))
    prices[order] = 1000 + np.cumsum(random.normal(size=len(symbols)))
    return prices.round(6)
