import hashlib
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import FACTS, refuses, reserve, spec_with
from tests.curator.made_records import charge
from veiltab.common.errors import BudgetExceededError, IntegrityError, NotReadyError
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.budget.allowance import Charge, Sums
from veiltab.curator.budget.entries import chained
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.budget.remaining import Kind, Rest, rest_for
from veiltab.curator.records.store import CuratorStore

BUDGET = Decimal(1)


def name(number: int) -> str:
    return f"{number:032x}"


def charged(store: CuratorStore, count: int, epsilon: str = "0.1") -> Ledger:
    ledger = Ledger(store.connection, BUDGET)
    charge(ledger, *(spec_with(release_id=name(number), epsilon=Decimal(epsilon)) for number in range(1, count + 1)))
    return ledger


def test_a_charge_tells_what_was_released(store: CuratorStore) -> None:
    before = int(time.time())
    ledger = charged(store, 1)
    (entry,) = ledger.chain.entries
    spec = spec_with()
    assert (entry.number, entry.release_id, entry.epsilon) == (1, name(1), guaranteed_epsilon(spec))
    assert entry.facts["time"] in range(before, int(time.time()) + 1)
    assert entry.facts == {
        "time": entry.facts["time"],
        "epsilon": "0.1",
        "tables": [
            {
                "mechanism": "gamma-diagonal",
                "relation": "substitution",
                "scheme": "wor",
                "population": 1000,
                "sample": 400,
                "cells": 4,
                "server_replacement": spec.server_replacement,
                "curator_replacement": spec.curator_replacement,
                "sampling": "seed",
                "gamma": f"{spec.mechanism.gamma.numerator}/{spec.mechanism.gamma.denominator}",
                "count": 1,
            }
        ],
        "repeated": [],
        "repeats": 0,
        "delta": None,
        "researcher": "rosa",
        "attributes": ["sex", "salary"],
    }


def test_ten_tenths_fit_a_budget_of_one_exactly(store: CuratorStore) -> None:
    ledger = charged(store, 10)
    assert (ledger.budget.spent, ledger.budget.remaining) == (Decimal(1), Decimal(0))
    with pytest.raises(BudgetExceededError, match=r"of the budget of 1 there is 0.000000 left"):
        reserve(ledger, spec_with(release_id=name(11), epsilon=Decimal("0.000001")))
    assert not ledger.chain.standing(name(11))[0]


def test_what_is_reserved_is_not_there_for_others(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    reserve(ledger, spec_with(release_id=name(1), epsilon=Decimal("0.6")))
    assert (ledger.budget.spent, ledger.budget.remaining, ledger.chain.head[0]) == (Decimal(0), Decimal("0.4"), 0)
    with pytest.raises(BudgetExceededError, match=r"the release needs epsilon 0.500000"):
        reserve(ledger, spec_with(release_id=name(2), epsilon=Decimal("0.5")))
    ledger.cancel(name(1))
    reserve(ledger, spec_with(release_id=name(2), epsilon=Decimal("0.5")))
    assert (ledger.chain.standing(name(1))[0], ledger.chain.standing(name(2))[0]) == (False, True)


def test_steps_repeat_without_harm(store: CuratorStore) -> None:
    ledger, spec = Ledger(store.connection, BUDGET), spec_with(epsilon=Decimal("0.6"))
    for _ in range(3):
        reserve(ledger, spec)
    assert ledger.budget.remaining == Decimal("0.4")
    for _ in range(3):
        ledger.charge(spec.release_id)
    for _ in range(3):
        reserve(ledger, spec)
        ledger.cancel(spec.release_id)
    assert (ledger.budget.spent, ledger.budget.remaining, len(ledger.chain.entries)) == (
        Decimal("0.6"),
        Decimal("0.4"),
        1,
    )
    assert ledger.chain.standing(spec.release_id) == (False, True)


def test_what_is_reserved_for_others_may_still_be_had(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    first, second = (spec_with(release_id=name(number), epsilon=Decimal("0.6")) for number in (1, 2))
    reserve(ledger, first)
    charge = ledger.budget.allowance.charge(second.description, guaranteed_epsilon(second))
    assert ledger.budget.fits_what_is_charged(name(2), charge)
    ledger.charge(name(1))
    assert not ledger.budget.fits_what_is_charged(name(2), charge)
    assert ledger.budget.fits_what_is_charged(name(1), charge)


def test_nothing_is_left_after_a_release_that_takes_more_than_there_is(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    plans = [plan_release(population=1000, cells=4, epsilon=Decimal(epsilon)) for epsilon in ("0.25", "3")]
    charges = [ledger.budget.allowance.charge(plan.description, plan.pure_epsilon) for plan in plans]
    kind = Kind(population=1000, cells=4)
    left = [rest_for(ledger.budget.allowance, Sums().plus(charge), kind) for charge in charges]
    assert left == [Rest(epsilon=1 - plans[0].pure_epsilon), Rest(epsilon=Decimal(0))]


def test_the_last_plan_is_what_is_charged(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    reserve(ledger, spec_with(epsilon=Decimal("0.6")))
    reserve(ledger, spec_with(epsilon=Decimal("0.9"), sample=399))
    assert ledger.budget.remaining == Decimal("0.1")
    with pytest.raises(BudgetExceededError):
        reserve(ledger, spec_with(epsilon=Decimal("1.1")))
    assert ledger.budget.remaining == Decimal("0.1")
    ledger.charge(name(1))
    (entry,) = ledger.chain.entries
    assert (entry.epsilon, entry.facts["tables"][0]["sample"]) == (Decimal("0.9"), 399)


def test_a_charge_needs_a_reservation(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        ledger.charge(name(1))
    reserve(ledger, spec_with(release_id=name(1)))
    ledger.cancel(name(1))
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        ledger.charge(name(1))
    assert ledger.budget.spent == 0


def test_a_charge_outlives_the_process(path: Path) -> None:
    with closing(CuratorStore(path)) as store:
        ledger = charged(store, 2)
        reserve(ledger, spec_with(release_id=name(3)))
        head = ledger.chain.head
    with closing(CuratorStore(path)) as again:
        read = Ledger(again.connection, BUDGET)
        assert (read.chain.head, read.budget.spent, read.budget.remaining) == (head, Decimal("0.2"), Decimal("0.7"))


@settings(deadline=None, max_examples=40)
@given(epsilons=st.lists(st.decimals("1e-40", 100, allow_nan=False), min_size=1, max_size=20))
def test_sums_are_exact_and_never_too_small(epsilons: list[Decimal], tmp_path_factory: pytest.TempPathFactory) -> None:
    store = CuratorStore(tmp_path_factory.mktemp("ledger") / "curator.sqlite")
    total = sum((Fraction(epsilon) for epsilon in epsilons), Fraction(0))
    exact = all(epsilon.as_tuple().exponent >= -90 for epsilon in epsilons)  # type: ignore[operator] # they are finite
    try:
        for number, epsilon in enumerate(epsilons):
            store.connection.execute("INSERT INTO reservation VALUES (?, ?, ?)", [name(number), FACTS, str(epsilon)])
        ledger = Ledger(store.connection, Decimal(10_000))
        for _ in range(2):
            left = Fraction(ledger.budget.remaining)
            assert left == 10_000 - total if exact else 0 <= 10_000 - total - left < Fraction(1, 10**80)
            for number in range(len(epsilons)):
                ledger.charge(name(number))
        over = Fraction(ledger.budget.spent) - total
        assert over == 0 if exact else 0 <= over < Fraction(1, 10**80)
    finally:
        store.close()


def test_a_hair_too_much_is_too_much(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    more_than_half = "0.5000000000000000000000000000000000000001"
    store.connection.execute("INSERT INTO reservation VALUES (?, ?, ?)", [name(9), FACTS, more_than_half])
    assert ledger.budget.remaining == Decimal("0.4999999999999999999999999999999999999999")
    with pytest.raises(BudgetExceededError):
        reserve(ledger, spec_with(epsilon=Decimal("0.5")))


def test_digits_that_do_not_fit_are_rounded_against_us(store: CuratorStore) -> None:
    epsilon = "0.3" + "0" * 110 + "1"
    for number in (1, 2):
        store.connection.execute("INSERT INTO reservation VALUES (?, ?, ?)", [name(number), FACTS, epsilon])
    ledger = Ledger(store.connection, BUDGET)
    assert Fraction(ledger.budget.remaining) <= 1 - 2 * Fraction(epsilon)
    for number in (1, 2):
        ledger.charge(name(number))
    assert Fraction(ledger.budget.spent) >= 2 * Fraction(epsilon)


# The chain


def known(store: CuratorStore, entry: str, digests: list[str], delta: Decimal | None) -> list[str]:
    """Open a ledger as an earlier version left it with each entry; return its heads."""
    heads = []
    for number, digest in enumerate(digests, start=1):
        values = [number, name(number), entry.format(n=number), "0.10", bytes.fromhex(digest)]
        store.connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", values)
        if delta is not None:
            store.connection.execute("INSERT INTO price VALUES (?, '0.05', '0.001')", [name(number)])
        heads.append(Ledger(store.connection, BUDGET, delta).chain.head[1].hex())
    return heads


def test_known_answers_of_the_chain(store: CuratorStore) -> None:
    """Peers remember heads: a ledger of another year must still come to the same ones."""
    assert Ledger(store.connection, BUDGET).chain.head[1].hex() == (
        "c5212639d26fd99deb55fd019cd56cd4cd355a0e20d867125c22e8ea30572402"
    )
    heads = [
        "95cfabff4a9fc7046c8dca7c2b625b17f7a68fd7a067d7d01c3a6afa5783ab93",
        "ac55d0395cec346728f7c7953d2ce05f6af66cefa596306450611b9ee9702872",
    ]
    assert known(store, '{{"sample": {n}}}', heads, None) == heads


def test_known_answers_of_the_chain_of_prices(store: CuratorStore) -> None:
    """Under a budget with delta a link covers the price of its entry, and the sums up to it."""
    heads = [
        "ca6e19b5158c81346ccad1749c4462067cad744b033f47d2330f0458dfedd2d7",
        "228f999e2800181f7c63e953b867ad3d04069eb340d861907167cedc555961af",
    ]
    assert known(store, "{{}}", heads, Decimal("1e-6")) == heads


def test_known_answers_of_a_charge_that_covers_the_audit_log(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, BUDGET)
    store.connection.execute("INSERT INTO reservation VALUES (?, '{\"sample\": 1}', '0.10')", [name(1)])
    ledger.charge(name(1))
    empty = hashlib.sha256(b"veiltab audit log").hexdigest()
    (row,) = store.connection.execute("SELECT entry FROM ledger").fetchall()
    assert row["entry"] == f'{{"sample": 1, "audit": {{"length": 0, "digest": "{empty}"}}}}'
    assert ledger.chain.head[1].hex() == "14bf39326679c88b5ea2a45ae622863d75e5435b0dd69e3465e928ab37667f7a"


TAMPERINGS = {
    "epsilon": "UPDATE ledger SET epsilon = '0.09' WHERE number = {n}",
    "epsilon spelled otherwise": "UPDATE ledger SET epsilon = '0.10' WHERE number = {n}",
    "facts": "UPDATE ledger SET entry = replace(entry, 'rosa', 'rita') WHERE number = {n}",
    "release": "UPDATE ledger SET release_id = '" + "e" * 32 + "' WHERE number = {n}",
    "digest": "UPDATE ledger SET digest = zeroblob(32) WHERE number = {n}",
    "number": "UPDATE ledger SET number = number + 100 WHERE number = {n}",
}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_an_edited_ledger_is_found_when_it_is_opened(store: CuratorStore, tampering: str, number: int) -> None:
    charged(store, 3)
    assert store.connection.execute(TAMPERINGS[tampering].format(n=number)).rowcount == 1
    with refuses(IntegrityError, where="ledger"):
        Ledger(store.connection, BUDGET)


@pytest.mark.parametrize("number", [1, 2])
def test_an_entry_that_is_taken_out_is_missed(store: CuratorStore, number: int) -> None:
    charged(store, 3)
    store.connection.execute("DELETE FROM ledger WHERE number = ?", [number])
    with pytest.raises(IntegrityError, match=f"altered at entry {number}"):
        Ledger(store.connection, BUDGET)
    store.connection.execute("UPDATE ledger SET number = number - 1 WHERE number > ?", [number])
    with pytest.raises(IntegrityError, match=f"altered at entry {number}"):
        Ledger(store.connection, BUDGET)


def test_entries_that_change_places_are_found(store: CuratorStore) -> None:
    charged(store, 3)
    for old, new in ((1, 9), (2, 1), (9, 2)):
        store.connection.execute("UPDATE ledger SET number = ? WHERE number = ?", [new, old])
    with pytest.raises(IntegrityError, match="altered at entry 1"):
        Ledger(store.connection, BUDGET)


def test_a_peer_notices_entries_cut_off_the_end(store: CuratorStore) -> None:
    ledger = charged(store, 3)
    witness = ledger.chain.head
    store.connection.execute("DELETE FROM ledger WHERE number = 3")
    shorter = Ledger(store.connection, BUDGET)  # a chain cannot miss its own end
    with pytest.raises(IntegrityError, match="lacks entries that curator bob has seen"):
        shorter.chain.verify_against(witness, "curator bob")


def test_a_peer_notices_a_restored_backup_even_after_it_has_grown(path: Path, tmp_path: Path) -> None:
    with closing(CuratorStore(path)) as store:
        charged(store, 2)
    shutil.copy(path, tmp_path / "backup")
    with closing(CuratorStore(path)) as store:
        ledger = Ledger(store.connection, BUDGET)
        charge(ledger, spec_with(release_id=name(3)))
        witness = ledger.chain.head
    shutil.copy(tmp_path / "backup", path)
    with closing(CuratorStore(path)) as store:
        restored = Ledger(store.connection, BUDGET)
        for number in (4, 5):
            with pytest.raises(IntegrityError, match="lacks entries that curator bob has seen"):
                restored.chain.verify_against(witness, "curator bob")
            charge(restored, spec_with(release_id=name(number)))


def test_a_peer_notices_a_ledger_that_was_written_anew(store: CuratorStore) -> None:
    """Who edits the first entry can compute all digests again, but not so that the last comes out the same."""
    witness = charged(store, 3).chain.head
    store.connection.execute("UPDATE ledger SET epsilon = '0.01' WHERE number = 1")
    head = hashlib.sha256(b"veiltab ledger").digest()
    for row in store.connection.execute("SELECT * FROM ledger ORDER BY number").fetchall():
        head = chained(head, row["number"], row["release_id"], row["entry"], row["epsilon"])
        store.connection.execute("UPDATE ledger SET digest = ? WHERE number = ?", [head, row["number"]])
    rewritten = Ledger(store.connection, BUDGET)
    assert rewritten.budget.spent < Decimal("0.3")
    with pytest.raises(IntegrityError, match="lacks entries that curator bob has seen"):
        rewritten.chain.verify_against(witness, "curator bob")


def test_a_peer_that_has_seen_less_is_content(store: CuratorStore) -> None:
    ledger = charged(store, 1)
    seen = ledger.chain.head
    charge(ledger, spec_with(release_id=name(2)))
    for witness in ((0, b""), seen, ledger.chain.head):
        ledger.chain.verify_against(witness, "curator bob")
    with pytest.raises(IntegrityError):
        ledger.chain.verify_against((1, ledger.chain.head[1]), "curator bob")


def test_a_witness_never_forgets_the_longest_ledger(store: CuratorStore) -> None:
    assert store.alignments.witness("bob") == (0, b"")
    for length, head, kept in ((2, b"b", b"b"), (1, b"a", b"b"), (2, b"x", b"b"), (3, b"c", b"c")):
        store.alignments.set_witness("bob", length, head)
        assert store.alignments.witness("bob")[1] == kept
    assert store.alignments.witness("carol") == (0, b"")


@pytest.mark.parametrize("delta", [None, Decimal("1e-6")])
def test_releases_without_own_attributes_take_a_part_of_the_budget(store: CuratorStore, delta: Decimal | None) -> None:
    ledger = Ledger(store.connection, Decimal(1), delta)
    own, half = ("age",), Decimal("0.5")

    def charge_of(number: int) -> Charge:
        return ledger.budget.allowance.charge(spec_of(number).description, guaranteed_epsilon(spec_of(number)))

    def spec_of(number: int) -> TableSpec:
        return spec_with(release_id=name(number), epsilon=Decimal("0.25"))

    for number in (1, 2):
        ledger.check_others_share(name(number), charge_of(number), own, half)
        ledger.reserve(release_of(spec_of(number)), charge_of(number))
        ledger.check_others_share(name(number), charge_of(number), own, half)  # again changes nothing
    share = ledger.budget.allowance.spent_share(Sums().plus(charge_of(1)).plus(charge_of(2)))
    with pytest.raises(NotReadyError, match="reserved for others"):
        ledger.check_others_share(name(3), charge_of(3), own, share)
    for number in (1, 2):
        ledger.charge(name(number))
    with pytest.raises(BudgetExceededError, match=r"without this curator's attributes may take .* of its budget"):
        ledger.check_others_share(name(3), charge_of(3), own, share)
    ledger.check_others_share(name(3), charge_of(3), ("sex",), share)  # those were about an attribute of its own
    with pytest.raises(BudgetExceededError, match=r"may take 0\.00%"):
        ledger.check_others_share(name(3), charge_of(3), ("sex",), Decimal(0))


def test_releases_of_one_month_take_a_part_of_the_budget(store: CuratorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, part = Ledger(store.connection, Decimal(1), None), Decimal("0.5")
    charge = Charge(epsilon=Decimal("0.25"))
    last_of_may = 1_780_271_999.0  # 2026-05-31 23:59:59 UTC
    monkeypatch.setattr(time, "time", lambda: last_of_may)
    for number in (1, 2):
        ledger.check_month_share(name(number), charge, part)
        ledger.reserve(release_of(spec_with(release_id=name(number), epsilon=Decimal("0.25"))), charge)
    with pytest.raises(NotReadyError, match="reserved for others"):
        ledger.check_month_share(name(3), charge, part)
    for number in (1, 2):
        ledger.charge(name(number))
        ledger.check_month_share(name(number), charge, part)  # what is charged stays so
    with pytest.raises(BudgetExceededError, match=r"of 2026-05 \(UTC\) may take 50\.00% .* ask again next month"):
        ledger.check_month_share(name(3), charge, part)
    monkeypatch.setattr(time, "time", lambda: last_of_may + 1)
    ledger.check_month_share(name(3), charge, part)
    with pytest.raises(BudgetExceededError, match="of 2026-06"):
        ledger.check_month_share(name(3), Charge(epsilon=Decimal("0.51")), part)


# Races


def race(path: Path, threads: int, work: Callable[[Ledger, int], None]) -> Counter[str]:
    """Run the work in threads at once, each with a connection of its own; count how it ended."""
    outcomes: Counter[str] = Counter()
    start = threading.Barrier(threads)

    def run(number: int) -> None:
        with closing(CuratorStore(path)) as store:
            ledger = Ledger(store.connection, BUDGET)
            start.wait(60)
            try:
                work(ledger, number)
            except (BudgetExceededError, sqlite3.Error) as error:
                outcomes[type(error).__name__] += 1
            else:
                outcomes["done"] += 1

    running = [threading.Thread(target=run, args=[number]) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    return outcomes


@pytest.mark.parametrize(("epsilon", "winners"), [("0.1", 10), ("1", 1)])
def test_a_hundred_threads_race_for_the_last_of_the_budget(path: Path, epsilon: str, winners: int) -> None:
    CuratorStore(path).close()
    specs = [spec_with(release_id=name(number), epsilon=Decimal(epsilon)) for number in range(100)]

    def take(ledger: Ledger, number: int) -> None:
        charge(ledger, specs[number])

    assert race(path, 100, take) == {"done": winners, "BudgetExceededError": 100 - winners}
    with closing(CuratorStore(path)) as store:
        ledger = Ledger(store.connection, BUDGET)
        assert (len(ledger.chain.entries), ledger.budget.spent) == (winners, winners * Decimal(epsilon))


def test_threads_that_charge_the_same_release_charge_it_once(path: Path) -> None:
    CuratorStore(path).close()
    spec = spec_with(epsilon=Decimal("0.6"))

    def take(ledger: Ledger, _: int) -> None:
        charge(ledger, spec)

    assert race(path, 30, take) == {"done": 30}
    with closing(CuratorStore(path)) as store:
        assert Ledger(store.connection, BUDGET).budget.spent == Decimal("0.6")
