"""The Adult study in containers: build the image, start every party, and check what they promise.

The tests use the Docker engine that is there. Where there is none, root on Debian gets one for as long as the tests
last; anybody else is told why they are skipped. `make compose-test` runs them, in the order of their files:
`test_build`, `test_isolation`, `test_releases`, `test_rounds`, `test_shutdown`.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compose.debian import MIRROR, TreeMaker
from tests.compose.engine import PACKAGES, SUITE, Engine, own_engine, running_engine, unavailable_because
from tests.compose.marks import Remark
from tests.compose.stack import Stack
from veiltab.common.errors import UnavailableError
from veiltab.play.compose.prepare import prepare
from veiltab.play.local.processes import free_ports

_ROOT = Path(__file__).parents[2]
_BASE_SUITE = "bookworm"
_BASE_PACKAGES = ("python3", "python3-venv")
_SECRETS = Path("/run/secrets")
_BUILD_SECONDS = 1800.0
_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compose")
    group.addoption("--or-skip", action="store_true", help="Skip where an engine of our own does not start.")
    group.addoption("--base-image", help="Base of the image; else the Dockerfile's, or one made from Debian.")
    group.addoption("--mirror", default=MIRROR, help="Debian mirror, for an engine of our own.")
    group.addoption("--keep", type=Path, help="Keep the Debian trees in this folder, for the next run.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test and of the fixtures made for it."""
    _seconds[report.nodeid] += report.duration


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Print a test's remark and seconds beside its name."""
    if not isinstance(report, pytest.TestReport) or report.when != "call" or not report.passed:
        return None
    remarks = [text for name, text in report.user_properties if name == "remark"]
    if not remarks:
        return None
    return "passed", ".", f"ok ({_seconds[report.nodeid]:.1f} s): {remarks[-1]}"


@pytest.fixture
def remark(record_property: Callable[[str, object], None]) -> Remark:
    """What to say beside the result."""
    return lambda text: record_property("remark", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """The Debian trees of a run.

    Args:
        keep: where they lie, perhaps from an earlier run.
        maker: makes those that do not.
    """

    keep: Path
    maker: TreeMaker

    def path(self, name: str, suite: str, packages: tuple[str, ...]) -> Path:
        """Return a tree, made if it is not there yet."""
        tree = self.keep / name
        if not tree.exists():
            self.keep.mkdir(parents=True, exist_ok=True)
            unfinished = self.keep / f"new-{name}"
            self.maker.make(unfinished, suite, packages)
            unfinished.rename(tree)
        return tree


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder on a disk, which /tmp need not be: an engine of our own puts images into it."""
    path = Path(tempfile.mkdtemp(prefix="veiltab-compose-", dir="/var/tmp"))
    # The end of the run removes what it made, also when somebody else ends it.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: pytest.exit(f"signal {number}", 128 + number))
    yield path
    mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    assert not [line for line in mounts if f" {path}" in line], f"left behind, as something is mounted there: {path}"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def trees(request: pytest.FixtureRequest, folder: Path) -> Trees:
    maker = TreeMaker(work=folder, mirror=request.config.getoption("--mirror", MIRROR))
    return Trees(keep=request.config.getoption("--keep", None) or folder, maker=maker)


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[Engine]:
    """The engine of this machine, or one of our own."""
    found = running_engine()
    if found is not None:
        yield found
        return
    if reason := unavailable_because():
        pytest.skip(reason)
    with ExitStack() as cleaning:
        try:
            tree = request.getfixturevalue("trees").path("engine", SUITE, PACKAGES)
            own = cleaning.enter_context(own_engine(folder, tree, [folder, _ROOT]))
        except UnavailableError as error:
            if not request.config.getoption("--or-skip", default=False):
                raise
            pytest.skip(f"no engine of our own can run on this machine: {error}")
        yield own


@pytest.fixture(scope="session")
def base_image(request: pytest.FixtureRequest, engine: Engine) -> str | None:
    """The base image, if it is not the Dockerfile's."""
    named: str | None = request.config.getoption("--base-image", None)
    if named is not None or not engine.own:
        return named
    tree = request.getfixturevalue("trees").path("base.tar", _BASE_SUITE, _BASE_PACKAGES)
    engine.run("import", "-", "veiltab-base", stdin=tree)
    return "veiltab-base"


@pytest.fixture(scope="session")
def image(engine: Engine, folder: Path, base_image: str | None) -> Iterator[str]:
    """The image, built with this machine's settings of pip as secrets."""
    name = f"veiltab-check-{secrets.token_hex(4)}"
    settings = {key: value for key in ("cert", "index-url", "proxy") if (value := _pip_setting(key))}
    options = [] if base_image is None else ["--build-arg", f"BASE_IMAGE={base_image}"]
    if "cert" in settings:
        shutil.copyfile(settings["cert"], folder / "ca.pem")
        settings["cert"] = str(_SECRETS / "ca.pem")
        options += ["--secret", f"id=ca.pem,src={folder / 'ca.pem'}"]
    if settings:
        lines = [f"{key} = {value}" for key, value in settings.items()]
        (folder / "pip.conf").write_text("\n".join(["[global]", *lines, ""]), "utf-8")
        options += ["--secret", f"id=pip.conf,src={folder / 'pip.conf'}"]
    options += ["--file", str(_ROOT / "deploy" / "compose" / "Dockerfile"), "--tag", name]
    engine.run("build", "--progress=plain", *options, str(_ROOT), timeout=_BUILD_SECONDS, lines=40)
    yield name
    if not engine.own:
        with suppress(UnavailableError, subprocess.TimeoutExpired):
            engine.run("image", "rm", name)


@pytest.fixture(scope="session")
def stack(engine: Engine, folder: Path, image: str) -> Iterator[Stack]:
    """Every party, serving by its own health check."""
    yield from _started(Stack(engine=engine, folder=folder / "adult", project=image, image=image), relay=False)


@pytest.fixture(scope="session")
def relayed_stack(engine: Engine, folder: Path, image: str) -> Iterator[Stack]:
    """The same, with curators that are called through a relay."""
    yield from _started(
        Stack(engine=engine, folder=folder / "relayed", project=f"{image}-relayed", image=image), relay=True
    )


def _started(running: Stack, *, relay: bool) -> Iterator[Stack]:
    prepare(running.folder, port=free_ports(1)[0], source=_ROOT, relay=relay)
    with (running.folder / ".env").open("a", encoding="utf-8") as settings:
        settings.write(f"VEILTAB_IMAGE='{running.image}'\n")
    try:
        try:
            running.up()
        except UnavailableError:
            sys.stderr.write(running.compose("logs", "--no-color", "--tail", "20"))
            raise
        yield running
    finally:
        # An engine of our own takes its containers along.
        if not running.engine.own:
            with suppress(UnavailableError, subprocess.TimeoutExpired):
                running.remove()


def _pip_setting(key: str) -> str:
    """Return a setting of this machine's pip; empty if it has none."""
    value = os.environ.get(f"PIP_{key.upper().replace('-', '_')}", "")
    if not value:
        command = [sys.executable, "-m", "pip", "config", "get", f"global.{key}"]
        value = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return value
