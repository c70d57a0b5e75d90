"""Replication: each partition on several brokers, one of which leads (KIP-101, KIP-279, KIP-320).

The paper's answer (§3.3): "if a broker goes down, any message stored on it not yet consumed becomes unavailable", and
one sentence of future work. The answer of Kafka 0.8 to 3.9: a leader per partition, followers that fetch from it like
consumers, a set of replicas that are in sync, and a high watermark below which every one of them has everything.

The modules here decide and do no I/O: they are run by the broker on real disks and sockets, and by the simulator
(``consumers.sim.replication``) on a virtual clock.
"""
