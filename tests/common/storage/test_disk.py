"""DiskReservations on a disk: what does not fit is refused before it is begun, in words that tell others no folder."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import PlayedDisk
from veiltab.common.errors import UnavailableError
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART, DiskReservations, free_bytes

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize("size", [0, 1, MIB, 3 * GIB])
def test_a_reserve_stays_free(disk: PlayedDisk, size: int) -> None:
    room = DiskReservations(Path("state"))
    disk.free = size + LEAST_RESERVE + size // RESERVE_PART
    room.check(size)
    disk.free -= 1
    with pytest.raises(UnavailableError):
        room.check(size)


def test_the_refusal_says_what_is_needed_and_the_log_where(disk: PlayedDisk, caplog: pytest.LogCaptureFixture) -> None:
    room = DiskReservations(Path("/srv/alice"), "curator alice")
    disk.free = 5 * GIB // 2
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            with pytest.raises(UnavailableError) as refused:
                room.check(16 * GIB)
    words = "this party's disk is full but for 2.5 GiB, and this takes 16.0 GiB with 2.0 GiB in reserve"
    assert str(refused.value) == f"curator alice: {words}. It goes on once its operator has made room."
    assert caplog.messages == [f"too little room: /srv/alice: {words}"]  # once, however often it is asked for


def test_both_disks_need_the_room(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    free = {Path("state"): 8 * GIB, Path("/shared/run"): 8 * GIB}
    monkeypatch.setattr("veiltab.common.storage.disk.free_bytes", free.__getitem__)
    room = DiskReservations(Path("state"), "", Path("/shared/run"))
    room.check(4 * GIB)
    for folder in free:
        free[folder] = GIB
        with pytest.raises(UnavailableError, match=r"full but for 1\.0 GiB"):
            DiskReservations(Path("state"), "", Path("/shared/run")).check(4 * GIB)
        assert str(folder) in caplog.messages[-1]
        free[folder] = 8 * GIB


def test_room_is_kept_until_it_is_given_back(disk: PlayedDisk) -> None:
    room = DiskReservations(Path("state"))
    disk.free = 100 * MIB
    room.keep("one", 60 * MIB)
    room.keep("one", 60 * MIB)  # again is no more
    with pytest.raises(UnavailableError, match=r"full but for 40\.0 MiB, and this takes 50\.0 MiB with 7\.2 MiB in"):
        room.keep("two", 50 * MIB)
    with pytest.raises(UnavailableError):
        room.keep("one", 600 * MIB)
    with pytest.raises(UnavailableError):  # what is refused more still keeps what it has
        room.keep("two", 50 * MIB)
    room.keep("two", 30 * MIB)  # what was refused keeps nothing
    room.keep("one", 20 * MIB)
    room.keep("two", 60 * MIB)  # as "one" needs less by now
    room.keep("two", 30 * MIB)
    room.give_back("one")
    room.give_back("one")
    room.keep("three", 50 * MIB)
    with pytest.raises(UnavailableError, match=r"full but for 0\.0 MiB"):
        DiskReservations(Path("state")).check(1, promised=200 * MIB)


def test_free_is_what_a_party_may_write(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    assert free_bytes(tmp_path) % disk.f_frsize == 0
    assert abs(free_bytes(tmp_path) - shutil.disk_usage(tmp_path).free) < GIB  # others write meanwhile
