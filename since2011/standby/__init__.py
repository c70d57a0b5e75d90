"""Standby brokers: the paper's last sentence, on the paper's own log.

The paper (§3.3): "If the storage system on a broker is permanently damaged, any unconsumed message is lost forever. In
the future, we plan to add built-in replication in Kafka to redundantly store each message on multiple brokers." What
Kafka built later changed the log, the protocol and the clients. Here nothing of these changes: a broker of the registry
is a *logical* broker with two or three members, each a process with a disk and an address of its own.

    lead        the member that holds ``/brokers/ids/N`` leads all partitions of broker N, and registers as 0.7 does;
                its epoch is the creation id of that node
    follow      the others copy its bytes; their files are the same under ``cmp`` below the watermark
    in sync     one versioned node names the members that have everything; only they may run for leadership, in one
                transaction that checks its version
    visible     is what is flushed at the leader and held by every member in sync

A follower does not listen: it copies, and waits. One that is elected opens its port and registers; one that loses its
right stops and begins again as a follower. Off unless ``standby.member`` is set.
"""
