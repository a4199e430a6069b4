"""The cheapest order in which the branches of a union are joined: an occurrence costs as much as it passes unions."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from weft.optimizer.chains import Shape


def best_union(rates: Sequence[float], texts: Sequence[str]) -> Shape:
    """Huffman's tree: the two rarest are joined first. Equal rates go by text, so that equal unions become equal trees.

    Of two, the rarer is on the left; what is joined already comes after branches as they are.
    """
    waiting = [(rate, 0, text, number, number) for number, (rate, text) in enumerate(zip(rates, texts, strict=True))]
    joined: list[tuple[float, int, str, int, Shape]] = list(waiting)
    heapify(joined)
    for number in range(len(rates), 2 * len(rates) - 1):
        one, other = heappop(joined), heappop(joined)
        heappush(joined, (one[0] + other[0], 1, f"({one[2]} | {other[2]})", number, (one[4], other[4])))
    return joined[0][4]


def best_union_in_order(rates: Sequence[float]) -> Shape:
    """The best tree that keeps the branches in their order."""
    count = len(rates)
    sums = [0.0]
    for rate in rates:
        sums.append(sums[-1] + rate)
    best: dict[tuple[int, int], tuple[float, Shape]] = {(i, i): (0.0, i) for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            whole = sums[j + 1] - sums[i]
            best[i, j] = min(
                (
                    (best[i, k][0] + best[k + 1, j][0] + whole, (best[i, k][1], best[k + 1, j][1]))
                    for k in range(j - 1, i - 1, -1)
                ),
                key=lambda found: found[0],
            )
    return best[0, count - 1][1]
