"""Pin the base images of the Dockerfile to the digests the registry names today.

``make pin-images`` asks through the Docker client, so the registry or mirror it is set up for answers, and rewrites
the ``ARG`` lines of docker/Dockerfile. A tag may name another image tomorrow; a digest names its bytes. Where no
registry can be reached nothing is changed, and the command says so with exit code 3. ``--undo`` goes back to tags.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

DOCKERFILE = Path(__file__).with_name("Dockerfile")
BASE = re.compile(r"^(ARG \w+_IMAGE=)([^@\s]+)(?:@sha256:[0-9a-f]{64})?$", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CANNOT_TELL = 3


class Unreachable(Exception):
    """The registry did not answer, or not with a digest."""


def digest_of(image: str) -> str:
    """The digest a tag stands for now."""
    command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"{image}: {error}") from error
    found = done.stdout.strip()
    if done.returncode or not DIGEST.fullmatch(found):
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unreachable(f"{image}: {said[-1] if said else f'exit code {done.returncode}'}")
    return found


def main() -> None:
    """Rewrite the Dockerfile, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--undo", action="store_true", help="name the base images by tag again")
    parser.add_argument("--file", type=Path, default=DOCKERFILE)
    chosen = parser.parse_args()
    text = chosen.file.read_text()
    try:
        digests = {tag: "" if chosen.undo else f"@{digest_of(tag)}" for _, tag in BASE.findall(text)}
    except Unreachable as error:
        print(f"make pin-images: the registry did not name a digest, nothing was changed: {error}", file=sys.stderr)
        sys.exit(CANNOT_TELL)
    chosen.file.write_text(BASE.sub(lambda found: f"{found[1]}{found[2]}{digests[found[2]]}", text))
    for tag, digest in digests.items():
        print(f"{tag}{digest}")


if __name__ == "__main__":
    main()
