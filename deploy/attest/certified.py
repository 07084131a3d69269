"""A release certificate that holds, and what it says in sentences that every form of it repeats.

No sentence has counts of canaries: in a column of two symbols they are the parity of the noise (docs/protection.md),
and the forms are published. What neither certificate nor study file says is `NOT_STATED`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from veiltab.common.core.mechanism import UNIT as UNIT_OF_R
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import signers, statement_of
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import Study, load_study
from veiltab.common.study.missing import links_sentence
from veiltab.curator.evidence.export import checked_certificate
from veiltab.deploy.operate.verify_cli import file_content, file_text

NOT_STATED = "not stated by the certificate"

UNIT = "one respondent's whole row, in the columns of all curators"
NEIGHBOURS = (
    "Two tables are neighbours if they have the same respondents and differ in the whole row of one of them"
    " (substitution, bounded differential privacy). The number of common respondents is the same in both, and is"
    " published."
)

_DIGITS = 6


@dataclass(frozen=True)
class Certified:
    """A release certificate of which every line holds, and the study that it is of."""

    certificate: ReleaseCertificate
    study: Study

    @property
    def release(self) -> ReleaseSpec:
        """The description of the release."""
        return self.certificate.spec

    @cached_property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables that have a result."""
        return self.certificate.specs()

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """Who signed: every curator, and the server."""
        return signers(self.study)

    @cached_property
    def _statements(self) -> dict[str, list[Statement]]:
        found: dict[str, list[Statement]] = {party.uri: [] for party in self.parties}
        for one in map(statement_of, self.certificate.signed_texts()):
            found[one.party].append(one)
        return found

    def signed_at(self, party: Party) -> datetime:
        """Return when a party signed last, by its own clock."""
        return datetime.fromtimestamp(max(one.signed_at for one in self._statements[party.uri]), UTC)

    @property
    def last_signed(self) -> datetime:
        """When the last party signed; the same certificate makes the same file, whenever it is given on."""
        return max(map(self.signed_at, self.parties))

    def tested(self, party: Party) -> bool:
        """Return whether a party states that the server passed its tests."""
        return any(one.receipts for one in self._statements[party.uri])

    def ledgers(self) -> dict[str, LedgerHead]:
        """Return the longest ledger that each curator states, by name."""
        heads = {
            party.name: [one.ledger for one in self._statements[party.uri] if one.ledger is not None]
            for party in self.parties
            if party.role is Role.CURATOR
        }
        return {name: max(stated, key=lambda one: one.length) for name, stated in heads.items() if stated}

    def published(self) -> dict[str, str]:
        """Return the SHA-256 of every column that the server published, by number of the table and attribute."""
        server = self.parties[-1].uri
        numbers = {one.digest().hex(): number for number, one in enumerate(self.tables)}
        return {
            f"table {numbers[one.spec_digest]}, column {column.attribute}": column.digest
            for one in self._statements[server]
            for column in one.published
        }

    @property
    def neighbours(self) -> str:
        """Which tables are neighbours, and what follows where people are linked without a common number."""
        links = links_sentence(self.study)
        return NEIGHBOURS if links is None else f"{NEIGHBOURS} {links}"

    @property
    def lacking_rows(self) -> str:
        """What neither file says of persons who have several rows."""
        by_ids = ", under several ids" if self.study.identity is None else ""
        return f"Whether a person has more than one row in a curator's table{by_ids}"

    @property
    def lacking_people(self) -> str:
        """What neither file says of persons who are not there, or are there as others."""
        if self.study.identity is None:
            return "Who is missing from a curator's table or has another id there"
        return "Who is missing from a curator's table, how many links are wrong, and who was not linked"

    @property
    def variant(self) -> str:
        """The variant of differential privacy of what was asked for and is kept."""
        return "pure" if self.release.delta is None else "approximate"

    def guarantee(self) -> str:
        """Return what was asked for, is kept, and holds against whom."""
        asked = f"epsilon {self.release.epsilon:f}"
        asked += f" at delta {delta_text(self.release.delta)}" if self.release.delta else " (pure)"
        each = f" for all {len(self.tables)} tables together" if self.release.several else ""
        return f"{asked}{each}, against those who see the counts, if the server is honest"

    def coalitions(self) -> tuple[tuple[str, str], ...]:
        """Return who puts what together, and what these face, with every digit; upper bounds."""
        return release_card(self.release).rows_in_full()

    @property
    def holds_whatever_the_server_does(self) -> bool:
        """Whether the curators' noise protects those whose counts are known, even if the server adds none."""
        return release_card(self.release).bound(Coalition.DESK_AND_SERVER).epsilon is not None

    def trust(self) -> str:
        """Return whom one must trust."""
        always = (
            "Nothing protects against the desk, the server and a curator together. The certificate holds unless a"
            " curator helped the server. A curator that lies about its own table is not noticed."
        )
        if self.holds_whatever_the_server_does:
            return (
                "No single party. The guarantee needs an honest server; whatever the server does, those who see the"
                f" counts face at most what is said of the desk with the server. {always}"
            )
        return (
            "The server: the guarantee needs an honest one, as the curators add no noise of their own. The tests of the"
            f" server's noise find one that leaves noise out, not one that is built to deceive them. {always}"
        )

    def attributes(self) -> str:
        """Return each released attribute, how many categories it has, and who holds it."""
        return "; ".join(f"{one.attribute} ({one.size} categories, of {one.owner})" for one in self.release.columns)

    def product(self) -> str:
        """Return what was released, in a sentence."""
        names = ", ".join(one.attribute for one in self.release.columns)
        if not self.release.several:
            return f"One noisy joint table of {names}: {self.tables[0].cells} cells."
        return f"{len(self.tables)} noisy joint tables, each of some of {names}."

    def sample(self) -> str:
        """Return who may be in the tables."""
        one = self.release
        known = "the server knows" if one.sampling.is_by_server else "the curators alone know"
        is_linked = self.study.identity is not None
        who = "who are linked in the tables of all curators" if is_linked else "whom all curators have"
        return (
            f"{one.population} respondents {who}. By the scheme {one.scheme} a table has {one.sample}"
            f" sampled rows; {known} which."
        )

    def mechanism(self) -> str:
        """Return what randomises a row, and how often at the least."""
        both = _below(min(1 - one.mechanism.retention for one in self.tables))
        by_curators = _below(Fraction(min(one.curator_replacement for one in self.tables), UNIT_OF_R))
        by_server = _below(Fraction(min(one.server_replacement for one in self.tables), UNIT_OF_R))
        return (
            "k-ary randomised response on the joint cell of each row in the sample: a row becomes a uniform cell with"
            f" probability at least {both} (the curators replace at least {by_curators} before they encrypt, the"
            f" server at least {by_server} of ciphertext). Probabilities are whole multiples of 2^-64; no"
            " floating-point number is drawn."
        )

    def tests(self) -> str:
        """Return what was tested of the server, and by whom."""
        if not all(one.canaries for one in self.tables):
            return "Of some table no rows of known symbols travelled, so that the server's noise was not tested there."
        is_linked = self.study.identity is not None
        who = "who are linked in the tables of all curators" if is_linked else "whom all curators have"
        return (
            f"Curators {who} tested the server's noise by rows of known symbols before any key left, and every test"
            " passed. The tests show a server that leaves noise out, not one that is built to deceive them."
        )

    def composition(self) -> str:
        """Return how losses add up within the release, and what was charged before."""
        within = (
            f"All {len(self.tables)} tables are one charge, and epsilon and delta hold for all of them together."
            if self.release.several
            else "One table, and one charge."
        )
        charged = ", ".join(f"{name} {head.length}" for name, head in self.ledgers().items())
        budget = f"epsilon {self.study.budget_epsilon:f}"
        budget += (
            f" at delta {delta_text(self.study.budget_delta)}" if self.study.budget_delta else " (pure epsilons add up)"
        )
        return (
            f"{within} Every curator charges each release to a ledger, a hash chain, and refuses what exceeds the"
            f" study's budget, {budget}. Charges in the ledgers when they were signed: {charged}. What the other"
            f" charges were is {NOT_STATED}."
        )

    def unprotected(self) -> str:
        """Return what is public, and has no noise."""
        counts = "; how many rows of each curator miss a value" if self.study.left_out == "stated" else ""
        return (
            f"The number of common respondents ({self.release.population}), the sizes of the samples, names and"
            f" categories of the attributes, who holds which of them, and the law of the noise{counts}."
        )


def _below(share: Fraction) -> str:
    """Write a probability with six decimals, rounded down: a row is replaced so often at the least."""
    return f"{Decimal(int(share * 10**_DIGITS)).scaleb(-_DIGITS):f}"


def read_certified(path: Path, study_path: Path, authority: Path, revoked: Path | None) -> Certified:
    """Return a release certificate that holds.

    Args:
        path: the file of `veiltab researcher certificate`.
        study_path: the study file that it must be of.
        authority: certificate of the study's authority, PEM.
        revoked: the authority's revocation list, if nobody whom it revokes may have signed.

    Raises:
        IntegrityError: this is no release certificate, or it was altered.
        InvalidInputError: a line of it does not hold, or a file cannot be read.
    """
    study = load_study(study_path)
    return Certified(checked_certificate(file_text(path), study, file_content(authority), revoked), study)


def check_new(path: Path) -> None:
    """Refuse to write over what is there.

    Raises:
        InvalidInputError: there is such a file or folder.
    """
    if path.exists() or path.is_symlink():
        raise InvalidInputError(
            "there is such a file already", where=str(path), remedy="Choose another name for --out."
        )


def whole(lines: Iterable[str]) -> str:
    """Return lines as a text that ends in a line feed."""
    return "\n".join(lines) + "\n"
