"""A data directory is this user's, or it is not used. Issue 20 B5."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka2011.config import load_config
from kafka2011.errors import ConfigError
from kafka2011.log.ownership import check_ownership

SOMEBODY = 12_345


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    return path


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702, 0o707])
def test_a_directory_others_can_write_to_is_refused(directory: Path, mode: int) -> None:
    """Issue 20 B5: what others could have planted is not served; the error says what to do."""
    directory.chmod(mode)
    with pytest.raises(ConfigError, match=rf"can be written by others \(mode {mode:04o}\).*chmod 700.*allow\.shared"):
        check_ownership(directory)


def test_a_group_of_others_is_others(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 20 B5: a group that may write is refused, unless it is the user's own, as many systems make one."""
    directory.chmod(0o770)
    monkeypatch.setattr("kafka2011.log.ownership._is_own_group", lambda gid: False)
    with pytest.raises(ConfigError, match="can be written by others"):
        check_ownership(directory)
    monkeypatch.setattr("kafka2011.log.ownership._is_own_group", lambda gid: True)
    check_ownership(directory)


def test_our_own_directory_is_fine(directory: Path, tmp_path: Path) -> None:
    """A directory of ours that others may read, or that is not there yet, is used."""
    directory.chmod(0o755)
    (directory / "clicks-0").mkdir()
    check_ownership(directory)
    check_ownership(tmp_path / "not-there-yet")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["", "clicks-0"])
def test_what_belongs_to_others_is_refused(directory: Path, what: str) -> None:
    """Issue 20 B5: a directory made beforehand by another user, or a partition planted in ours, is named."""
    (directory / "clicks-0").mkdir()
    os.chown(directory / what, SOMEBODY, SOMEBODY)
    with pytest.raises(ConfigError, match=rf"{directory / what} in log.dir belongs to another user \(uid {SOMEBODY}"):
        check_ownership(directory)


def test_the_default_is_in_the_user_s_own_data_directory() -> None:
    """Issue 20 B5: no default lies in a place where anybody can make directories."""
    assert load_config(environ={"XDG_DATA_HOME": "/srv/ann"})["log.dir"] == Path("/srv/ann/kafka2011")
    for environ in ({}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative"}):
        assert load_config(environ=environ)["log.dir"] == Path.home() / ".local/share/kafka2011"
