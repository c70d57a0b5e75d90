# The compiled twin of pure_records.py: same names, same signatures.
from since2011.wire.pure_records import VERSION as VERSION
from since2011.wire.pure_records import walk_records as walk_records
