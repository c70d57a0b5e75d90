"""The modern half beside a real Kafka 4.1 on one machine, the same clients against both (docs/benchmarks.md)."""
