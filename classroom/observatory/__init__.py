"""The observatory: a page that shows the paper running.

A collector looks at the cluster about once a second (ZooKeeper's tree, each broker's ``/state``, the journals of the
consumers, the reports of the loads) and makes a *frame*. The page is a view of one frame: the newest one, or any
earlier one it drags back to. Frames are all there is, so a saved run replays without a cluster.
"""
