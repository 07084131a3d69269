"""`veiltab curator evidence`: export what an auditor needs, signed."""

from pathlib import Path

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.new_files import NEW_FILE
from veiltab.common.command.options import identity_option
from veiltab.common.rpc.certificates.certificate_files import checked_certificate
from veiltab.common.rpc.parties.identity import Role, load_identity
from veiltab.curator.evidence.export import EvidenceOrder, write_evidence
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import since_option
from veiltab.curator.officer.persons import named_person, person_name


@click.command(
    epilog="Example: veiltab curator evidence study.toml --state state --identity pki/curator-alice --out evidence.zip"
)
@with_own_state
@identity_option
@click.option("--out", required=True, type=NEW_FILE, help="File to write; it must not be there yet.")
@since_option
@click.option(
    "--certificate", "certificates", multiple=True, type=PATH, help="A release certificate to go with it, if it holds."
)
@click.option("--person", help="Who exports it; by default the login name of the operating system.")
def evidence(
    own_state: OpenedState,
    identity_folder: Path,
    out: Path,
    since: int | None,
    certificates: tuple[Path, ...],
    person: str | None,
) -> None:
    """Export study, policy, ledger, decisions, audit log and statements, signed, with a page that an auditor reads.

    `veiltab verify` checks the file, offline.
    """
    who = person_name(named_person(person))
    identity = load_identity(identity_folder, Role.CURATOR, own_state.name, study=own_state.study.id)
    order = EvidenceOrder(
        person=who,
        since=since,
        certificates=tuple(checked_certificate(path, own_state.study, identity.authority) for path in certificates),
    )
    index = write_evidence(own_state, identity, order, out)
    plain = {
        "evidence": str(out),
        "files": {one.name: one.sha256 for one in index.files},
        "ledger": index.ledger.length,
        "audit": index.audit.length,
    }
    text = (
        f"{out}: {len(index.files)} files, {index.ledger.length} charges, {index.audit.length} entries of the audit log"
    )
    emit(plain, f"{text}.\nCheck it: veiltab verify {out} --authority ca.pem")
