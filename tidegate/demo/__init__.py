"""The demo: an embedded cluster with a lagging broker, a sidecar, and a workload that counts stale reads on both ways.

scene      starts and ends the cluster and the sidecar
changes    what is written, and which answer shows it; pure
wire       one connection of a Kafka client
workload   writes and reads at once, direct and through the sidecar
tally      what was counted
table      what is shown of it; pure
"""
