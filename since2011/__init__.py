"""What a broker gained after the paper, the way ZooKeeper-era Kafka (0.8 to 3.9) did it, bit for bit.

The paper's half stays in ``kafka2011``; each folder here is one idea, and opens with the paper's answer to the same
problem. Bytes on disk, in ZooKeeper and on the wire are real Kafka's, so that its tools, clients and brokers are the
judges.
"""
