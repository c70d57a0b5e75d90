"""Today's producers of Python side by side: ours, kafka-python, aiokafka and confluent-kafka (docs/benchmarks.md)."""
