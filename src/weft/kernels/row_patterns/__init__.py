"""Row patterns over sorted partitions: which rows can begin a match, and the preferred match of each."""
