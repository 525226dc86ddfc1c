"""A node's files, in Kafka's own formats: the metadata log, snapshots, quorum-state, meta.properties.

Plain blocking calls, one thread at a time; nothing here knows a clock, a loop or a socket, and nothing decides. Carries
out what the quorum orders; what it has synced is there after a crash, and what is damaged is named, never served.
"""
