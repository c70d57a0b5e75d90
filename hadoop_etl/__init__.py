"""The offline half of §4: a nightly Spark load from the brokers into the warehouse, exactly once and audited."""
