"""Reading partitions through the modern port: positions, fetch sessions, what to ask next, what came back.

``Fetcher`` decides and does no I/O; ``Reader`` runs it over sockets. The paper's answer to the same problem (§3.2): a
fetcher thread for each broker, and a consumer that knows the next offset by adding up lengths.
"""
