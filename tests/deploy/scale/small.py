"""A small study, unit costs and a machine of round numbers."""

from veiltab.deploy.plan.scale.costs import REPORT_COSTS as SHIPPED_REPORTS
from veiltab.deploy.plan.scale.costs import TABLE_COSTS as SHIPPED_TABLES
from veiltab.deploy.plan.scale.costs import Way
from veiltab.deploy.plan.scale.model import Machine, Party, Scale, Work
from veiltab.deploy.plan.scale.works import Rounds, Tables

STUDY = Tables(curators=3, rows=1_000_000, attributes=2, sample=400_000, pairs=False)
ROUNDS = Rounds(nodes=10_000, reports=2, way=Way.HTTPS)
MACHINE = Machine(cores=4, memory=1e9, disk=1e9, link=80e6, disk_speed=100e6, latency=0.1)
TABLE_COSTS = SHIPPED_TABLES.measured(
    "round numbers",
    start_curator=0.5,
    start_server=0.25,
    start_researcher=0.125,
    load=300.0,
    load_symbol=50.0,
    order=200.0,
    order_symbol=10.0,
    stream=2.0,
    search=30.0,
    keep=40.0,
    keep_symbol=5.0,
    draw=10.0,
    pick=60.0,
    encrypt=20.0,
    perturb=10.0,
    count=15.0,
    page=0.0,
    cut=0.0,
    certify=2.0,
    curator=200e6,
    server=100e6,
    researcher=50e6,
    worker=30e6,
)
REPORT_COSTS = SHIPPED_REPORTS[Way.HTTPS].measured(
    "round numbers", report=1000.0, received=800.0, sent=1600.0, enrol=5.0, token_bytes=80.0, flush=0.01
)


def work_of(scale: Scale, stage: str, party: Party) -> Work:
    (work,) = (one for one in scale.works if (one.stage, one.party) == (stage, party))
    return work
