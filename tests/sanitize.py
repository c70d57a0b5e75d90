"""Run the compiled walkers under gcc's address and undefined-behaviour sanitizers, on bytes meant to break it.

``make sanitize``. The extensions are built anew into a temporary directory; the property tests run over them, then
random and damaged sets for as long as ``--for`` says. Any report of a sanitizer ends the run with its text and code 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = {
    "kafka2011.wire._walk": ROOT / "kafka2011/wire/_walk.c",
    "since2011.wire._records": ROOT / "since2011/wire/_records.c",
}
TESTS = ["tests/property/wire", "tests/unit/wire", "tests/property/since2011/test_record_walkers.py"]
FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fPIC", "-shared"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def main() -> int:
    """Build, then start this file again inside the sanitizers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, help="seconds of fuzzing")
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return fuzz(options.inside, options.seconds, options.seed)
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        print(f"no {compiler} here: nothing to sanitize", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as directory:
        include = sysconfig.get_paths()["include"]
        libraries = {name: str(Path(directory) / f"{source.stem}.so") for name, source in SOURCES.items()}
        for name, source in SOURCES.items():
            build = [compiler, *FLAGS, *SANITIZERS, f"-I{include}", str(source), "-o", libraries[name]]
            subprocess.run(build, check=True)
        library = libraries["kafka2011.wire._walk"]
        runtimes = [
            subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout
            for name in ("libasan.so", "libubsan.so")
        ]
        environment = os.environ | {
            "LD_PRELOAD": " ".join(map(str.strip, runtimes)),
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1",
            "PYTHONMALLOC": "malloc",  # each object an allocation of its own, so that an overrun by one byte is seen
            "KAFKA2011_SANITIZED": " ".join(f"{name}={path}" for name, path in libraries.items()),
        }
        fuzzing = ["--inside", library, "--for", str(options.seconds), "--seed", str(options.seed)]
        for arguments in (
            ["-m", "pytest", "-q", "-p", "tests.sanitized", *TESTS],
            ["-m", "tests.sanitize", *fuzzing],
        ):
            code = subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode
            if code:
                return 1
    return 0


def load(path: str, name: str = "kafka2011.wire._walk") -> object:
    """The extension from ``path``, in place of the installed one."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def fuzz(path: str, seconds: float, seed: int) -> int:
    """Damaged and random bytes through every function, beside the pure walker; a thread changes some meanwhile."""
    module = load(path)
    from kafka2011.wire import Message, MessageAndOffset, encode_message, pure  # after ``load``: they import it

    source = random.Random(seed)
    until = time.monotonic() + seconds
    shared = bytearray(256 << 10)

    def scribble() -> None:
        noise = random.Random(seed + 1)
        while time.monotonic() < until:
            shared[noise.randrange(len(shared))] = noise.choice((0, 1, 5, 6, 255, noise.randrange(256)))

    threading.Thread(target=scribble, daemon=True).start()
    n = 0
    while time.monotonic() < until:
        n += 1
        sizes = [source.choice((0, 1, 7, 15, 16, 17, 63, 64, 65, 200, 5000)) for _ in range(source.randrange(12))]
        data = bytearray(
            b"".join(
                encode_message(Message(source.randbytes(size), source.randrange(2), source.choice((0, 0, 0, 1, 3))))
                for size in sizes
            )
        )
        for _ in range(source.randrange(4)):
            if data:
                data[source.randrange(len(data))] = source.choice((0, 1, 5, 6, 127, 128, 255))
        exact = bytes(data[: source.randrange(len(data) + 1)])
        pos = source.randrange(len(exact) + 1)
        assert module.check(exact, pos, n % 2) == pure.check(exact, pos, n % 2 == 1)  # type: ignore[attr-defined]
        end, row = module.cut(MessageAndOffset, exact, pos, 0)  # type: ignore[attr-defined]
        pure_end, pure_row = pure.cut(MessageAndOffset, exact, pos, 0)
        assert (end, list(row)) == (pure_end, list(pure_row))
        assert list(map(bytes, row.views())) == [m.payload for m in pure_row]
        row.at, row.after = source.randrange(-2, 9), source.randrange(-2, 9)
        assert len(list(row)) == len(pure_row)
        iterator = iter(row)
        del row
        assert sum(1 for _ in iterator) == len(pure_row)
        assert module.split(exact, pos, 2, 9000) == pure.split(exact, pos, 2, 9000)  # type: ignore[attr-defined]
        if not n % 50:
            at = source.randrange(len(shared) - 60_000)
            entries = pure.encode([source.randbytes(200)] * 200, b"", 0, 0)
            shared[at : at + len(entries)] = entries
            _, row = module.cut(MessageAndOffset, shared, at, 0)  # type: ignore[attr-defined]
            list(row)
            row.views()
    print(f"{n} rounds, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
