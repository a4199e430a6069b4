"""Which split of a pattern is best for latency and for throughput, found by simulation (EPN §4)."""
