"""Transactions in virtual time: the broker's own machine, producer state and offset book, under crashes, lost and late
messages, take-overs and zombies; and a checker of what they promise."""
