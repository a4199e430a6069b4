"""`weft init`: a small working project to change into one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console import say
from weft.errors import InputError, UsageError

PROGRAM = """\
-- A card is tried with two small payments, and then used for a large one.
CREATE STREAM payments {
  EVENT Payment { card: string, amount: double }
}

SELECT first, second, large[card, amount]
FROM payments
WHERE Payment AS first; Payment AS second; Payment AS large
FILTER first[amount < 5] AND second[amount < 5] AND large[amount > 500]
PARTITION BY [card]
WITHIN 1 HOUR
"""
AMOUNTS = (("a", 3.5), ("b", 40.0), ("a", 1.2), ("c", 2.0), ("b", 700.0), ("a", 980.0), ("c", 61.0))
RULE_TEST = """\
# `weft test` runs these cases; see the documentation, "Tests for rules".
program = "card_fraud.ceql"

[[case]]
name = "two small payments, then a large one"
events = '''
0      Payment card=a amount=3
+1min  Payment card=a amount=2
+1min  Payment card=a amount=900
'''
expected = '''
card_fraud: first@0 second@1 large@2 -> card=a amount=900
'''

[[case]]
name = "payments of different cards are not counted together"
events = '''
0      Payment card=a amount=3
+1min  Payment card=b amount=2
+1min  Payment card=a amount=900
'''
expected = "none"
"""
README = """\
# {name}

```console
$ weft match card_fraud.ceql --events payments.jsonl   # find the matches in the sample
$ weft check card_fraud.ceql                           # what is wrong in the program, and where
$ weft explain card_fraud.ceql                         # how it runs
$ weft test .                                          # check the rule against its tests
$ weft web .                                           # the project in a browser
```

In Python, and on Spark:

```python
import weft

for match in weft.detect("payments.jsonl", "card_fraud.ceql"):
    print(match.event)

# frame: a Spark DataFrame with the columns ts, type, card and amount, batch or streaming
# weft.match(frame, "card_fraud.ceql").show()
```

`payments.jsonl` has one event a line: a `type`, a time `ts` (milliseconds here) and the attributes.
"""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new project's folder.")],
) -> None:
    """Create a working project: a program, sample events, a rule test and a README.

        weft init fraud && cd fraud && weft match card_fraud.ceql --events payments.jsonl

    Existing files are never overwritten.
    """
    files = {
        "card_fraud.ceql": PROGRAM,
        "payments.jsonl": _events(),
        "card_fraud.test.toml": RULE_TEST,
        "README.md": README.format(name=folder.resolve().name),
    }
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(f"{folder} has {', '.join(taken)} already: choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    except OSError as problem:
        raise InputError(f"cannot write {folder}: {problem.strerror or problem}") from None
    say(f"created {folder} with {', '.join(files)}\n\nTry it:\n")
    say(f"    cd {folder}\n    weft match card_fraud.ceql --events payments.jsonl\n    weft test .")


def _events() -> str:
    rows = ({"type": "Payment", "ts": n * 60_000, "card": card, "amount": x} for n, (card, x) in enumerate(AMOUNTS))
    return "".join(json.dumps(row) + "\n" for row in rows)
