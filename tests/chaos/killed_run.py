"""`weft run` on a Spark of its own, to be killed: `python -m tests.chaos.killed_run MASTER run PROGRAM … OPTIONS`."""

from __future__ import annotations

import sys

from tests.conftest import SETTINGS

from weft.__main__ import main
from weft.runtime.spark.session import spark_session

# The Python of executors finds weft where this one does.
IN_CLUSTER = {
    "spark.executorEnv.PYTHONPATH": ":".join(sys.path[1:]),
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
}

if __name__ == "__main__":
    spark_session(sys.argv.pop(1), {**SETTINGS, **IN_CLUSTER})
    main()
