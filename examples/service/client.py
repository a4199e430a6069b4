"""Deploy a rule on a server, publish events and receive matches: python client.py http://127.0.0.1:8787."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import weft

HERE = Path(__file__).parent


def main(url: str) -> None:
    """Do it all against the server at an address."""
    with weft.connect(url) as client:
        client.deploy(HERE / "fire.tesla")
        with client.subscribe("Fire", where="area = 'hall'") as matches:
            client.publish([json.loads(line) for line in (HERE / "events.jsonl").read_text().splitlines()])
            print(client.flush())
            print(next(matches).event)
        client.remove("Fire")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8787")
