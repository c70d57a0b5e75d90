"""The paper's §5, measured again: ``python -m benchmarks`` (or ``make bench``)."""
