"""The broker and producer of *Kafka: a Distributed Messaging System for Log Processing* (2011).

Paper: §3 (API), §3.1 (one partition), §3.2 (the producer's half). Nothing newer than 2011 lives in this
package; what came after is in ``consumers.group_protocol``.
"""

__version__ = "1.0.0"
