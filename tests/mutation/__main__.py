"""What the quick tests notice of small changes to the core: python -m tests.mutation --most 100.

Each mutant of a sample runs in a copy of the tree against the tests of its module: its mirror and the tests that import
it, and, if these notice nothing, all tests of the mirror's folder. A survivor is a missing test, unless it changes
nothing that anybody can see: who reads the list decides.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path

import click

from tests.mutation.mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
CORE = (
    "common/core/**/*.py",
    "common/schemes/**/*.py",
    "common/privacy/**/*.py",
    "common/release/**/*.py",
    "common/collection/oracles/*.py",
    "common/collection/tokens.py",
    "common/rpc/authorisation.py",
    "common/storage/**/*.py",
    "common/tasks/**/*.py",
    "curator/alignment/alignment.py",
    "curator/alignment/intersection.py",
    "curator/alignment/token_exchange.py",
    "curator/alignment/token_order.py",
    "curator/table/tokens.py",
    "curator/budget/allowance.py",
    "curator/peers/coins.py",
    "curator/columns/draw_tasks.py",
    "curator/columns/encryption.py",
    "curator/columns/encryption_tasks.py",
    "curator/budget/ledger.py",
    "curator/officer/policy.py",
    "curator/progress/progress.py",
    "curator/planning/checks.py",
    "curator/alignment/disk_needs.py",
    "curator/columns/sample_rows.py",
    "curator/release/server_check.py",
    "curator/columns/shared_sample.py",
    "curator/table/partition_files.py",
    "curator/table/table_rows.py",
    "curator/table/execution.py",
    "researcher/desk/certifying.py",
    "researcher/receiving/decryption.py",
    "researcher/estimates/estimation.py",
    "researcher/estimates/projection.py",
    "researcher/receiving/receiving.py",
    "researcher/estimates/uncertainty.py",
    "common/web/serving.py",
    "server/https/application.py",
    "server/https/json_messages.py",
    "server/rounds/rounds.py",
    "server/rounds/rounds_store.py",
    "server/sharing/leases.py",
    "server/records/noise.py",
    "server/release/perturbation.py",
    "server/records/session.py",
    "server/release/upload.py",
)
"""Modules on which privacy and right answers rest."""

_MEMORY = 8 * 2**30
"""Bytes of address space that a mutant may take before it counts as noticed."""

_ENDING_SECONDS = 20


class Copy:
    """A copy of the tree whose modules may be changed.

    Args:
        root: where it is.
        keeps_on: whether tests go on after the first that fails, so that `noticing` says of each what it noticed.
    """

    def __init__(self, root: Path, *, keeps_on: bool) -> None:
        self.root = root
        self.keeps_on = keeps_on
        self.noticing: dict[str, bool] = {}
        self._durations: dict[tuple[str, ...], float] = {}
        hidden = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
        shutil.copytree(ROOT, root, symlinks=True, ignore=hidden, dirs_exist_ok=True)

    def notices(self, module: str, mutant: Mutant, tests: tuple[str, ...]) -> bool:
        """Whether some tests fail, or take much longer, with a mutant in the place of its module."""
        limit = 10 + 3 * self._seconds(tests)
        path = self.root / module
        original = path.read_bytes()
        try:
            path.write_text(mutant.source)
            return not self._passes(tests, limit)
        finally:
            path.write_bytes(original)

    def _seconds(self, tests: tuple[str, ...]) -> float:
        """Return how long some tests take without any change."""
        if tests not in self._durations:
            began = time.monotonic()
            if not self._passes(tests, None):
                raise click.ClickException(f"these tests fail without any change: {' '.join(tests)}")
            self._durations[tests] = time.monotonic() - began
        return self._durations[tests]

    def _passes(self, tests: tuple[str, ...], limit: float | None) -> bool:
        how = ("-rA", "--tb=no") if self.keeps_on else ("-x",)
        command = [sys.executable, "-m", "pytest", *how, "-q", "-m", "not long", "-p", "no:cacheprovider", *tests]
        # Byte code is known by its second and its size, which a mutant may share with the module.
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE if self.keeps_on else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        ) as running:
            try:
                self._note(running.communicate(timeout=limit)[0] or "")
            except subprocess.TimeoutExpired:
                return False
            else:
                return running.returncode == 0
            finally:
                _end(running)

    def _note(self, report: str) -> None:
        """Keep which tests noticed something; all of a file do that cannot be read."""
        for outcome, test in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", report, re.MULTILINE):
            if outcome == "PASSED":
                self.noticing.setdefault(test, False)
            else:
                self.noticing |= {test: True} | {one: True for one in self.noticing if one.startswith(f"{test}::")}


def _end(running: "subprocess.Popen[str]") -> None:
    """End tests that are still running: pytest first, which ends the databases that they started."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if running.poll() is None:
            os.killpg(running.pid, number)
            with suppress(subprocess.TimeoutExpired):
                running.wait(_ENDING_SECONDS)


def modules(root: Path, patterns: Sequence[str]) -> list[str]:
    """Return the modules of some patterns, as paths below the root of a tree.

    Raises:
        click.UsageError: a pattern that no module fits.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = sorted(path for path in root.glob(pattern) if path.name != "__init__.py")
        if not paths:
            raise click.UsageError(f"no module fits {pattern}")
        found |= dict.fromkeys(str(path.relative_to(root)) for path in paths)
    return list(found)


def nearest_tests(root: Path, module: str) -> list[tuple[str, ...]]:
    """Return the test files of a module in steps: its mirror and those that import it, then others of their folder."""
    path = Path(module)
    named = sorted((root / "tests" / path.parts[0]).glob(f"**/test_{path.name}"))
    mirror = named[0] if named else root / "tests" / path.parent / f"test_{path.name}"
    folder = next(one for one in mirror.parents if one.is_dir())
    *around, stem = path.with_suffix("").parts
    package = re.escape(".".join(around))
    name = re.compile(rf"\bveiltab\.{package}\.{stem}\b|from veiltab\.{package} import .*\b{stem}\b")
    part = sorted(root.glob(f"tests/{path.parts[0]}/**/test_*.py"), key=lambda file: file != mirror)
    first = [file for file in part if file == mirror or name.search(file.read_text())]
    second = [file for file in sorted(folder.glob("test_*.py")) if file not in first]
    return [tuple(str(file.relative_to(root)) for file in step) for step in (first, second) if step]


def sampled(root: Path, names: Sequence[str], most: int, seed: int) -> list[tuple[str, Mutant]]:
    """Draw mutants of some modules, at most one a line, the same number of each module as long as it has some.

    Which modules have one more than others, or one where others have none, is drawn as well.
    """
    source = random.Random(seed)  # noqa: S311 - a sample of mutants is no secret
    drawn: list[list[tuple[str, Mutant]]] = []
    for name in source.sample(names, len(names)):
        shuffled = mutants_of((root / name).read_text())
        source.shuffle(shuffled)
        drawn.append([(name, mutant) for mutant in {mutant.line: mutant for mutant in shuffled}.values()])
    turns = chain.from_iterable(zip_longest(*drawn))
    return [one for one in turns if one is not None][:most]


def survivors_of(copy: Copy, sample: Sequence[tuple[str, Mutant]]) -> list[str]:
    """Return the mutants of a sample that no test of their modules notices: where, what stood there, what stands now.

    Raises:
        click.ClickException: the tests of an unchanged module fail.
    """
    survivors: list[str] = []
    for number, (module, mutant) in enumerate(sorted(sample, key=lambda one: (one[0], one[1].line)), 1):
        steps = nearest_tests(copy.root, module)
        noticed = any(copy.notices(module, mutant, tests) for tests in steps)
        change = f"{module}:{mutant.line}  {mutant.before}  ->  {mutant.after}"
        click.echo(f"{number}/{len(sample)} {change}  {'noticed' if noticed else 'SURVIVED'}", err=True)
        if not noticed:
            survivors.append(change)
    return survivors


@click.command()
@click.option(
    "--modules", "patterns", multiple=True, help="Modules to change; patterns below the root. [default: CORE]"
)
@click.option("--most", type=click.IntRange(min=1), default=150, show_default=True, help="Mutants to try.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which of all mutants are tried.")
@click.option("--idle", is_flag=True, help="Print the tests that noticed no mutant, too; takes longer.")
def main(patterns: tuple[str, ...], most: int, seed: int, idle: bool) -> None:  # noqa: FBT001 - an option
    """Try mutants of the core and print those that no test notices."""
    # A shell that runs this in the background has both ignore the interrupt with which tests are ended.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with tempfile.TemporaryDirectory(prefix="veiltab-mutants-") as folder:
        copy = Copy(Path(folder), keeps_on=idle)
        sample = sampled(copy.root, modules(copy.root, patterns or CORE), most, seed)
        survivors = survivors_of(copy, sample)
    tried, noticed = len(sample), len(sample) - len(survivors)
    for one in (*survivors, *(f"idle: {test}" for test, noticed_any in copy.noticing.items() if not noticed_any)):
        click.echo(one)
    click.echo(f"{noticed} of {tried} mutants noticed ({noticed / tried:.1%})")


if __name__ == "__main__":
    main()
