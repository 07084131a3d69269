"""Cost of one report beside two published packages, pure-ldp and multi-freq-ldpy: make bench-peers.

Both sides take turns in one process. Ours draws exactly, in a time that does not depend on the value, from the system's
generator. Theirs draw from statistical generators and compare in
floating point, which protects nobody from a careful adversary: they are a yardstick. The packages are not dependencies
of this project; they are installed in an environment of their own.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from veiltab.common.collection.oracles import ORACLE_NAMES, Report, oracle_for
from veiltab.common.core.randomness import SystemSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One oracle of a package: its name there, how it makes a report, and how it counts many."""

    package: str
    oracle: str
    randomise: Callable[[int], Any]
    aggregate: Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Microseconds a report of one step, ours and theirs: wall clock and processor time."""

    size: int
    oracle: str
    step: str
    package: str
    wall: float
    cpu: float
    their_wall: float
    their_cpu: float

    @property
    def ratio(self) -> float:
        """Ours as a fraction of theirs, by wall clock: below 1, ours is faster."""
        return self.wall / self.their_wall

    @property
    def cpu_ratio(self) -> float:
        """Ours as a fraction of theirs, by processor time."""
        return self.cpu / self.their_cpu


def pure_ldp(size: int, epsilon: float) -> Iterator[Peer]:
    """Yield the oracles of pure-ldp, which counts reports one by one."""
    package = import_module("pure_ldp.frequency_oracles")
    common: dict[str, Any] = {"epsilon": epsilon, "d": size, "index_mapper": lambda value: value}
    for oracle, name, extra in (("krr", "DE", {}), ("oue", "UE", {"use_oue": True}), ("olh", "LH", {"use_olh": True})):
        client = getattr(package, f"{name}Client")(**common, **extra)
        server = getattr(package, f"{name}Server")(**common, **extra)
        yield Peer(package="pure-ldp", oracle=oracle, randomise=client.privatise, aggregate=server.aggregate_all)


def multi_freq_ldpy(size: int, epsilon: float) -> Iterator[Peer]:
    """Yield the oracles of multi-freq-ldpy; its counting ends with the estimate, which costs next to nothing."""
    for oracle, name in (("krr", "GRR"), ("oue", "UE"), ("olh", "LH"), ("ss", "SS")):
        package = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
        client, server = getattr(package, f"{name}_Client"), getattr(package, f"{name}_Aggregator_MI")
        sizes = () if name == "UE" else (size,)
        yield Peer(
            package="multi-freq-ldpy",
            oracle=oracle,
            randomise=lambda value, client=client: client(value, size, epsilon),  # type: ignore[misc]
            aggregate=lambda reports, server=server, sizes=sizes: server(reports, *sizes, epsilon),  # type: ignore[misc]
        )


def measure(reports: int, pair: Sequence[Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run both turn by turn and take the medians; a first run of each warms up and does not count."""
    wall: list[list[float]] = [[], []]
    cpu: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        for i, run in enumerate(pair):
            start, busy = time.perf_counter(), time.process_time()
            run()
            wall[i].append(time.perf_counter() - start)
            cpu[i].append(time.process_time() - busy)
    walls = [statistics.median(times[1:]) / reports * 1e6 for times in wall]
    cpus = [statistics.median(times[1:]) / reports * 1e6 for times in cpu]
    return {"wall": walls[0], "cpu": cpus[0], "their_wall": walls[1], "their_cpu": cpus[1]}


def measure_peer(peer: Peer, size: int, epsilon: Decimal, reports: int, repeats: int) -> list[Cost]:
    """Measure one oracle of one package: a report, and counting."""
    oracle, source = oracle_for(peer.oracle, size, epsilon), SystemSource()
    listed, counts = np.random.default_rng(7).integers(0, size, reports).tolist(), np.zeros(size, np.int64)

    def our_reports() -> list[Report]:
        return [oracle.randomise(value, source) for value in listed]

    def their_reports() -> list[Any]:
        return [peer.randomise(value) for value in listed]

    ours, theirs = our_reports(), their_reports()
    steps: dict[str, Sequence[Callable[[], object]]] = {
        "randomise": (our_reports, their_reports),
        "aggregate": (lambda: oracle.aggregate(ours, counts), lambda: peer.aggregate(theirs)),
    }
    return [
        Cost(size=size, oracle=peer.oracle, step=step, package=peer.package, **measure(reports, pair, repeats))
        for step, pair in steps.items()
    ]


def measure_all(sizes: Sequence[int], epsilon: Decimal, reports: int, repeats: int) -> list[Cost]:
    """Measure every oracle that both sides have, for each number of values."""
    costs = []
    for size in sizes:
        peers = [*pure_ldp(size, float(epsilon)), *multi_freq_ldpy(size, float(epsilon))]
        for peer in sorted(peers, key=lambda peer: ORACLE_NAMES.index(peer.oracle)):
            costs += measure_peer(peer, size, epsilon, reports, repeats)
    return costs


def show(costs: Sequence[Cost], epsilon: Decimal) -> None:
    """Print the costs as a table."""
    table = Table("d", "oracle", "step", "beside", title=f"Microseconds a report, epsilon {epsilon}")
    for name in ("wall", "CPU", "their wall", "their CPU", "ours/theirs", "by CPU"):
        table.add_column(name, justify="right")
    for cost in costs:
        figures = (cost.wall, cost.cpu, cost.their_wall, cost.their_cpu)
        row = (str(cost.size), cost.oracle, cost.step, cost.package, *(f"{figure:.2f}" for figure in figures))
        table.add_row(*row, f"{cost.ratio:.3g}", f"{cost.cpu_ratio:.3g}")
    Console(width=120).print(table)


@click.command()
@click.option("--size", "sizes", multiple=True, type=click.IntRange(2, 65536), default=(128, 1024), show_default=True)
@click.option("--epsilon", type=Decimal, default=Decimal(1), show_default=True, help="Nats.")
@click.option("--reports", type=click.IntRange(min=10), default=1000, show_default=True, help="Reports of each run.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Timed runs of each step.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
def main(sizes: tuple[int, ...], epsilon: Decimal, reports: int, repeats: int, file: Path | None) -> None:
    """Measure our oracles beside theirs."""
    costs = measure_all(sizes, epsilon, reports, repeats)
    show(costs, epsilon)
    if file is not None:
        figures = [asdict(cost) | {"ratio": cost.ratio, "cpu_ratio": cost.cpu_ratio} for cost in costs]
        facts = {"epsilon": str(epsilon), "reports": reports, "repeats": repeats, "costs": figures}
        file.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
