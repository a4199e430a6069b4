"""The executors of the Spark that runs a query, as plain data."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


def executors_of(session: SparkSession) -> list[dict[str, object]]:
    """Cores, memory and tasks of each executor."""
    try:
        told = session.sparkContext._jsc.sc().statusStore().executorList(True)
        return [
            {
                "id": one.id(),
                "host": one.hostPort(),
                "cores": one.totalCores(),
                "memory_used": one.memoryUsed(),
                "memory": one.maxMemory(),
                "active_tasks": one.activeTasks(),
                "completed_tasks": one.completedTasks(),
                "failed_tasks": one.failedTasks(),
            }
            for one in (told.apply(number) for number in range(told.size()))
        ]
    except (Py4JError, TypeError):  # this Spark's own classes differ
        return []
