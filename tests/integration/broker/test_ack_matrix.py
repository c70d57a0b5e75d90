"""Acknowledgements under faults: failpoint, port, level, one and many partitions. Issue 19 A1, C."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.siege.acks import CELLS, FAULTS, UNDISTURBED, Fault, Told, Verdict, prepare, strike


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a broker that nothing happened to, with every topic of the matrix in it."""
    directory = tmp_path_factory.mktemp("matrix") / "data"
    verdicts = prepare(directory)
    assert len(verdicts) == sum(cell.n_partitions for cell in CELLS)
    assert [str(verdict) for verdict in verdicts if verdict.wrong] == []
    assert all(verdict.stored for verdict in verdicts), "undisturbed, even what nobody acknowledges is there"
    return directory


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_no_acknowledgement_without_durability_and_every_failure_is_named(
    prepared: Path, tmp_path: Path, fault: Fault
) -> None:
    """Issue 19: "no acknowledgement without durability, every failure named to the client within its timeout"."""
    verdicts = strike(fault, prepared, tmp_path / "data")

    assert [str(verdict) for verdict in verdicts if verdict.wrong] == []


def test_the_matrix_sees_a_lie() -> None:
    """The control: an acknowledgement without a message, a wrong answer and a refused message that is there."""
    (cell,) = [cell for cell in CELLS if (cell.port, cell.level, cell.n_partitions) == ("modern", "all", 1)]
    failed_fsync, refused = FAULTS[0], FAULTS[2]

    assert Verdict(UNDISTURBED, cell, 0, Told.ACKED, stored=False).wrong == "acknowledged and lost"
    assert Verdict(failed_fsync, cell, 0, Told.ACKED, stored=True).wrong is not None
    assert Verdict(refused, cell, 0, Told.STORAGE, stored=True).wrong == "refused and appended"
    assert Verdict(failed_fsync, cell, 0, Told.STORAGE, stored=True).wrong is None
