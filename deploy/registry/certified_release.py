"""A release certificate that holds, and what it says in sentences for people.

No sentence has counts of canaries: in a column of two symbols they are the parity of the noise (docs/protection.md),
and an entry is published. What neither certificate nor study file says is `NOT_STATED`.
"""

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from veiltab.common.core.mechanism import UNIT
from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.release.guarantees import release_card, release_test
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.certificate_files import authority_pem, checked_certificate
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import signers, statement_of
from veiltab.common.rpc.certificates.statement import Statement
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.schemes.registry import scheme_class
from veiltab.common.study.file import Study, load_study
from veiltab.common.study.missing import joined, presence_sentence, respondents

NOT_STATED = "not stated by the certificate"

_DIGITS = 6


@dataclass(frozen=True)
class CertifiedRelease:
    """A release certificate of which no line fails, and the study that it is of."""

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
    def _statements(self) -> tuple[Statement, ...]:
        return tuple(map(statement_of, self.certificate.signed_texts()))

    @property
    def last_signed(self) -> datetime:
        """When the last party signed, by its own clock."""
        return datetime.fromtimestamp(max(one.signed_at for one in self._statements), UTC)

    @property
    def variant(self) -> str:
        """The variant of differential privacy of what was asked for and is kept."""
        return "Pure DP" if self.release.delta is None else "Approximate DP"

    def neighbours(self) -> str:
        """Return which tables are neighbours, and who learns of whose presence."""
        return (
            f"Two tables are neighbours if they have the same rows of {self.study.hub} and differ in what one row says"
            " (substitution, bounded differential privacy). Their number is the same in both, and is published."
            f" {presence_sentence(self.study)}"
        )

    def guarantee(self) -> str:
        """Return what was asked for, is kept, and holds against whom."""
        request = f"epsilon {self.release.epsilon:f}"
        request += f" at delta {delta_text(self.release.delta)}" if self.release.delta else " (pure)"
        each = f" for all {len(self.tables)} tables together" if self.release.several else ""
        return f"The release keeps {request}{each} against those who see the counts, if the server is honest."

    def coalitions(self) -> tuple[Bound, ...]:
        """Return what each coalition faces; upper bounds."""
        return release_card(self.release).bounds

    def trust(self) -> str:
        """Return whom one must trust."""
        if release_card(self.release).bound(Coalition.DESK_AND_SERVER).epsilon is None:
            without = "The curators add no noise, so nothing else protects the counts if the server adds none."
        else:
            without = (
                "If the server adds none, the noise of the curators is left: those who see the counts then face at most"
                " what the desk with the server faces."
            )
        is_tested = self._untested < len(self.tables)
        helped = " A curator that helps the server can make its tests pass." if is_tested else ""
        lies = "Nobody notices a curator that lies about its own table."
        return f"One must trust the server to add its noise. {without}{helped} {lies}"

    def attributes(self) -> str:
        """Return each released attribute, how many categories it has, and who holds it."""
        return "; ".join(
            f"{one.attribute} ({one.size} categories, held by {', '.join(one.holders)})" for one in self.release.columns
        )

    def product(self) -> str:
        """Return what was released, in a sentence."""
        names = [one.attribute for one in self.release.columns]
        if not self.release.several:
            return f"One noisy joint table of {joined(names)}, of {self.tables[0].cells:,} cells."
        return f"{len(self.tables)} noisy joint tables, each of some of the attributes {joined(names)}."

    def sample(self) -> str:
        """Return who may be in the tables."""
        one = self.release
        tables = "Each table has" if one.several else "The table has"
        who = "the server knows" if one.sampling.is_by_server else "only the curators know"
        return (
            f"The data are of {one.population:,} {respondents(self.study)}. {tables} {one.sample:,} sampled rows"
            f" (sampling scheme: {scheme_class(one.scheme).title}), and {who} which rows these are."
        )

    def mechanism(self) -> str:
        """Return what randomises a row, and how often at the least."""
        rate = _below(min(1 - one.mechanism.retention for one in self.tables))
        curators = _below(Fraction(min(one.curator_replacement for one in self.tables), UNIT))
        server = _below(Fraction(min(one.server_replacement for one in self.tables), UNIT))
        sides = (
            f"The curators replace it with probability at least {curators} before they encrypt the row, and the server"
            f" with probability at least {server} in the ciphertext."
            if any(one.curator_replacement for one in self.tables)
            else "The server alone replaces cells, in the ciphertext."
        )
        return (
            "K-ary randomised response (PRAM with a gamma-diagonal matrix) on the joint cell of each sampled row: with"
            f" probability at least {rate}, a uniformly random cell replaces that of the row. {sides} Probabilities are"
            " whole multiples of 2^-64, and no floating-point number is drawn."
        )

    @property
    def _untested(self) -> int:
        """The number of tables in which no canaries travelled."""
        return sum(not one.canaries for one in self.tables)

    def tests(self) -> str:
        """Return what was tested of the server, and by whom."""
        if self._untested == len(self.tables):
            return "No canary rows travelled with the data, so nobody tested the server's noise."
        signed = {one.party for one in self._statements if one.receipts}
        names = [party.name for party in self.parties if party.uri in signed]
        test = release_test(self.release)
        weakest = "Where the test is weakest, " if self.release.several else "So "
        return (
            f"{'Curators' if len(names) > 1 else 'Curator'} {joined(names)} tested the server's noise with canary rows,"
            " whose symbols they knew, before any curator gave a key to the researcher. Every test passed."
            f" {weakest}{test.sentence}."
            " Such tests find a server that leaves out noise, but not one that is built to deceive them."
        )

    def composition(self) -> str:
        """Return how losses add up within the release, and what was charged before."""
        within = (
            f"The {len(self.tables)} tables are one charge: epsilon and delta hold for all of them together."
            if self.release.several
            else "The release is one charge."
        )
        budget = f"epsilon {self.study.budget_epsilon:f}"
        budget += (
            f" at delta {delta_text(self.study.budget_delta)}" if self.study.budget_delta else " (pure epsilons add up)"
        )
        charges = [
            f"{max(lengths)} of {party.name}"
            for party in self.parties
            if (lengths := [one.ledger.length for one in self._statements if one.party == party.uri and one.ledger])
        ]
        return (
            f"{within} Every curator charges each release to its ledger, a hash chain, and refuses a release that would"
            f" exceed the study's budget, {budget}. Charges in the ledgers when the curators signed: {joined(charges)}."
            f" How large the other charges were is {NOT_STATED}."
        )

    def unprotected(self) -> str:
        """Return what is public, and has no noise."""
        public = [
            f"the number of people ({self.release.population:,})",
            "the sizes of the samples",
            "the names and categories of the attributes",
            "who holds which attribute",
            "the probabilities of the noise",
        ]
        if self.study.left_out == "stated":
            public.append("how many rows of each curator miss a value")
        return f"These are published without noise: {joined(public)}."


def _below(share: Fraction) -> str:
    """Write a probability with six decimals, rounded down: a row is replaced so often at the least."""
    return f"{Decimal(int(share * 10**_DIGITS)).scaleb(-_DIGITS):f}"


def read_certified(path: Path, study_path: Path, authority: Path, revoked: Path | None) -> CertifiedRelease:
    """Return a release certificate that holds.

    Args:
        path: the file of `veiltab researcher report`.
        study_path: the study file that it must be of.
        authority: certificate of the study's authority, PEM.
        revoked: the authority's revocation list, if nobody whom it revokes may have signed.

    Raises:
        IntegrityError: this is not a release certificate, or it was altered.
        InvalidInputError: a line of it does not hold, or a file cannot be read.
    """
    study = load_study(study_path)
    return CertifiedRelease(checked_certificate(path, study, authority_pem(authority), revoked), study)
