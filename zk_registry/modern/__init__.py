"""The nodes of ZooKeeper-era Kafka (0.8 to 3.9), under a chroot of their own: same paths as 0.7's, other texts.

The texts are byte for byte what Apache Kafka 3.9 writes: its brokers and tools can read this tree, and we theirs.
"""
