"""`python -m veiltab.deploy.compose.check`: build the image, run the Adult study in containers, check their promises.

It uses the Docker engine that is there. Where there is none, root on Debian gets one for as long as the check lasts;
anybody else is told why the check was skipped, with exit code 0.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from veiltab.common.command.cli import run
from veiltab.common.errors import VeiltabError
from veiltab.deploy.compose.checks import CHECKS
from veiltab.deploy.compose.debian import MIRROR, TreeMaker
from veiltab.deploy.compose.engine import (
    PACKAGES,
    SUITE,
    Engine,
    own_engine,
    running_engine,
    unavailable_because,
)
from veiltab.deploy.compose.prepare import prepare
from veiltab.deploy.compose.stack import Stack
from veiltab.deploy.local.processes import free_ports

T = TypeVar("T")
_ROOT = Path(__file__).resolve().parents[2]
_BASE_SUITE = "bookworm"
_BASE_PACKAGES = ("python3", "python3-venv")
_SECRETS = Path("/run/secrets")


@dataclass(slots=True)
class Report:
    """Runs steps one after the other and says of each whether it went well."""

    done: int = 0
    failed: int = 0

    def step(self, name: str, work: Callable[[], T]) -> T | None:
        """Do one step; print "ok" with its remark, or "FAILED" with the reason, and the seconds it took."""
        began = time.monotonic()
        self.done += 1
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next steps have their say
            self.failed += 1
            what = "" if isinstance(error, VeiltabError) else f"{type(error).__name__}: "
            click.echo(f"FAILED  {name} ({time.monotonic() - began:.1f} s): {what}{error}")
            return None
        remark = f": {result}" if isinstance(result, str) else ""
        click.echo(f"ok      {name} ({time.monotonic() - began:.1f} s){remark}")
        return result


@click.command(name="check", epilog="Example: python -m veiltab.deploy.compose.check --only killed")
@click.option("--only", multiple=True, metavar="WORD", help="Only checks whose name has this word.")
@click.option("--base-image", help="Base of the image; by default the Dockerfile's, or one made from Debian here.")
@click.option("--mirror", default=MIRROR, show_default=True, help="Debian mirror, for an engine of our own.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the Debian trees in this folder, for the next run.")
@click.option("--or-skip", is_flag=True, help="A machine that cannot run an engine of our own skips the check.")
def command(
    only: tuple[str, ...],
    base_image: str | None,
    mirror: str,
    keep: Path | None,
    or_skip: bool,  # noqa: FBT001 - an option
) -> int:
    """Build the image, run the Adult study in containers, and check what they promise."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    engine = running_engine()
    if engine is None and (reason := unavailable_because()):
        click.echo(f"skipped: {reason}")
        return 0
    report, began = Report(), time.monotonic()
    with ExitStack() as cleaning:
        folder = cleaning.enter_context(_temporary_folder(None if engine else Path("/var/tmp")))  # noqa: S108 - see there
        trees = _Trees(keep=keep or folder, maker=TreeMaker(work=folder, mirror=mirror))
        if engine is None:
            engine = report.step("an engine of our own", lambda: cleaning.enter_context(trees.engine(folder)))
            if engine is None and or_skip:
                click.echo("skipped: no engine of our own can run on this machine")
                return 0
        if engine is not None:
            _check(engine, folder, trees, base_image, only, report, cleaning)
    click.echo(f"{report.done - report.failed} of {report.done} ok, in {time.monotonic() - began:.0f} s")
    return 1 if report.failed else 0


def _check(  # noqa: PLR0913, PLR0917 - what a run consists of
    engine: Engine,
    folder: Path,
    trees: "_Trees",
    base_image: str | None,
    only: tuple[str, ...],
    report: Report,
    cleaning: ExitStack,
) -> None:
    """Build, start, and run the checks; each later step needs the ones before."""
    name = f"veiltab-check-{secrets.token_hex(4)}"
    stack = Stack(engine=engine, folder=folder / "adult", project=name, image=name)
    if engine.own and base_image is None:
        base_image = report.step("a base image from Debian", lambda: trees.base_image(engine))
        if base_image is None:
            return
    if not report.step("the image is built", lambda: _build(engine, folder, name, base_image)):
        return
    if not engine.own:
        cleaning.callback(_quietly, lambda: engine.run("image", "rm", name))
    prepare(stack.folder, port=free_ports(1)[0], source=_ROOT)
    with (stack.folder / ".env").open("a", encoding="utf-8") as settings:
        settings.write(f"VEILTAB_IMAGE='{name}'\n")
    if not engine.own:
        cleaning.callback(_quietly, stack.remove)
    if not report.step("every party serves", lambda: _up(stack)):
        click.echo(stack.compose("logs", "--no-color", "--tail", "20"), err=True)
        return
    for title, run_check in CHECKS:
        if not only or any(word in title for word in only):
            report.step(title, lambda run_check=run_check: run_check(stack))  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trees:
    """The Debian trees of a run.

    Args:
        keep: where they lie, perhaps from an earlier run.
        maker: makes those that do not.
    """

    keep: Path
    maker: TreeMaker

    @contextmanager
    def engine(self, folder: Path) -> Iterator[Engine]:
        tree = self._made("engine", SUITE, PACKAGES)
        with own_engine(folder, tree, [folder, _ROOT]) as engine:
            yield engine

    def base_image(self, engine: Engine) -> str:
        engine.run("import", "-", "veiltab-base", stdin=self._made("base.tar", _BASE_SUITE, _BASE_PACKAGES))
        return "veiltab-base"

    def _made(self, name: str, suite: str, packages: tuple[str, ...]) -> Path:
        tree = self.keep / name
        if not tree.exists():
            self.keep.mkdir(parents=True, exist_ok=True)
            begun = self.keep / f"new-{name}"
            self.maker.make(begun, suite, packages)
            begun.rename(tree)
        return tree


def _up(stack: Stack) -> str:
    stack.up()
    return "by its own health check"


def _build(engine: Engine, folder: Path, name: str, base_image: str | None) -> str:
    """Build the image with this machine's settings of pip, as secrets."""
    settings = {key: found for key in ("cert", "index-url", "proxy") if (found := _pip_setting(key))}
    options = [] if base_image is None else ["--build-arg", f"BASE_IMAGE={base_image}"]
    if "cert" in settings:
        shutil.copyfile(settings["cert"], folder / "ca.pem")
        settings["cert"] = str(_SECRETS / "ca.pem")
        options += ["--secret", f"id=ca.pem,src={folder / 'ca.pem'}"]
    if settings:
        lines = [f"{key} = {value}" for key, value in settings.items()]
        (folder / "pip.conf").write_text("\n".join(["[global]", *lines, ""]), "utf-8")
        options += ["--secret", f"id=pip.conf,src={folder / 'pip.conf'}"]
    file = ("--file", str(_ROOT / "deploy" / "compose" / "Dockerfile"))
    engine.run("build", "--progress=plain", *file, *options, "--tag", name, str(_ROOT), timeout=1800, told=40)
    megabytes = int(engine.run("image", "inspect", "--format", "{{.Size}}", name)) // 10**6
    return f"{megabytes} MB"


def _pip_setting(key: str) -> str:
    """Return a setting of this machine's pip; empty if it has none."""
    found = os.environ.get(f"PIP_{key.upper().replace('-', '_')}", "")
    if not found:
        command = [sys.executable, "-m", "pip", "config", "get", f"global.{key}"]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    return found


def _quietly(work: Callable[[], object]) -> None:
    """Clean up as far as it goes."""
    with suppress(VeiltabError, subprocess.TimeoutExpired):
        work()


@contextmanager
def _temporary_folder(place: Path | None) -> Iterator[Path]:
    """Give a folder that lasts as long as the block; where images go into it, in a place that is on a disk."""
    folder = Path(tempfile.mkdtemp(prefix="veiltab-compose-", dir=place))
    try:
        yield folder
    finally:
        mounted = [line for line in Path("/proc/self/mounts").read_text("utf-8").splitlines() if f" {folder}" in line]
        if mounted:
            click.echo(f"left behind, as something is mounted there: {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run(command))
