"""A process with a Spark of its own, ready to be `weft run` with the arguments it is sent, and to be killed.

`python -m tests.chaos.killed_run MASTER` says when it is ready; the arguments come as a line of JSON then.
"""

from __future__ import annotations

import json
import sys

from tests.conftest import SETTINGS

from weft.__main__ import main
from weft.runtime.spark.session import spark_session, start_workers

# The Python of executors finds weft where this one does.
IN_CLUSTER = {
    "spark.executorEnv.PYTHONPATH": ":".join(sys.path[1:]),
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
}

if __name__ == "__main__":
    master = sys.argv.pop(1)
    session = spark_session(master, {**SETTINGS, **IN_CLUSTER})
    if master.startswith("local"):  # a cluster has no room for another one's workers yet
        start_workers(session)
    print("ready", flush=True)
    if told := sys.stdin.readline():
        sys.argv += json.loads(told)
        main()
