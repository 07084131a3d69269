import json
import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import STUDY, Ran
from veiltab.common.command.new_files import NewFile
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.curator.budget.allowance import Allowance
from veiltab.deploy.cli import veiltab
from veiltab.play.cli import DEFAULT, demo

ROOT = Path(__file__).parents[2]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from commands(found, (*path, name))


COMMANDS = dict(commands(veiltab))


def test_every_command_explains_itself_with_an_example(ran: Ran) -> None:
    for path in COMMANDS:
        code, out, err = ran(veiltab, *path, "--help")
        assert (code, err) == (0, ""), path
        assert out.startswith("Usage: "), path
        assert "\x1b" not in out, path
        example = " ".join(re.split(r"Example:", out, maxsplit=1)[1].split())
        assert example.startswith(" ".join(["veiltab", *path])), example


def test_every_example_names_options_that_exist() -> None:
    for command in COMMANDS.values():
        text = " ".join(filter(None, [command.help, command.epilog]))
        example = text.split("Example:", 1)[1].split("\n\n")[0].split("\nExit codes")[0]
        words = example.split()
        found: click.Command = veiltab
        for word in words[1:]:
            if not isinstance(found, click.Group):
                break
            inner = found.get_command(click.Context(found), word)
            assert inner is not None, word
            found = inner
        known = {name for one in (found, command) for parameter in one.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known


WRITING = {"--out", "--plot", "--picture", "--card", "--report", "--for-researcher", "--to"}
KEEP_WHAT_IS_THERE = {
    "collect enrol --out",
    "curator linkage --to",
    "demo collect --out",
    "demo join --out",
    "demo link --out",
    "demo linked --out",
    "demo table --out",
    "lab reproduce --out",
    "pki init --out",
    "rehearse --out",
    "study draft --out",
    "study merge --out",
}
"""They refuse what is there without --force, or go on with it; tests of their own show it."""


def test_every_command_that_writes_asks_before_it_overwrites() -> None:
    writing = {
        f"{' '.join(path)} {option.opts[0]}": option.type
        for path, command in COMMANDS.items()
        for option in command.params
        if isinstance(option.type, click.Path) and WRITING & {*option.opts}
    }
    assert {name for name, kind in writing.items() if not isinstance(kind, NewFile)} == KEEP_WHAT_IS_THERE


@pytest.mark.parametrize(
    ("args", "name", "option", "value"),
    [
        ([], DEFAULT, "verbose", False),
        (["--server", "lazy"], DEFAULT, "behaviour", "lazy"),
        (["linked", "--people", "2000"], "linked", "people", 2000),
        (["table", "--server", "lazy"], "table", "behaviour", "lazy"),
        (["table", "--table", "a.csv", "b.csv"], "table", "more_tables", (Path("b.csv"),)),
        (["table", "--epsilon", "3"], "table", "epsilon", "3"),
        (["collect", "--nodes", "9"], "collect", "nodes", 9),
    ],
)
def test_a_demonstration_runs_though_none_is_named(
    monkeypatch: pytest.MonkeyPatch, args: list[str], name: str, option: str, value: object
) -> None:
    begun: list[tuple[str, dict[str, Any]]] = []
    for one, command in demo.commands.items():
        monkeypatch.setattr(command, "callback", lambda _one=one, **given: begun.append((_one, given)))
    demo.main(args, standalone_mode=False)
    ((ran, given),) = begun
    assert (ran, given[option]) == (name, value)


@pytest.mark.parametrize(
    ("args", "command"),
    [
        (["--nodes", "2000"], "collect --nodes"),
        (["--epsilon", "2", "--nodes=9"], "collect --nodes"),
        (["--people", "2000"], "join --people"),
    ],
)
def test_an_option_of_another_demonstration_names_its_place(ran: Ran, args: list[str], command: str) -> None:
    code, out, err = ran(veiltab, "demo", *args)
    assert (code, out) == (2, "")
    assert f"is an option of another demonstration: veiltab demo {command}" in err


@pytest.mark.parametrize("args", [["nothing"], ["curator", "nothing"], ["plan", "--nothing"], ["plan"]])
def test_what_is_not_known_or_not_whole_is_bad_input(ran: Ran, args: list[str]) -> None:
    code, out, err = ran(veiltab, *args)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert "Error: " in err


def test_help_and_an_unknown_command_stay_light() -> None:
    script = (
        "import sys; sys.argv = ['veiltab', *sys.argv[1:]];"
        "from veiltab.common.command.cli import run; from veiltab.deploy.cli import veiltab;"
        "code = run(veiltab); heavy = {'numpy', 'pandas', 'grpc', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules);"
        "sys.exit(f'{code} {sorted(heavy)}')"
    )
    for args, expected in ((["--help"], "0 []"), (["nothing"], "2 []")):
        done = subprocess.run(
            [sys.executable, "-c", script, *args], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
        )
        assert done.stderr.splitlines()[-1] == expected


def test_a_process_ends_before_python_takes_itself_apart() -> None:
    """A thread of a library that asks for Python then would abort it; what is to be done at its end is done."""
    script = """
import atexit, os, sys
from veiltab.deploy.cli import main
class Late:
    def __del__(self, write=os.write): write(2, b"taken apart")
late = Late()
import veiltab.deploy.cli as cli
cli.run = lambda command: atexit.register(print, "at its end") and print("ran") or sys.exit(143)
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "ran\nat its end\n", "")


def test_the_module_is_the_command_with_one_thread_of_linear_algebra_and_one_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["veiltab", "--version"])
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr("veiltab.deploy.cli._end", sys.exit)  # it would end the tests
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("veiltab", run_name="__main__")
    assert (", version " in capsys.readouterr().out, [*os.environ.values()]) == (True, ["NONE", "1", "system"])


PLAN = ("plan", "--population", "45222", "--cells", "24", "--epsilon", "2.5", "--delta", "1e-6")


def test_a_plan_says_what_it_takes_of_a_budget_at_two_deltas(ran: Ran) -> None:
    budget = ("--advanced", "budget=3.5", "--advanced", "budget-delta=1e-6")
    plan = json.loads(ran(veiltab, *PLAN, *budget, "--json")[1])
    assert plan["budget"] == {"epsilon": 3.5, "delta": 1e-6}
    asked, smaller = plan["charges"]
    allowance = Allowance(epsilon=Decimal("3.5"), delta=Decimal("1e-6"))
    for charge, delta in ((asked, "1e-6"), (smaller, "1e-7")):
        same = plan_release(population=45222, cells=24, epsilon=Decimal("2.5"), delta=Decimal(delta))
        share = allowance.share(allowance.charge(same.description, same.pure_epsilon))
        assert (charge["delta"], charge["share"], charge["held"]) == (float(delta), float(share), True)
        assert charge["replacement_probability"] == float(1 - same.mechanism.retention)
    # Less of delta costs some noise, and much less of the budget.
    assert asked["share"] > 2 * smaller["share"]
    assert (
        asked["replacement_probability"] < smaller["replacement_probability"] < 1.3 * asked["replacement_probability"]
    )
    out = ran(veiltab, *PLAN, *budget)[1]
    assert "Charge, of a budget of epsilon 3.5 at delta 1e-6:\n  at delta 1e-6: 1" in out
    assert ", which is held only while nothing else is charged; a row is replaced with probability 0.00" in out
    assert "\n  at delta 1e-7: 4" in out
    assert N_IS_EXACT in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--advanced", "budget=2", "--advanced", "budget-delta=1e-6"), "%, which is refused; a row is replaced with"),
        (("--advanced", "budget=3"), "so the pure epsilon counts: ask without delta.\n  at delta 1e-6: 2"),
        (("--advanced", "budget-delta=1e-6"), "--advanced budget-delta: a budget was given without its epsilon"),
    ],
)
def test_a_plan_says_what_a_budget_does_not_hold(ran: Ran, options: tuple[str, ...], said: str) -> None:
    assert said in "".join(ran(veiltab, *PLAN, *options)[1:])


def test_a_plan_of_a_studys_table_takes_of_the_studys_budget(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(STUDY)
    args = ("--study", str(tmp_path / "study.toml"), "--attributes", "sex,salary", "--population", "1000")
    plan = json.loads(ran(veiltab, "plan", *args, "--epsilon", "0.5", "--json")[1])
    assert plan["budget"] == {"epsilon": 1.0, "delta": None}
    (charge,) = plan["charges"]
    assert (charge["delta"], round(charge["share"], 6), charge["held"]) == (None, 0.5, True)
