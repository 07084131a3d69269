"""The exchange by which a study's curators learn which rows of the hub are of their own people."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import PARTS
from veiltab.common.storage.disk import DiskReservations
from veiltab.common.study.file import Study
from veiltab.curator.alignment.exchange import Exchange
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.records.store import CuratorStore

if TYPE_CHECKING:
    from veiltab.curator.alignment.joining.join_exchange import Join


def exchange_of(study: Study, name: str, folder: Path, store: CuratorStore, room: DiskReservations) -> Exchange:
    """Return the exchange of a study: by tokens, oblivious, or a linkage.

    Args:
        folder: for what the exchange keeps.
        room: what is left of its disk.
    """
    if study.alignment == "tokens" and study.identity is None:
        from veiltab.curator.alignment.token_exchange import TokenExchange  # noqa: PLC0415 - not for oblivious joins

        return TokenExchange(name, study.hub, folder, room)
    # A study that joins by tokens needs neither these nor libsodium.
    from veiltab.curator.alignment.joining.join_exchange import JoinExchange  # noqa: PLC0415 - not for joins by tokens
    from veiltab.curator.alignment.joining.sessions import Sessions  # noqa: PLC0415 - not for joins by tokens

    spokes = [curator.name for curator in study.curators if curator.name != study.hub]
    sessions = Sessions(
        name,
        spokes if name == study.hub else [study.hub],
        is_hub=name == study.hub,
        folder=folder,
        store=store,
        room=room,
        most_rows={each.name: each.most_ids for each in study.curators if each.most_ids is not None},
        maximum=study.maximum_respondents,
    )
    join: Join
    if study.identity is None:
        from veiltab.curator.alignment.joining.id_join import IdJoin  # noqa: PLC0415 - not for linkages

        join = IdJoin(sessions)
    else:
        from veiltab.curator.alignment.linking.link_join import LinkJoin  # noqa: PLC0415 - not for studies with ids

        join = LinkJoin(
            sessions,
            folder,
            store,
            identity=study.identity,
            date_order=study.curator(name).dates,
            is_private=study.alignment == "oblivious",
        )
    return JoinExchange(sessions, join, folder, folder.parent, lacking_of(study, name, store))


def lacking_of(study: Study, name: str, store: CuratorStore) -> dict[str, Lacking]:
    """Return attribute -> what people of the hub have who are not in a curator's table."""
    key = None if study.may_lack(name) else store.alignments.fill_key(secrets.token_bytes(32))
    return {
        rule.name: Lacking(
            categories=len(rule.coding.categories),
            parts=PARTS if rule.coding.grid else 1,
            key=None if key is None else derive(key, rule.name),
        )
        for rule in study.attributes_of(name)
    }
