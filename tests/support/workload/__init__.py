"""The black-box workload: write once, read back at once through every node, and say what was fresh and what stale.

It knows addresses and Kafka's protocol, nothing of what stands behind the addresses: real brokers or a sidecar's node
ports. `kinds` says what is written and read, `run` drives it, `tally` counts, and `python -m tests.support.workload`
prints a table.
"""

from tests.support.workload.kinds import KINDS, Depth, Kind
from tests.support.workload.run import WorkloadError, measure_idle, run
from tests.support.workload.tally import Result, Tally, percentile

__all__ = ["KINDS", "Depth", "Kind", "Result", "Tally", "WorkloadError", "measure_idle", "percentile", "run"]
