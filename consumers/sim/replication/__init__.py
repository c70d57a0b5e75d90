"""Replication in virtual time: the broker's own rules, with links, crashes and disks that can be made to fail.

What decides here is ``since2011.replication`` and ``since2011.controller``, the same code as in the broker. What is
simulated is everything around it: clocks, links, disks, ZooKeeper. A run is a seed; the same seed gives the same run.
"""
