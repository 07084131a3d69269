"""A run's files: whole or not there, unreadable without the key, never two contents under one key stream."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import refuses
from veiltab.common.errors import IntegrityError, TransferError, UnavailableError
from veiltab.common.storage.run_files import RunFile, RunFiles, new_run, run_in
from veiltab.common.storage.sealed import PAGE
from veiltab.common.storage.stored import PlainFile

SECRET = np.frombuffer(b"Zebra, a name that nobody else has" * 100, np.uint8)


def write(run: RunFiles, name: str, data: np.ndarray[tuple[int], np.dtype[np.uint8]] = SECRET) -> int:
    with run.writing(name) as file:
        return file.append(data)


def read(run: RunFiles, name: str, start: int, length: int) -> bytes:
    with run.file(name).opened() as file:
        return file.read(start, length).tobytes()


def test_another_process_reads_what_was_written(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with run.writing("a") as file:
        starts = [file.append(SECRET[:17]), file.append(SECRET)]
    there: RunFiles = pickle.loads(pickle.dumps(run))  # noqa: S301 - of this test
    assert read(there, "a", starts[0], 17) == SECRET[:17].tobytes()
    assert read(there, "a", starts[1] + 3, 100) == SECRET[3:103].tobytes()
    assert repr(run.key) not in repr(run)
    assert repr(run.key) not in repr(run.file("a"))


def test_nothing_of_what_was_written_can_be_seen(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    write(run, "a")
    (path,) = run.folder.iterdir()
    assert b"Zebra" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert run.folder.stat().st_mode & 0o777 == 0o700
    other = RunFile(path=path, key=bytes(32))
    with other.opened() as file, pytest.raises(IntegrityError, match="was altered"):
        file.read(0, len(SECRET))


def test_a_folder_that_is_gone_is_told_from_a_file(tmp_path: Path) -> None:
    """As a shared folder is that was unmounted."""
    run = new_run(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(run, "a", 0, 1)
    write(run, "a")
    with refuses(UnavailableError, where="disk"), run.writing("b"):
        run.folder.rename(tmp_path / "away")
    for use in (lambda: read(run, "a", 0, 1), lambda: write(run, "c"), lambda: run.create("d")):
        with refuses(UnavailableError, where="disk"):
            use()
    (tmp_path / "away").rename(run.folder)
    assert read(run, "a", 0, 1) == SECRET[:1].tobytes()


@pytest.mark.parametrize("place", [0, 15, 16, 20, 500, 16 + 2**13, 16 + 4 + 2**13 + 15])
def test_an_altered_byte_is_noticed(tmp_path: Path, place: int) -> None:
    run = new_run(tmp_path)
    write(run, "a")
    altered = bytearray((run.folder / "a").read_bytes())
    altered[place] ^= 1
    (run.folder / "a").write_bytes(altered)
    with pytest.raises(TransferError, match="was altered"):
        read(run, "a", 100, 10)


def test_a_file_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    """Else a curator would decrypt one and send it as the other."""
    run = new_run(tmp_path)
    write(run, "table")
    write(run, "tokens")
    (run.folder / "table").replace(run.folder / "tokens")
    with pytest.raises(IntegrityError, match="was altered"):
        read(run, "tokens", 0, 10)


def test_pages_that_changed_places_are_noticed(tmp_path: Path) -> None:
    run, many = new_run(tmp_path), np.arange(3 * PAGE, dtype=np.uint32).view(np.uint8)
    write(run, "a", many)
    path = run.folder / "a"
    stored = path.read_bytes()
    page = (len(stored) - 16) // 12
    first, second = stored[16 : 16 + page], stored[16 + page : 16 + 2 * page]
    path.write_bytes(stored[:16] + second + first + stored[16 + 2 * page :])
    assert read(run, "a", 2 * PAGE, 100) == many[2 * PAGE : 2 * PAGE + 100].tobytes()
    with pytest.raises(IntegrityError, match="was altered"):
        read(run, "a", 0, 10)


def test_no_key_stream_serves_two_files_nor_the_same_file_twice(tmp_path: Path) -> None:
    """A key stream that came again would show the difference of two contents."""
    run, zeros, streams = new_run(tmp_path), np.zeros(4096, np.uint8), list[bytes]()
    for name in ("a", "b", "a"):
        write(run, name, zeros)
        streams.append((run.folder / name).read_bytes()[16:])
    blocks = [stream[place : place + 16] for stream in streams for place in range(0, 4096, 16)]
    assert len(set(blocks)) == len(blocks)


def test_what_is_left_of_a_task_that_was_killed_hinders_nobody(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    begun = run.writing("a")
    begun.__enter__().append(SECRET[:50])  # and here it was killed
    assert not (run.folder / "a").exists()
    start = write(run, "a")
    assert read(run, "a", start, len(SECRET)) == SECRET.tobytes()
    with run_in(tmp_path) as later:
        assert not list(later.folder.iterdir())
        write(later, "b")
    assert not later.folder.exists()


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with pytest.raises(ZeroDivisionError), run.writing("a"):
        raise ZeroDivisionError
    assert not list(run.folder.iterdir())


def test_an_open_file_is_read_by_others_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path)
    file = run.create("table")
    start = file.append(SECRET)
    assert file.read(start, 9).tobytes() == read(run, "table", start, 9) == SECRET[:9].tobytes()
    with pytest.raises(FileExistsError):
        run.create("table")
    synced = list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    file.sync()  # for other machines
    assert synced == [file._file]
    del file


def test_what_is_no_longer_needed_is_deleted_by_name(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for name in ("one-a", "one-b", "two-a", "two-b"):
        write(run, name)
    run.delete("two-a", "none")
    run.delete_all("one")
    assert [path.name for path in run.folder.iterdir()] == ["two-b"]


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (run.folder / "a").write_bytes(bytes(15))
    with refuses(TransferError, where="disk"), run.file("a").opened():
        pass
    write(run, "b")
    with pytest.raises(TransferError, match="shorter than what was written"):
        read(run, "b", 0, len(SECRET) + 100)


def test_whoever_opened_a_file_closes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join opens as many files as there are batches, section after section."""
    run, open_, descriptors = new_run(tmp_path), os.open, list[int]()

    def watched(*arguments: Any) -> int:  # noqa: ANN401 - those of os.open
        descriptors.append(open_(*arguments))
        return descriptors[-1]

    monkeypatch.setattr(os, "open", watched)
    write(run, "a")
    with run.file("a").opened(), PlainFile(path=run.folder / "a").opened():
        assert len(descriptors) == 3
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_a_read_that_the_system_cuts_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reads 2 GiB at once at the most, and a section may be longer."""
    run, preadv = new_run(tmp_path), os.preadv
    start = write(run, "a")
    monkeypatch.setattr(os, "preadv", lambda file, data, place: preadv(file, [data[0][:1000]], place))
    assert read(run, "a", start, len(SECRET)) == SECRET.tobytes()


def test_a_plain_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(SECRET.tobytes())
    with PlainFile(path=tmp_path / "plain").opened() as file:
        for start in (0, 7):
            assert file.read(start, 20).tobytes() == SECRET[start : start + 20].tobytes()
        with refuses(IntegrityError, where="disk"):
            file.read(len(SECRET), 1)
