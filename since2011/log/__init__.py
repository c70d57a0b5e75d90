"""The modern log: the files a real Kafka writes, and can read.

Offsets number records, 0, 1, 2, …, and an index finds them; records have keys, headers and times; what a producer sent
is stored as it came. The paper's answer (§3.1): the offset is the byte position, so there is no index to keep.
"""
