"""kafka2011 beside the real Kafka 0.7 on one machine, cell by cell (docs/benchmarks.md)."""
