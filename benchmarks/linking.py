"""Links two registers of made people between real processes: python -m benchmarks.linking --rows 1e6.

The registers are those of `veiltab demo link`, in CSV; four in five people stand in both. Two curators start, each a
process of its own under mutual TLS, load their tables, link them and align the linked rows; nothing is released.

"wall" is from the start of both until both are aligned, "cpu" user and system time. "own_mib" is the most memory of its
own that a process had, "resident_mib" the kernel's own peak, which has pages of program files in it. With --truth the
same tables are linked once more in this process, which has to make as many links.
"""

import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.parties import cpu_of, memory_of
from veiltab.common.command.cli import note
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.linkage.linking import HUB, SPOKE, LinkOptions, known_links, linkage_report, prepare
from veiltab.play.local.processes import LocalStudy
from veiltab.play.registers.people import Registers, made_registers

_CURATORS = (HUB, SPOKE)
_LOOK_AGAIN, _SAY_AGAIN = 0.1, 30.0


def measure(options: LinkOptions, rows: int, kill: float | None, *, truth: bool) -> dict[str, Any]:
    """Link two registers, and return what that took.

    Args:
        options: of the study; its folder is new.
        rows: of each register.
        kill: seconds after which the spoke is killed and started again; None for never.
        truth: whether the links are compared with those of the rule, and with the people.
    """
    note(f"making two registers of {rows:,} rows")
    registers = made_registers(rows, options.seed)
    local, _ = prepare(options, registers)
    found: dict[str, Any] = {"rows": rows, "alignment": options.alignment, "deletions": options.deletions}
    found["killed_after"] = kill
    with local:
        for name in _CURATORS:
            local.options[Role.CURATOR, name] = ("--verbose",)
        began = said = time.monotonic()
        parties = {name: psutil.Process(local.start(Role.CURATOR, name)) for name in _CURATORS}
        spent, own, resident = (dict.fromkeys(_CURATORS, 0.0) for _ in range(3))
        while not all(_is_aligned(local, name) for name in _CURATORS):
            if ended := local.ended():
                raise AssertionError(f"ended: {ended}; the logs are in {local.folder}")
            for name, one in parties.items():
                memory = memory_of(one.pid)
                own[name] = max(own[name], memory.get("RssAnon", 0))
                resident[name] = max(resident[name], memory.get("VmHWM", 0))
            now = time.monotonic()
            if kill is not None and now - began > kill:
                spent[SPOKE] = cpu_of(parties[SPOKE])
                local.kill(Role.CURATOR, SPOKE)
                parties[SPOKE], kill = psutil.Process(local.start(Role.CURATOR, SPOKE)), None
                note(f"killed {SPOKE} and started it again")
            if now - said > _SAY_AGAIN:
                said = now
                state = (f"{name} {own[name] / 2**20:.0f} MiB, {cpu_of(one):.0f} s" for name, one in parties.items())
                note(f"{now - began:.0f} s: {'; '.join(state)}")
            time.sleep(_LOOK_AGAIN)
        found["wall"] = round(time.monotonic() - began, 1)
        found["cpu"] = {name: round(spent[name] + cpu_of(one), 1) for name, one in parties.items()}
        found["own_mib"] = {name: round(size / 2**20) for name, size in own.items()}
        found["resident_mib"] = {name: round(size / 2**20) for name, size in resident.items()}
        found["received"] = {name: _received(local, name) for name in _CURATORS}
        report = linkage_report(local, SPOKE)
        found["links"] = report["links"]
    if truth:
        found |= _truth(local, registers, report["links"])
    return found


def _is_aligned(local: LocalStudy, curator: str) -> bool:
    path = local.state_folder(Role.CURATOR, curator) / "curator.sqlite"
    if not path.exists():
        return False
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute("SELECT 1 FROM alignment").fetchone() is not None
        except sqlite3.OperationalError:  # the curator has not made its tables yet
            return False


def _received(local: LocalStudy, curator: str) -> int:
    """Return the bytes of keys that a curator fetched, by its log."""
    lines = local.log(Role.CURATOR, curator).read_text("utf-8", errors="replace").splitlines()
    steps = [json.loads(line) for line in lines if line.startswith("{")]
    return sum(one["bytes"] or 0 for one in steps if one.get("step") == "fetch join")


def _truth(local: LocalStudy, registers: Registers, links: int) -> dict[str, Any]:
    note("linking the same tables in this process")
    known = known_links(local, registers)
    right = sum(int(registers.hub_people[hub] == registers.spoke_people[row]) for hub, row in known.items())
    if len(known) != links:
        raise AssertionError(f"the parties made {links:,} links, the rule makes {len(known):,}")
    return {"recall": round(right / registers.common(), 5), "precision": round(right / len(known), 5)}


@click.command()
@click.option("--rows", type=float, default=1e5, show_default=True, help="Rows of each register.")
@click.option("--alignment", type=click.Choice(["oblivious", "tokens"]), default="tokens", show_default=True)
@click.option("--deletions", type=int, default=0, show_default=True, help="Deletion passes behind the default keys.")
@click.option("--kill", type=float, help="Kill the spoke after so many seconds, and start it again.")
@click.option("--truth", is_flag=True, help="Count wrong links, and those that are missing.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), help="On whose disk all lies.")
def main(  # noqa: PLR0913 - one argument an option
    rows: float, alignment: str, deletions: int, kill: float | None, folder: Path | None, *, truth: bool
) -> None:
    """Measure the linking of two registers; prints JSON."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="veiltab-linking-") as name:
        options = LinkOptions(
            out=Path(name) / "study", alignment=alignment, deletions=deletions, misfiled=0, seed="bench"
        )
        found = measure(options, int(rows), kill, truth=truth)
    click.echo(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
