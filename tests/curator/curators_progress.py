"""What curators tell of a release, as tests make it."""

from typing import Any

from tests.conftest import request_with, spec_with
from tests.curator.made_records import recorded, shown
from veiltab.common.errors import VeiltabError
from veiltab.common.release.table_spec import Column
from veiltab.curator.progress.release_record import CuratorRelease, End, Progress, Review, Step, Wait

Outcome = Step | Wait | End


Others = tuple[Progress, ...] | VeiltabError


NAMES = ("alice", "bob", "carol")


DEADLINE = 100


REQUEST = request_with(deadline=DEADLINE)


COLUMNS = tuple(Column(attribute=name, owner=owner, size=2) for name, owner in zip("xyz", NAMES, strict=True))


SPECS = tuple(spec_with(sample=sample, columns=COLUMNS) for sample in (400, 399))


WITHOUT_CAROL = tuple(spec_with(sample=sample, columns=COLUMNS[:2]) for sample in (400, 399))


CHECKS = (b"one sample", b"another")


REVIEWED = Review(curator="alice")


def release(**changes: Any) -> CuratorRelease:  # noqa: ANN401 - any field
    return recorded(**({"request": REQUEST} | changes))


def progress(**changes: Any) -> Progress:  # noqa: ANN401 - any field
    return shown(**({"granted": frozenset({"salary"}), "request_digest": release().request_digest} | changes))
