"""A cluster on one machine as processes: ZooKeeper, brokers, consumers, the page."""
