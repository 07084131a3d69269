"""What a study takes, against numbers that were worked out by hand."""

import json
from dataclasses import fields, replace
from itertools import combinations, product

import pytest

from tests.deploy.scale.small import MACHINE, REPORT_COSTS, ROUNDS, STUDY, TABLE_COSTS, work_of
from veiltab.common.collection.round import MAX_POPULATION
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.shuffle import MAX_SAMPLE
from veiltab.common.study.file import MAX_RESPONDENTS, MAX_TABLES
from veiltab.deploy.plan.scale.costs import REPORT_COSTS as SHIPPED_REPORTS
from veiltab.deploy.plan.scale.costs import TABLE_COSTS as SHIPPED_TABLES
from veiltab.deploy.plan.scale.costs import Costs, Way
from veiltab.deploy.plan.scale.model import Party, Scale, Work
from veiltab.deploy.plan.scale.works import Rounds, Tables, scale_of_rounds, scale_of_tables

MILLION = 1_000_000


def scaled(study: Tables = STUDY) -> Scale:
    return scale_of_tables(study, TABLE_COSTS, MACHINE)


def collected(rounds: Rounds = ROUNDS) -> Scale:
    return scale_of_rounds(rounds, REPORT_COSTS, TABLE_COSTS, MACHINE)


CURATOR = [
    # stage, CPU seconds, bytes sent, bytes received
    ("start", 0.5, 0, 0),
    ("load", 0.4, 0, 0),  # 10^6 x (300 + 2 x 50) ns
    ("order", 0.22, 0, 0),  # 10^6 x (200 + 2 x 10) ns
    ("exchange", 0.128, 32e6, 32e6),  # 2 peers x 16 MB each way, 2 ns a byte
    ("search", 0.11, 0, 0),  # 10^6 x (2 x 30 + 40 + 2 x 5) ns
    ("draw", 0.034, 0, 0),  # 10^6 x 10 ns + 400,000 x 60 ns
    ("encrypt", 0.016, 0, 0),  # 800,000 x 20 ns
    ("upload", 0.0016, 0.8e6, 0),  # 800,000 x 2 ns
]
OTHERS = [
    ("start", Party.SERVER, 0.25, 0, 0),
    ("start", Party.RESEARCHER, 0.125, 0, 0),
    ("upload", Party.SERVER, 0.0048, 0, 2.4e6),  # 2,400,000 bytes
    ("perturb", Party.SERVER, 0.024, 0, 0),
    ("fetch", Party.SERVER, 0.0048, 2.4e6, 0),
    ("fetch", Party.RESEARCHER, 0.0048, 0, 2.4e6),
    ("count", Party.RESEARCHER, 0.036, 0, 0),
    ("certify", Party.RESEARCHER, 1.264911, 0, 0),  # the root of 400,000 x 2 ms
]


@pytest.mark.parametrize(
    ("stage", "party", "cpu", "sent", "received"),
    [*((stage, Party.CURATOR, *rest) for stage, *rest in CURATOR), *OTHERS],
)
def test_a_release_by_hand(stage: str, party: Party, cpu: float, sent: float, received: float) -> None:
    work = work_of(scaled(), stage, party)
    assert work.cpu == pytest.approx(cpu)
    # Digests, frames and TLS add less than a hundredth.
    assert sent <= work.sent <= 1.01 * sent
    assert received <= work.received <= 1.01 * received


def test_what_is_written_costs_pages() -> None:
    costs = TABLE_COSTS.measured("here", page=10.0)
    for stage, party in (("load", Party.CURATOR), ("exchange", Party.CURATOR), ("upload", Party.SERVER)):
        plain, work = (work_of(scale_of_tables(STUDY, each, MACHINE), stage, party) for each in (TABLE_COSTS, costs))
        assert work.cpu - plain.cpu == pytest.approx(10e-9 * work.written)
        assert work.written > 0
        assert (work.parallel > plain.parallel) == (stage == "load")


@pytest.mark.parametrize("stage", ["order", "draw"])
def test_sections_of_many_files_cost_more_than_in_proportion(stage: str) -> None:
    costs = TABLE_COSTS.measured("here", cut=100.0)

    def added(rows: int) -> float:
        study = Tables(curators=2, rows=rows, attributes=2, sample=rows, pairs=False)
        plain, work = (scale_of_tables(study, each, MACHINE) for each in (TABLE_COSTS, costs))
        return work_of(work, stage, Party.CURATOR).cpu - work_of(plain, stage, Party.CURATOR).cpu

    assert added(2**19 * 200) == pytest.approx(200 * 200 * 100e-6)  # 200 sections, each of 200 files
    assert added(2**19) == pytest.approx(100e-6)


@pytest.mark.parametrize(("rows", "seconds"), [(10**7, 15.4), (10**8, 161), (3 * 10**8, 431)])
def test_what_ships_foresees_what_large_releases_took(rows: int, seconds: float) -> None:
    # CPU of all parties without the certificate, from the table in docs/how-to/scale.md.
    study = Tables(curators=2, rows=rows, attributes=2, sample=rows, pairs=False)
    awaited = [work for work in scale_of_tables(study, SHIPPED_TABLES, MACHINE).works if work.is_awaited]
    foreseen = sum(work.cpu * (2 if work.party is Party.CURATOR else 1) for work in awaited)
    assert seconds / 1.2 < foreseen < seconds * 1.2


def test_canaries_travel_with_the_rows_and_are_not_drawn() -> None:
    tested, plain = scaled(replace(STUDY, canaries=400_000)), scaled()
    for stage, party, factor in (
        ("draw", Party.CURATOR, 1),
        ("encrypt", Party.CURATOR, 2),
        ("upload", Party.CURATOR, 2),
        ("perturb", Party.SERVER, 2),
        ("fetch", Party.RESEARCHER, 2),
        ("count", Party.RESEARCHER, 2),
    ):
        assert work_of(tested, stage, party).cpu == pytest.approx(factor * work_of(plain, stage, party).cpu)
    assert work_of(tested, "upload", Party.CURATOR).sent == 2 * work_of(plain, "upload", Party.CURATOR).sent
    # Of 800,000 rows in 6 columns once published and once under way; 8 bytes a canary besides.
    assert tested.rooms[Party.SERVER].disk == 2 * 6 * 800_000 + 8 * 400_000
    assert tested.rooms[Party.RESEARCHER].disk == 6 * 800_000 + 8 * 400_000
    # A curator compares those in its two columns on its disk.
    assert tested.rooms[Party.CURATOR].memory == plain.rooms[Party.CURATOR].memory
    # So many take more than the alignment: 34 bytes a row are left of that, and the draw has 24 a row of the sample.
    many = replace(STUDY, sample=MILLION, canaries=10 * MILLION)
    assert scaled(many).rooms[Party.CURATOR].disk == MILLION * (20 + 34 + 24 + 2 * 11 + 2 * 10)


def test_a_curator_of_a_large_table_has_a_process_a_core() -> None:
    memory = {rows: scaled(replace(STUDY, rows=rows)).rooms[Party.CURATOR].memory for rows in (2**22 - 1, 2**22)}
    assert memory == {2**22 - 1: 200e6, 2**22: 200e6 + 4 * 30e6}


def test_every_stage_is_one_of_those_by_hand() -> None:
    assert len(scaled().works) == len(CURATOR) + len(OTHERS)


def test_the_room_by_hand() -> None:
    rooms = scaled().rooms
    # The table's 18 + 2 bytes a row, twice 16 + 2 on the way into order, the tokens of all three.
    assert rooms[Party.CURATOR].disk == pytest.approx(MILLION * (20 + 36 + 48), rel=0.001)
    assert rooms[Party.CURATOR].kept == MILLION * (20 + 34)
    assert (rooms[Party.SERVER].disk, rooms[Party.SERVER].kept) == (4.8e6, 2.4e6)
    assert (rooms[Party.RESEARCHER].disk, rooms[Party.RESEARCHER].kept) == (2.4e6, 0)


def test_what_fits_memory_is_read_from_there() -> None:
    room = scaled().rooms[Party.CURATOR]
    for memory, bytes_read in ((room.memory + room.disk, 0), (room.memory + room.disk - 1, 66e6)):
        scale = scale_of_tables(STUDY, TABLE_COSTS, replace(MACHINE, memory=memory))
        # 2 x 16 MB of the others' tokens, 18 MB sorted, and its 16 MB of tokens again where somebody is common.
        assert work_of(scale, "search", Party.CURATOR).read == bytes_read


def test_pairs_are_those_that_can_be_listed() -> None:
    for curators, attributes in product(range(2, 6), range(1, 4)):
        study = Tables(curators=curators, rows=10, attributes=attributes, sample=10, pairs=True)
        owners = [number // attributes for number in range(study.columns)]
        pairs = list(combinations(owners, 2))
        assert study.tables == len(pairs)
        assert study.draws == sum(0 in pair for pair in pairs)
        assert study.uploads == sum(pair.count(0) for pair in pairs)


def test_rounds_by_hand() -> None:
    scale = collected()
    enrol, reports = work_of(scale, "enrol", Party.SERVER), work_of(scale, "reports", Party.SERVER)
    assert enrol.cpu == pytest.approx(20_000 * 5e-6)
    assert enrol.received == pytest.approx(20_000 * 32, rel=0.01)
    assert reports.cpu == pytest.approx(20.0)
    assert (reports.received, reports.sent) == (16e6, 32e6)
    assert reports.flushing == pytest.approx(20 * 0.01)  # 20,000 reports of 1,024 a transaction
    assert scale.rooms[Party.SERVER].disk == 20_000 * 80
    # 1,000 reports a second, each three round trips of 0.1 s.
    (connections,) = (need for need in scale.needs if need.what.startswith("connections"))
    assert connections.value == pytest.approx(300)


GROWING = [
    *(replace(STUDY, curators=number) for number in (2, 4, 50)),
    *(replace(STUDY, rows=number) for number in (400_000, 2 * MILLION, 10**9)),
    *(replace(STUDY, attributes=number) for number in (1, 3, 20)),
    *(replace(STUDY, sample=number) for number in (1, 500_000, MILLION)),
]


@pytest.mark.parametrize("study", GROWING, ids=str)
def test_a_larger_study_takes_no_less_of_anything(study: Tables) -> None:
    sizes = [(getattr(study, field.name), getattr(STUDY, field.name)) for field in fields(Tables)]
    small, large = (study, STUDY) if any(one < other for one, other in sizes) else (STUDY, study)
    less, more = scaled(small), scaled(large)
    assert less.seconds <= more.seconds
    for one, other in zip(less.works, more.works, strict=True):
        assert all(getattr(one, field.name) <= getattr(other, field.name) for field in fields(Work)[2:])
    for party in Party:
        assert less.rooms[party].disk <= more.rooms[party].disk


@pytest.mark.parametrize("resource", ["cores", "link", "disk_speed"])
def test_a_better_machine_is_no_slower(resource: str) -> None:
    better = replace(MACHINE, **{resource: 2 * getattr(MACHINE, resource)})
    assert scale_of_tables(STUDY, TABLE_COSTS, better).seconds <= scaled().seconds
    assert scale_of_rounds(ROUNDS, REPORT_COSTS, TABLE_COSTS, better).seconds <= collected().seconds


@pytest.mark.parametrize("study", [replace(STUDY, rows=1, sample=1, attributes=1), replace(STUDY, rows=10**12)])
@pytest.mark.parametrize("pairs", [False, True])
def test_extremes_are_finite(study: Tables, *, pairs: bool) -> None:
    scale = scaled(replace(study, pairs=pairs))
    assert 0 < scale.seconds < 1e12
    assert all(one["cpu_seconds"] > 0 and one["sent_bytes"] + one["received_bytes"] > 0 for one in scale.parties)
    assert bool(scale.broken) == (study.rows > 1)


@pytest.mark.parametrize(
    ("study", "what", "remedy"),
    [
        (replace(STUDY, rows=MAX_RESPONDENTS), "respondents of a table", "Divide"),
        (replace(STUDY, rows=MAX_SAMPLE, sample=MAX_SAMPLE), "rows of a sample with a delta", "pure epsilon"),
        (replace(STUDY, curators=32), "columns of a release", "fewer attributes"),
        (replace(STUDY, curators=11), "bits of a cell's number, if attributes have two categories", "--pairs"),
    ],
)
def test_what_the_product_limits_breaks_one_beyond(study: Tables, what: str, remedy: str) -> None:
    def broken(one: Tables) -> dict[str, str]:
        return {need.what: need.remedy for need in scaled(one).broken}

    assert what not in broken(study)
    beyond = (
        replace(study, curators=study.curators + 1)
        if study.curators > STUDY.curators
        else replace(study, rows=study.rows + 1, sample=min(study.sample + 1, study.rows))
    )
    if what.startswith("rows of a sample"):
        beyond = replace(study, rows=MAX_SAMPLE + 1, sample=MAX_SAMPLE + 1)
    assert remedy in broken(beyond)[what]


def test_too_many_pairs_break() -> None:
    one = replace(STUDY, curators=2, attributes=32, pairs=True)
    assert one.tables == 2016 > MAX_TABLES
    assert "tables of a release" in [need.what for need in scaled(one).broken]


def test_too_many_nodes_break() -> None:
    assert not collected(replace(ROUNDS, nodes=MAX_POPULATION, reports=1)).limits[0].share > 1
    assert collected(replace(ROUNDS, nodes=MAX_POPULATION + 1)).limits[0].share > 1


def test_a_far_network_runs_out_of_connections_and_over_grpc_sooner() -> None:
    far = replace(MACHINE, latency=0.3)
    shares = []
    for way in (Way.HTTPS, Way.GRPC):
        scale = scale_of_rounds(replace(ROUNDS, way=way), REPORT_COSTS, TABLE_COSTS, far)
        shares += [need.share for need in scale.needs if need.what.startswith("connections")]
    assert shares == [pytest.approx(900 / 2048), pytest.approx(900 / 768)]


def test_a_sample_larger_than_a_table_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be drawn") as refused:
        replace(STUDY, sample=MILLION + 1)
    assert refused.value.where == "--sample"


def test_every_cost_that_ships_is_something_and_says_where_it_comes_from() -> None:
    for costs in (SHIPPED_TABLES, *(SHIPPED_REPORTS[way] for way in Way)):
        listed = costs.as_dict()
        assert Costs(**json.loads(json.dumps(listed))) == costs, "what make bench-costs prints can be shipped"
        assert listed["source"]
        assert len(listed["costs"]) == (23 if costs is SHIPPED_TABLES else 6)
        assert all(one["value"] > 0 and one["unit"] and one["about"] for one in listed["costs"].values())
