"""The grader cannot be passed by printing, sleeping, editing the tests, importing the product or reading its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from classroom.labs import packing
from classroom.labs.catalogue import lab
from classroom.labs.cli import labs
from classroom.labs.grading import grade, seed_of
from classroom.labs.sandbox import Limits, Overdue, Sandbox, StudentError
from tests.labs.packages import model

ONE = lab(1)
ROOT = Path(__file__).resolve().parents[2]
QUICK = Limits(wall_s=5.0, cpu_s=3, memory_bytes=256 << 20, file_bytes=1 << 20)


def package(tmp_path: Path, source: str) -> Path:
    """A student's package of one file."""
    directory = tmp_path / "cheat"
    directory.mkdir()
    (directory / "messages.py").write_text(source)
    return directory


def sandbox(tmp_path: Path, source: str, limits: Limits = QUICK) -> Sandbox:
    """That package, run without having been read first: only the fences stand."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Sandbox(package(tmp_path, source), scratch, "messages", limits=limits)


@pytest.mark.parametrize(
    "source",
    [
        "def encode(payload):\n    print('ok 8/8')\n    return True\n",
        "import os\nprint('100 of 100 points')\nos._exit(0)\n",
        "import sys\nprint('100 of 100 points')\nsys.exit(0)\n",
        "class Yes:\n    def __eq__(self, other):\n        return True\ndef encode(payload):\n    return Yes()\n"
        "encode_set = decode_set = intact = lambda *args: Yes()\n",
        "def encode(payload):\n    raise AssertionError\nencode_set = decode_set = intact = encode\n",
        'import os\nfor fd in range(3, 10):\n    try:\n        os.write(fd, b\'\\0\\0\\0\\x10{"value":"hello"}\')\n'
        "    except OSError:\n        pass\n",
        "def encode(payload):\n    deep = []\n    for _ in range(100000):\n        deep = [deep]\n    return deep\n",
    ],
    ids=["prints", "exits", "sys.exit", "equal to everything", "raises", "forges answers", "nests"],
)
def test_talking_gets_nothing(source: str, tmp_path: Path) -> None:
    """Issue 24: what a program prints, how it ends, and odd answers give no points and do not stop the grader."""
    report = grade(ONE, package(tmp_path, source), "anna", seen_only=True)

    assert report.points == 0
    assert all(outcome.reason for outcome in report.outcomes)


def test_sleeping_gets_nothing(tmp_path: Path) -> None:
    """Issue 24: a program that sleeps is stopped at the test's time limit, and the test is failed."""
    hurried = replace(ONE, tests=(replace(ONE.tests[0], limit_s=0.7),))
    report = grade(hurried, package(tmp_path, "import time\ndef encode(payload):\n    time.sleep(3600)\n"), "anna")

    assert report.points == 0
    assert "did not answer within 0.7 s" in report.outcomes[0].reason
    assert report.seconds < 10


def test_edited_tests_are_not_used(tmp_path: Path) -> None:
    """Issue 24: the student's copy of the tests is for reading; the grader has its own."""
    directory = packing.hand_out(ONE, tmp_path / "lab-1", "anna").directory
    (directory / "seen.py").write_text("def one_message_by_hand(bench):\n    pass\n")
    (directory / "test_mine.py").write_text("raise SystemExit(0)\n")

    assert grade(ONE, directory, "anna").points == 0


@pytest.mark.parametrize(
    "name", ["kafka2011", "consumers.sim", "zk_registry", "since2011", "hadoop_etl", "classroom.labs"]
)
def test_the_product_is_refused_when_read(name: str, tmp_path: Path) -> None:
    """Issue 24: a package that imports the product is not run, and the student reads file, line and reason."""
    report = grade(ONE, package(tmp_path, f"\nfrom {name} import *\n"), "anna")

    assert report.points == 0
    assert report.refused == (
        f"messages.py:2: imports {name.partition('.')[0]}: a lab is written with the standard library only",
    )


@pytest.mark.parametrize(
    "name", ["kafka2011", "consumers", "zk_registry", "since2011", "hadoop_etl", "classroom", "tests"]
)
def test_the_product_is_refused_when_run(name: str, tmp_path: Path) -> None:
    """Issue 24: whatever way a program takes, no package of the product can be imported in its process."""
    source = (
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\ndef encode(payload):\n    return __import__({name!r}).__file__\n"
    )
    with sandbox(tmp_path, source) as student, pytest.raises(StudentError, match="not available in a lab"):
        student.encode(b"")


def test_the_product_is_refused_under_another_name(tmp_path: Path) -> None:
    """Issue 24: without the hook's help too: the product's files cannot be opened from there, whoever tries."""
    source = f"""
import sys
from importlib.machinery import SourceFileLoader
sys.meta_path[:] = sys.meta_path[1:]
def encode(payload):
    return SourceFileLoader("mine", {str(ROOT / "kafka2011" / "types.py")!r}).load_module().__file__
"""
    with sandbox(tmp_path, source) as student, pytest.raises(StudentError, match="is not allowed here"):
        student.encode(b"")


@pytest.mark.parametrize(
    "deed",
    [
        f"open({str(ROOT / 'classroom/labs/lab1/unseen.py')!r}).read()",
        f"__import__('os').listdir({str(ROOT)!r})",
        f"__import__('pathlib').Path({str(ROOT / 'tests/labs/solutions/lab1/messages.py')!r}).read_text()",
        "open('/proc/self/environ').read()",
        "open('/etc/passwd').read()",
        "__import__('os').open('../../etc/passwd', 0)",
        "__import__('os').system('true')",
        "__import__('os').fork()",
        "__import__('os').execv('/bin/true', ['true'])",
        "__import__('os').kill(1, 0)",
        "__import__('os').symlink('/etc', 'here')",
        "__import__('os').remove('/tmp/nothing')",
        "__import__('subprocess').run(['true'])",
        "__import__('ctypes')",
        "__import__('_ctypes')",
        "__import__('socket').create_connection(('127.0.0.1', 1))",
        "__import__('socket').socket().bind(('127.0.0.1', 0))",
        "__import__('gc').get_objects()",
        "__import__('resource').setrlimit(0, (1, 1))",
        "open(1, 'wb', closefd=False)",
    ],
)
def test_the_fences_hold(deed: str, tmp_path: Path) -> None:
    """Issue 24: a student's process reads and writes its own files, starts nothing and reaches nobody."""
    with sandbox(tmp_path, f"def encode(payload):\n    {deed}\n") as student, pytest.raises(StudentError) as raised:
        student.encode(b"")
    assert raised.value.is_a("Refused") or raised.value.is_a("ImportError"), raised.value


def test_its_own_files_are_its_own(tmp_path: Path) -> None:
    """A program may write, read, rename and remove in the directory it is given."""
    source = """
import os, pathlib
def encode(payload):
    pathlib.Path("a").mkdir()
    pathlib.Path("a/b").write_bytes(payload)
    os.rename("a/b", "a/c")
    data = pathlib.Path("a/c").read_bytes()
    os.remove("a/c")
    return [data, os.listdir("a")]
"""
    with sandbox(tmp_path, source) as student:
        assert student.encode(b"hello") == [b"hello", []]


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("bytes(1 << 30)", "MemoryError"),
        ("open('big', 'wb').write(bytes(2 << 20))", "too large"),
        ("[open('f', 'ab', buffering=0) for _ in range(100)]", "Too many open files"),
    ],
)
def test_the_limits_hold(deed: str, said: str, tmp_path: Path) -> None:
    """Issue 24: memory, file sizes and open files of a student's process are bounded by the kernel."""
    source = f"def encode(payload):\n    kept = {deed}\n"
    with sandbox(tmp_path, source) as student, pytest.raises(StudentError, match=said):
        student.encode(b"")


def test_processor_time_is_bounded(tmp_path: Path) -> None:
    """Issue 24: a program that computes for ever is stopped by the clock on the wall or by its processor time."""
    limits = replace(QUICK, wall_s=10.0, cpu_s=1)
    source = "def encode(payload):\n    while True:\n        pass\n"
    stopped = pytest.raises(StudentError, match=r"processor time|did not answer")
    with sandbox(tmp_path, source, limits) as student, stopped:
        student.encode(b"")
    with pytest.raises(StudentError, match="ended"):
        student.encode(b"")


def test_a_program_that_does_not_answer_is_gone(tmp_path: Path) -> None:
    """After the time limit nothing of the program is left running."""
    limits = replace(QUICK, wall_s=0.7)
    with sandbox(tmp_path, "import time\ndef encode(payload):\n    time.sleep(60)\n", limits) as student:
        with pytest.raises(Overdue):
            student.encode(b"")
        pid = student.pid
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_busy_machine_takes_nobodys_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 24: forty students on one server: while there is no processor for a program, its clock stands still."""
    limits = replace(QUICK, wall_s=0.7)
    monkeypatch.setattr("classroom.labs.sandbox.starved_s", lambda process: 60.0 if process != "thread-self" else 0.0)
    with sandbox(tmp_path, "import time\ndef encode(payload):\n    time.sleep(1.5)\n", limits) as student:
        assert student.encode(b"") is None


def test_a_student_gets_nothing_of_the_teachers(tmp_path: Path) -> None:
    """Issue 24: the hand-out holds page, holes, given modules and seen tests; no guide, no unseen test, no solution."""
    for number in range(1, 7):
        try:
            one = lab(number)
        except KeyError:
            continue
        directory = packing.hand_out(one, tmp_path / f"lab-{number}", "anna").directory
        names = {path.name for path in directory.iterdir()}
        assert names == {"README.md", "seen.py", "lab.json", f"{one.module}.py", *(f"{name}.py" for name in one.given)}


def test_seeds_are_the_students_own() -> None:
    """Issue 24: numbers differ between students and labs, stay the same for one, and depend on the teacher's secret."""
    assert seed_of("anna", ONE) == seed_of(" Anna ", ONE)
    assert (
        len({seed_of("anna", ONE), seed_of("ben", ONE), seed_of("anna", ONE, "secret"), seed_of("ben", ONE, "x")}) == 4
    )


def test_from_nothing_to_the_first_failing_test(tmp_path: Path) -> None:
    """Issue 24: one command, `lab start`, gives the hand-out and the first test that fails."""
    done = CliRunner().invoke(labs, ["start", "1", "--into", str(tmp_path / "lab-1"), "--student", "anna"])

    assert done.exit_code == 0, done.output
    assert "The first test that fails: one_message_by_hand" in done.output
    assert CliRunner().invoke(labs, ["check", str(tmp_path / "lab-1")]).exit_code == 1
    assert "struct.pack" in CliRunner().invoke(labs, ["hint", str(tmp_path / "lab-1")]).output


def test_a_class_is_graded_side_by_side(tmp_path: Path) -> None:
    """Issue 24: submissions of many students are graded on one machine at the same time, each for itself."""
    folder = tmp_path / "handed-in"
    for number in range(6):
        work = packing.hand_out(ONE, tmp_path / f"s{number}", f"student {number}")
        if number % 2:
            model(ONE, tmp_path / f"m{number}")
            (work.directory / "messages.py").write_text((tmp_path / f"m{number}" / "model" / "messages.py").read_text())
        packing.pack(work, folder)
    (folder / f"broken{packing.SUFFIX}").write_bytes(b"no archive")

    done = CliRunner().invoke(labs, ["grade", str(folder), "--jobs", "4", "--json", "--out", str(tmp_path / "out")])

    points = {row["student"]: row["points"] for row in json.loads(done.output)}
    assert points == {"": 0} | {f"student {number}": 100 * (number % 2) for number in range(6)}
    assert len(list((tmp_path / "out").glob("*/report.json"))) == 6
