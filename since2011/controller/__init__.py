"""The controller: one broker, elected through ZooKeeper, that decides who leads which partition.

The paper's answer (§3.2): no master; consumers coordinate through ZooKeeper by Algorithm 1, and a partition is where
its broker is. With replicas somebody must choose: the controller does, fenced by its epoch in every write and request.
"""
