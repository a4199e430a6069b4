"""What all tasks of one run on Spark know: the plan, its lanes, and the generations of a changed program."""
