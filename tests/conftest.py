"""What many tests need: a study of two curators, and specs and requests of its releases."""

import asyncio
import gc
import inspect
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from veiltab.common.command.cli import run
from veiltab.common.errors import VeiltabError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.process.signals import raise_at_interrupt
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.budget.entries import facts_of
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, curators_noise
from veiltab.deploy.cli import veiltab

STUDY_HEAD = """
[study]
id = "survey"
title = "A survey"
hub = "alice"
minimum_population = 2
[budget]
epsilon = 1
[server]
name = "cloud"
endpoint = "localhost:7400"
[[curator]]
name = "alice"
endpoint = "localhost:7401"
id_columns = ["id"]
[[curator]]
name = "bob"
endpoint = "localhost:7402"
complete = true
id_columns = ["id"]
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
"""
"""A study of two curators and a researcher, without attributes; alice is the hub."""
TO_SPOKE = (b'hub = "alice"', b'hub = "bob"'), (b"complete = true\n", b"")
"""Replacements that make alice a spoke of bob, of whose people she may lack some."""
STUDY = f"""{STUDY_HEAD}[[researcher]]
name = "rita"
endpoint = "localhost:7411"
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
[[attribute]]
name = "age"
owner = "alice"
categories = ["young", "middle", "old"]
[[attribute]]
name = "salary"
owner = "bob"
categories = ["low", "high"]
""".encode()
SURVEY = study_from_bytes(STUDY, "study.toml")
COLUMNS = (Column(attribute="sex", owner="alice", size=2), Column(attribute="salary", owner="bob", size=2))

Kind = TypeVar("Kind", bound=VeiltabError)

gc.set_threshold(20_000)  # most of what lives was imported or collected, and is no garbage

# How long an example takes says something of the machine, not of the code.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("searching", deadline=None)
# The same examples every time, so that a change is judged by what it changes; make test-all searches 100 others.
settings.load_profile(os.environ.get("VEILTAB_EXAMPLES", "steady"))


WAITING = {"hostile", "play", "protocol"}
"""Folders of tests of real processes, which mostly wait for one another."""

SHARING = {
    f"tests/protocol/test_{name}.py"
    for name in (
        *("absent_parties", "analysts", "callers", "certificates", "decisions", "desk", "http_api", "kills"),
        *("linked_release", "releases", "repeats"),
    )
}
"""Files whose tests share the parties of tests/protocol/conftest.py, which take seconds of a processor to start."""


class Scheduling(LoadFileScheduling):  # type: ignore[misc] # ships no types
    """Give each file to one worker, and all files of SHARING to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        return "tests/protocol" if scope in SHARING else scope


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    # The long tests of these files take hours of one worker, beside which the start of parties is nothing.
    is_quick = config.getoption("dist") == "loadfile" and "not long" in config.getoption("markexpr")
    return Scheduling(config, log) if is_quick else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files that wait among those that compute: beside a worker that waits another one computes.

    Those that look at the whole tree and those that share parties take long and come first, so that nobody waits for
    them at the end.
    """
    here = Path(__file__).parent
    files = dict.fromkeys(item.path for item in items)
    places = dict[Path, float]()
    for waits in (True, False):
        some = [path for path in files if (path.parent.name in WAITING) is waits]
        some.sort(key=lambda path: (path.parent != here, str(path.relative_to(here.parent)) not in SHARING))
        places |= {path: place / len(some) for place, path in enumerate(some)}
    items.sort(key=lambda item: places[item.path])
    gc.freeze()  # what was imported and collected lives to the end: no collection looks at it again


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Run one of the first commands; return its exit code, and what it wrote to its two streams."""

    def ran_with(command: click.Command, *words: str) -> tuple[int, str, str]:
        named = [] if command is veiltab else [command.name or ""]
        monkeypatch.setattr(sys, "argv", ["veiltab", *named, *words])
        code = run(veiltab)
        written = capsys.readouterr()
        return code, written.out, written.err

    return ran_with


def spec_with(**changes: Any) -> TableSpec:  # noqa: ANN401 - any field of a spec
    """Return a spec, planned unless the changes say otherwise."""
    fields: dict[str, Any] = {
        "release_id": "0" * 31 + "1",
        "study_digest": SURVEY.digest,
        "researcher": "rosa",
        "columns": COLUMNS,
        "population": 1000,
        "sample": 400,
        "epsilon": Decimal("0.1"),
        "scheme": "wor",
        "sampling": Sampling.SEED,
        "pad": Pad.CHACHA20,
        "alignment": "ab" * 16,
        "deadline": 2_000_000_000,
        "curator_replacement": 0,
        "canaries": 0,
    } | changes
    if "server_replacement" not in fields:
        plan = plan_release(
            population=fields["population"],
            cells=prod(column.size for column in fields["columns"]),
            epsilon=fields["epsilon"],
            sample=fields["sample"],
            noise_split=Decimal(0),
        )
        fields["server_replacement"] = plan.mechanism.server_replacement
    return TableSpec(**fields)


def noise_with(seed: bytes = bytes(32), **changes: Any) -> CuratorsNoise:  # noqa: ANN401 - any field of a spec
    """Return the noise and the canaries of a spec; none of either unless the changes say otherwise."""
    return curators_noise(spec_with(**changes), seed)


@contextmanager
def refuses(kind: type[Kind], *, where: str) -> Iterator[pytest.ExceptionInfo[Kind]]:
    """Expect a refusal of this very kind at this very place; what it says stands in texts.txt."""
    with pytest.raises(kind) as refusal:
        yield refusal
    assert (type(refusal.value), refusal.value.where) == (kind, where)


def request_with(**changes: Any) -> ReleaseRequest:  # noqa: ANN401 - any field of a request
    fields: dict[str, Any] = {
        "release_id": "0" * 31 + "1",
        "researcher": "rosa",
        "attributes": ("sex", "salary"),
        "epsilon": Decimal("0.1"),
        "purpose": "wage gap",
        "deadline": 2_000_000_000,
    } | changes
    return ReleaseRequest(**fields)


_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
_epsilons = st.decimals("0.01", 10, allow_nan=False, places=None)
_columns = st.lists(
    st.builds(Column, attribute=_names, owner=_names, size=st.sampled_from([2, 3, 7, 256, 257])),
    min_size=1,
    max_size=2,
    unique_by=lambda column: column.attribute,
).map(tuple)


@st.composite
def _any_spec(draw: st.DrawFn) -> TableSpec:
    population = draw(st.integers(1, 10**12))
    return spec_with(
        release_id=draw(st.from_regex("[0-9a-f]{32}", fullmatch=True)),
        study_digest=draw(st.from_regex("[0-9a-f]{64}", fullmatch=True)),
        researcher=draw(_names),
        columns=draw(_columns),
        population=population,
        sample=draw(st.integers(1, population)),
        epsilon=draw(_epsilons),
        sampling=draw(st.sampled_from(Sampling)),
        pad=draw(st.sampled_from(Pad)),
        alignment=draw(st.from_regex("[0-9a-f]{32}", fullmatch=True)),
        deadline=draw(st.integers(0, 2**62)),
    )


_any_request = st.builds(
    request_with,
    release_id=st.from_regex("[0-9a-f]{32}", fullmatch=True),
    researcher=_names,
    attributes=st.lists(_names, min_size=1, max_size=4, unique=True).map(tuple),
    epsilon=_epsilons,
    purpose=st.text(max_size=50).filter(str.isprintable),
    deadline=st.integers(0, 2**62),
    partial=st.booleans(),
    sampling=st.sampled_from(Sampling),
    pad=st.sampled_from(Pad),
    sample=st.none() | st.integers(1, 2**63),
)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Undo what a command that ran in this process left of its process: the log's level, and SIGINT at its default."""
    logging.getLogger().setLevel(logging.WARNING)
    raise_at_interrupt()


@pytest.fixture(scope="session")
def study() -> Study:
    return SURVEY


@pytest.fixture(scope="session")
def study_bytes() -> bytes:
    return STUDY


@pytest.fixture(scope="session")
def any_spec() -> SearchStrategy[TableSpec]:
    return _any_spec()


@pytest.fixture(scope="session")
def any_request() -> SearchStrategy[ReleaseRequest]:
    return _any_request


FACTS = json.dumps(facts_of(release_of(spec_with())))
"""What a ledger says of a release of one table."""


def reserve(ledger: Ledger, spec: TableSpec) -> None:
    """Keep a release's price for it, as worked out here."""
    ledger.reserve(release_of(spec), ledger.budget.allowance.charge(spec.description, guaranteed_epsilon(spec)))


@pytest.fixture
def forbid_accounting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes the test fail if any guarantee is worked out after its call."""

    def fail(*_: object) -> None:
        raise AssertionError("a guarantee is worked out")

    def begin() -> None:
        monkeypatch.setattr(ReleaseDescription, "pure_epsilon", property(fail))
        monkeypatch.setattr(ReleaseDescription, "delta", fail)

    return begin


@dataclass(kw_only=True)
class PlayedDisk:
    """The disk of every folder; `free` are the bytes that are free on it."""

    free: int = 2**40


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> PlayedDisk:
    """Play a disk whose free space a test sets."""
    played = PlayedDisk()
    monkeypatch.setattr("veiltab.common.storage.disk.free_bytes", lambda _: played.free)
    return played
