"""Many small releases at once, through the product's own curators, server and desk, without sockets.

Rows are sampled and ordered release by release. From then on they are treated apart from one another, so one release of
many rows is many releases of a few rows each: one encryption, one perturbation and one decryption serve all of them.
"""

import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import numpy as np

from tests.coalitions.attacks import CELLS, Array, Held, table
from tests.server.publishing import complete, perturb, published_by
from tests.worlds.columns import encrypt
from veiltab.common.core import pads
from veiltab.common.core.canaries import is_data
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import CipherStream
from veiltab.common.privacy.cards.card import EpsilonCard, card_of
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import curators_noise
from veiltab.curator.records.store import CuratorStore
from veiltab.server.records.store import ServerStore

COLUMNS = (Column(attribute="sex", owner="alice", size=2), Column(attribute="smoker", owner="bob", size=2))
CANARIES = 500


@dataclass(frozen=True, kw_only=True)
class Design:
    """Small releases with half of the noise on either side.

    Args:
        population: respondents n.
        sample: rows m.
        epsilon: to ask for.
        delta: to ask for; None for a pure epsilon.
    """

    population: int
    sample: int
    epsilon: Decimal
    delta: Decimal | None

    def __str__(self) -> str:
        delta = "" if self.delta is None else f", delta {self.delta}"
        return f"{self.sample} of {self.population}, epsilon {self.epsilon}{delta}"

    @cached_property
    def plan(self) -> Plan:
        return plan_release(
            population=self.population,
            cells=CELLS,
            epsilon=self.epsilon,
            delta=self.delta,
            sample=self.sample,
            noise_split=Decimal("0.5"),
        )

    @property
    def release(self) -> TwoSidedRelease:
        """The release as the coalitions see it."""
        return self.plan.release

    @cached_property
    def card(self) -> EpsilonCard:
        """What the product promises."""
        return card_of(self.release, delta=self.delta)

    def spec(self, releases: int) -> TableSpec:
        """Return the spec of one release that stands for many."""
        rows = releases * self.sample
        return TableSpec(
            release_id=secrets.token_hex(16),
            study_digest="0" * 64,
            researcher="rosa",
            columns=COLUMNS,
            population=rows,
            sample=rows,
            server_replacement=self.plan.mechanism.server_replacement,
            curator_replacement=self.plan.mechanism.curator_replacement,
            canaries=CANARIES,
            epsilon=self.epsilon,
            delta=self.delta,
            scheme="wor",
            sampling=Sampling.SEED,
            pad=Pad.CHACHA20,
            alignment="0" * 32,
            deadline=1,
        )


def played(folder: Path, design: Design, planted: int, persons: Array) -> Held:
    """Make releases of the table with a planted cell; return what the parties hold of them.

    Args:
        folder: for the parties' files.
        design: of the releases.
        planted: cell of the planted person.
        persons: of the samples in order, shape (releases, m).
    """
    cells = table(planted, design.population)[persons]
    spec, seed = design.spec(len(persons)), secrets.token_bytes(32)
    noise = curators_noise(spec, seed)
    data = is_data(noise.places.all(), spec.uploaded_rows)
    coins = np.concatenate([coins for _, coins in noise.coins(spec.sample)])
    symbols = dict(zip(("sex", "smoker"), np.divmod(cells.ravel(), 2), strict=True))
    raw, published, keys = _released(folder / spec.release_id, spec, symbols, seed)

    def decrypted(ciphertext: Mapping[str, Symbols]) -> tuple[Array, Array]:
        sex, smoker = (
            symbols_of(ciphertext[name], keys[name])[data].reshape(persons.shape) for name in ("sex", "smoker")
        )
        return sex, smoker

    sent, seen = decrypted(raw), decrypted(published)
    return Held(
        persons=persons,
        coins=coins.reshape(persons.shape),
        own=sent[0],
        sent=2 * sent[0] + sent[1],
        published=2 * seen[0] + seen[1],
        ciphertext=raw["smoker"][data].reshape(persons.shape).astype(np.int64),
    )


def drawn_persons(design: Design, releases: int) -> Array:
    """Return the persons of samples, each drawn from a seed of its own, shape (releases, m)."""
    tokens = np.frombuffer(secrets.token_bytes(16 * design.population), np.uint8).reshape(-1, 16)
    scheme = design.release.scheme
    return np.stack([scheme.draw(tokens, secrets.token_bytes(32)) for _ in range(releases)])


def symbols_of(ciphertext: Symbols, key: bytes) -> Array:
    """Decrypt a column of two categories, in order."""
    plain = np.empty_like(ciphertext)
    pads.decrypt(ciphertext, 2, CipherStream(key), plain)
    return plain.astype(np.int64)


def _released(
    folder: Path, spec: TableSpec, cells: Mapping[str, Array], seed: bytes
) -> tuple[dict[str, Symbols], dict[str, Symbols], dict[str, bytes]]:
    """Encrypt and perturb some rows; return the ciphertext, what was published, and the keys, by attribute."""
    raw: dict[str, Symbols] = {}
    published: dict[str, Symbols] = {}
    keys: dict[str, bytes] = {}
    with closing(CuratorStore(folder / "curator.sqlite")) as curator, closing(ServerStore(folder / "server")) as server:
        encryption = ColumnEncryption(curator, folder, spec.release_id)
        for column in spec.columns:
            name = column.attribute
            own = curators_noise(spec, seed)  # each curator derives it
            symbols: Symbols = np.empty(spec.sample, symbol_dtype(column.size))
            symbols[:] = cells[name]
            encrypt(encryption, name, symbols, column.size, spec.pad, own)
            raw[name] = np.fromfile(encryption.ciphertext(name), np.uint8)
            pad = curator.keys.pad(spec.release_id, name)
            assert pad is not None
            keys[name] = pad[0]
        complete(server, spec, *raw.values())
        perturb(server, spec)
        for name, data in published_by(server, spec.release_id).items():
            published[name] = np.frombuffer(data, np.uint8)
    return raw, published, keys
