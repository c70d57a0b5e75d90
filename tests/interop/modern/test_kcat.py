"""kcat, unmodified, where it is installed. See docs/modern-port.md."""

from __future__ import annotations

import shutil
import subprocess

import pytest

KCAT = shutil.which("kcat") or shutil.which("kafkacat")


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
def test_produce_consume_and_list(bootstrap: str, unique: str) -> None:
    """Lines go in, the same lines come out from the beginning to the end; the topic is listed (§1.7: kcat -e)."""
    assert KCAT is not None
    topic, lines = f"kcat-{unique}", [f"line {n}" for n in range(50)]

    def run(*arguments: str, given: str = "") -> str:
        command = [KCAT, "-b", bootstrap, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    run("-P", "-t", topic, given="\n".join(lines))
    found = run("-C", "-t", topic, "-o", "beginning", "-e", "-q").splitlines()
    grouped = run("-G", f"kcat-group-{unique}", "-X", "auto.offset.reset=earliest", "-c", "50", "-q", topic)

    assert sorted(lines) == sorted(found) == sorted(grouped.splitlines())
    assert f'topic "{topic}" with 4 partitions' in run("-L", "-t", topic)
