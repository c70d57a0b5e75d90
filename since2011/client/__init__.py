"""The modern port from the other side: a connection, where topics are, what errors mean."""
