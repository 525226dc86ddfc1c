"""Real Apache Kafka for tests: jars, node properties, processes, and a relay that makes one broker lag.

Knows nothing of Tidegate's own packages, so it can judge them. `KafkaCluster` is the way in.
"""

from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.errors import KafkaHarnessError

__all__ = ["KafkaCluster", "KafkaHarnessError"]
