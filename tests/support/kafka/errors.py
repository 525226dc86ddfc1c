"""The one error of the harness: something around the real Kafka failed, not the code under test."""


class KafkaHarnessError(RuntimeError):
    """A download, a process or a wait of the harness failed; the message ends with the node's last log lines."""
