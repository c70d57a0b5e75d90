"""Hand-outs and submissions as files: a lab written into a directory, a student's work packed into one archive.

A submission is a zip of the student's own modules and ``lab.json`` (which lab, who). What is unpacked is plain files
with plain names, few and small; anything else is refused.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from classroom.labs.catalogue import LABS, lab
from classroom.labs.lab import Lab
from classroom.labs.static_check import MAX_BYTES, MAX_FILES

NOTE = "lab.json"
SUFFIX = ".submission.zip"


class BadPackage(Exception):
    """A directory or an archive is not a student's package."""


@dataclass(frozen=True, slots=True)
class Work:
    """One student's package on disk."""

    lab: Lab
    student: str
    directory: Path


def hand_out(one: Lab, into: Path, student: str) -> Work:
    """Write the hand-out: page, holes, given modules, the tests to read. Refuses a directory that holds anything."""
    if into.exists() and any(into.iterdir()):
        raise BadPackage(f"{into} is not empty; choose another directory with --into, or go on there with `lab check`")
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(one.folder / "README.md", into / "README.md")
    shutil.copyfile(one.folder / "seen.py", into / "seen.py")
    for folder in ("package", "given"):
        for path in sorted((one.folder / folder).glob("*.py")):
            shutil.copyfile(path, into / path.name)
    (into / NOTE).write_text(json.dumps({"lab": one.number, "student": student}) + "\n")
    return Work(one, student, into)


def work_in(directory: Path) -> Work:
    """The package that was begun in a directory."""
    try:
        note = json.loads((directory / NOTE).read_text())
        return Work(lab(int(note["lab"])), str(note["student"]), directory)
    except FileNotFoundError:
        raise BadPackage(f"{directory} holds no lab; `kafka2011 lab start N` makes one") from None
    except (ValueError, KeyError, TypeError):
        raise BadPackage(f"{directory / NOTE} is not what `lab start` wrote; labs are 1 to {len(LABS)}") from None


def pack(work: Work, into: Path) -> Path:
    """The archive a student hands in."""
    into.mkdir(parents=True, exist_ok=True)
    archive = into / f"lab{work.lab.number}-{plain(work.student)}{SUFFIX}"
    handed_out = {"seen.py", *(f"{name}.py" for name in work.lab.given)}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(NOTE, json.dumps({"lab": work.lab.number, "student": work.student}))
        for path in sorted(work.directory.glob("*.py")):
            if path.name not in handed_out:
                packed.write(path, path.name)
    return archive


def unpack(archive: Path, into: Path) -> Work:
    """A submission as a directory again."""
    try:
        with zipfile.ZipFile(archive) as packed:
            entries = packed.infolist()
            if len(entries) > MAX_FILES or any(entry.file_size > MAX_BYTES for entry in entries):
                raise BadPackage(f"{archive.name}: more than {MAX_FILES} files, or one larger than {MAX_BYTES} bytes")
            for entry in entries:
                name = entry.filename
                if name != NOTE and not (name.endswith(".py") and name == Path(name).name and name.isascii()):
                    raise BadPackage(f"{archive.name}: {name!r} does not belong into a submission")
                (into / name).write_bytes(packed.read(entry))
    except zipfile.BadZipFile:
        raise BadPackage(f"{archive.name} is not an archive that `lab submit` wrote") from None
    return work_in(into)


def plain(student: str) -> str:
    """A student's name as part of a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in student.strip().lower()) or "nobody"
