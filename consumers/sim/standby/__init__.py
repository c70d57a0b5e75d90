"""Standby brokers in virtual time: the members' own rules, with links, crashes, pauses and disks that are replaced.

What decides here is ``since2011.standby`` (leadership, copying, in-sync set), ``since2011.replication`` and the lease
of ``zk_registry``, the same code as in the broker. Logs hold real messages. A run is a seed.
"""
