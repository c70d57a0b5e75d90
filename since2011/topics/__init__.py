"""Topics since 2011: what a cluster knows of them, where that is kept, and the rules for making them.

The paper's answer (§3.2): a broker announces what it has, a topic is there when somebody has written to it, and it has
no settings of its own. Here a topic is made before it is used, has an id, settings and a place for each partition, and
all brokers agree on these because they stand in one store: ZooKeeper, or for a lone broker a file.
"""
