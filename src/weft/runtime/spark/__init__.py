"""Running on Spark: an embedded session, batch and streaming DataFrames, files, and continuous runs."""

from weft.runtime.spark.compat import check_release

check_release()
