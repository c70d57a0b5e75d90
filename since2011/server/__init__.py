"""Today's port: listener, connection, logins, one handler for each request, and services that add their own.

The paper's answer to the same problem is ``kafka2011.broker``: five requests and no answers to publishers (§3.1).
"""
