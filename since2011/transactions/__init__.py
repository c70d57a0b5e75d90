"""Transactions: who decides that records of several partitions, and offsets, count together or not at all (KIP-98).

The paper's answer (§3.3): none. "Exactly-once delivery typically requires two-phase commits and is not necessary for
our applications." Here it is: the coordinator's log is where the decision is taken (PrepareCommit, PrepareAbort), the
markers in the partitions tell readers of it.

    transaction, machine   what is known of a transactional id, and (state, event) -> (state, actions); no I/O
    coordinator            the ids of the partitions led here; no I/O
    records, state_log     what ``__transaction_state`` says, and writing to it
    markers                telling the leaders of a transaction's partitions how it ended
    service                all of it on Twisted, offered to the modern port
"""
