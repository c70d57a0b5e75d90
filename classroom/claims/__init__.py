"""The paper on trial: one module for each claim, with its sentence, its experiment and its judgement.

    kafka2011 claims list
    kafka2011 claims run C03

``c01_…`` and so on are the claims, ``harness/`` is what they share: processes, load, faults, meters. A claim's
module has

- ``CLAIM``: the sentence, the threshold (written down before the run), the twist, what would change the verdict;
- ``experiment(bench)``: real processes are started, loaded, broken and measured; returns figures;
- ``judge(figures)``: a verdict from the figures alone.

The twist turns the experiment upside down (sendfile off, CRC off, …); a test checks that the verdict
then changes, so that no verdict is decoration. docs/claims.md says how to read one and how to write one.
"""
