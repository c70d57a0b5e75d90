"""The four registries of §3.2 on ZooKeeper: brokers, consumers, owners (ephemeral), offsets (persistent)."""
