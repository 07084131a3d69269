import grp
import os
import pwd
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.storage.files import OwnedFolder, check_writers, written_whole


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with written_whole(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_was_there_stays_when_the_block_raises(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), written_whole(path) as file:  # noqa: PT012 - what is given up
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_was_there_stays_when_it_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", descriptor)

    monkeypatch.setattr("veiltab.common.storage.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"), written_whole(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_that_need_not_outlive_a_failing_power_is_whole_and_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.storage.files.os.fsync", Mock(side_effect=AssertionError))
    with written_whole(tmp_path / "file", is_durable=False) as file:
        file.write(b"one")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"one"


def test_the_bytes_are_synced_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(descriptor: int) -> None:
        whole = os.fstat(descriptor)
        steps.append("folder" if stat.S_ISDIR(whole.st_mode) else f"file of {whole.st_size}")
        fsync(descriptor)

    def recorded_replace(source: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(source, target)

    monkeypatch.setattr("veiltab.common.storage.files.os.fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    with written_whole(tmp_path / "file") as file:
        file.write(b"12345")
    assert steps == ["file of 5", "rename", "folder"]
    steps.clear()
    with written_whole(tmp_path / "new" / "folder" / "file") as file:
        assert steps == ["folder", "folder"]  # the names of both new ones


def test_what_a_crash_left_behind_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file.tmp").write_bytes(b"a longer rest of an earlier attempt")
    with written_whole(tmp_path / "file") as file:
        file.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


SECOND = """
import sys
from pathlib import Path
from veiltab.common.errors import ConflictError
from veiltab.common.storage.files import OwnedFolder
try:
    OwnedFolder(Path(sys.argv[1]), "a")
except ConflictError as error:
    sys.exit(str(error))
"""


def second_process(folder: Path) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SECOND, str(folder)], capture_output=True, text=True, check=False, cwd=root, timeout=60
    )
    return done.stderr


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    folder = OwnedFolder(tmp_path / "state", "a")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert "another process already runs on this folder" in second_process(folder.path)
    with pytest.raises(ConflictError, match="Stop it first"):
        OwnedFolder(folder.path, "a")
    folder.release()
    assert not second_process(folder.path)
    OwnedFolder(folder.path, "a").release()


def test_a_folder_stays_with_its_first_party(tmp_path: Path) -> None:
    OwnedFolder(tmp_path / "state", "veiltab://s/curator/alice").release()
    OwnedFolder(tmp_path / "state", "veiltab://s/curator/alice").release()
    with pytest.raises(ConflictError, match="not of 'veiltab://s/curator/bob'"):
        OwnedFolder(tmp_path / "state", "veiltab://s/curator/bob")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file in a folder, both of this user alone."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o755)
    path = folder / "policy.toml"
    path.touch(0o644)
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666, 0o777])
def test_what_others_may_write_is_refused_with_what_to_run(
    own: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="staff", gr_mem=[]))
    check_writers(own)
    for place in (own, own.parent):
        before = place.stat().st_mode
        place.chmod(mode | 0o100)
        with pytest.raises(InvalidInputError, match="others than its owner may write this") as caught:
            check_writers(own)
        assert (caught.value.where, caught.value.remedy[-len(str(place)) :]) == (str(place), str(place))
        subprocess.run(caught.value.remedy.partition("run: ")[2].split(), check=True)
        check_writers(own)
        place.chmod(before)


def test_a_link_is_as_good_as_what_it_leads_to(own: Path, tmp_path: Path) -> None:
    link = tmp_path / "policy.toml"
    link.symlink_to(own)
    check_writers(link)
    own.parent.chmod(0o777)
    with pytest.raises(InvalidInputError) as caught:
        check_writers(link)
    assert caught.value.where == str(own.parent)


def test_every_folder_and_link_on_the_way_is_looked_at(own: Path, tmp_path: Path) -> None:
    open_folder, deep = tmp_path / "open", tmp_path / "open" / "deep" / "deeper"
    deep.mkdir(parents=True)
    (deep / "policy.toml").touch()
    (open_folder / "link").symlink_to(own)
    (tmp_path / "link").symlink_to(open_folder / "link")
    check_writers(deep / "policy.toml")
    check_writers(tmp_path / "link")
    open_folder.chmod(0o777)
    for path in (deep / "policy.toml", tmp_path / "link"):
        with pytest.raises(InvalidInputError, match="others than its owner") as caught:
            check_writers(path)
        assert caught.value.where == str(open_folder)


def test_where_nobody_replaces_what_is_another_s_files_may_lie(own: Path) -> None:
    own.parent.chmod(0o1777)
    check_writers(own)
    own.chmod(0o666)
    with pytest.raises(InvalidInputError, match="others than its owner"):
        check_writers(own)


@pytest.mark.parametrize(
    ("group", "members", "is_refused"),
    [("ana", [], False), ("ana", ["ana"], False), ("ana", ["ana", "ben"], True), ("staff", [], True), (None, [], True)],
)
def test_a_group_of_the_owner_alone_is_nobody_else(
    own: Path, group: str | None, members: list[str], monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    def found(_: int) -> SimpleNamespace:
        if group is None:
            raise KeyError
        return SimpleNamespace(gr_name=group, gr_mem=members)

    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="ana"))
    monkeypatch.setattr(grp, "getgrgid", found)
    own.chmod(0o664)
    with pytest.raises(InvalidInputError) if is_refused else nullcontext():
        check_writers(own)


@pytest.mark.parametrize(("user", "owner", "is_refused"), [(7, 8, True), (7, 7, False), (7, 0, False), (0, 8, False)])
def test_what_another_user_owns_is_refused_unless_that_is_root(
    own: Path, user: int, owner: int, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    look = Path.stat

    def owned(path: Path, **options: bool) -> os.stat_result:
        fields = list(look(path, **options))
        fields[stat.ST_UID] = owner
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "stat", owned)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(InvalidInputError, match="belongs to another user") if is_refused else nullcontext():
        check_writers(own)


def test_a_file_system_that_nobody_may_write_is_taken_as_it_is(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.chmod(0o666)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    check_writers(own)
