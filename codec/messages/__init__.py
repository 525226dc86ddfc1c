"""One page an API: `REQUEST` and `RESPONSE`, in every version that Kafka 3.9 to 4.4 accept."""
