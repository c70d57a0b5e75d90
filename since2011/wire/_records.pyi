# The compiled twin of pure_records.py: same names, same signatures.
from since2011.wire.pure_records import VERSION as VERSION
from since2011.wire.pure_records import lay_records as lay_records
from since2011.wire.pure_records import murmur2 as murmur2
from since2011.wire.pure_records import walk_records as walk_records
