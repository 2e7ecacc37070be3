"""Files that their owner alone reads, in folders that others may write to."""

from pathlib import Path

import pytest

from functions.cli.private_file import write_private_file


def test_a_file_is_for_its_owner_alone_whoever_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "address"
    path.touch(mode=0o666)
    path.chmod(0o666)
    with path.open() as open_before:
        write_private_file(path, "secret\n")
        assert open_before.read() == ""
    assert path.read_text() == "secret\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "address"
    victim.write_text("precious")
    for planted in (path, tmp_path / "address.partial"):
        planted.symlink_to(victim)
    write_private_file(path, "secret\n")
    assert victim.read_text() == "precious"
    assert not path.is_symlink()
    assert path.read_text() == "secret\n"


def test_nothing_is_left_of_a_file_that_cannot_be_put_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_private_file(tmp_path / "folder", "secret\n")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
