"""The exchange by which a study's curators find their common respondents."""

from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.storage.disk import Room
from veiltab.common.study.file import Study
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.records.store import CuratorStore

if TYPE_CHECKING:
    from veiltab.curator.alignment.private.private_exchange import PrivateExchange


def exchange_of(
    study: Study, name: str, folder: Path, store: CuratorStore, room: Room
) -> "TokenExchange | PrivateExchange":
    """Return the exchange of a study: by tokens, or private.

    Args:
        folder: for what the exchange keeps.
        room: what is left of its disk.
    """
    if study.alignment == "tokens" and study.identity is None:
        return TokenExchange(name, study.hub, folder, room)
    # A study that aligns by tokens needs neither these nor libsodium.
    from veiltab.curator.alignment.private.masking import MAX_IDS, Masking  # noqa: PLC0415 - not for alignment by tokens
    from veiltab.curator.alignment.private.private_exchange import PrivateExchange  # noqa: PLC0415 - not for alignment by tokens

    names, masking = [curator.name for curator in study.curators], Masking(folder.parent)
    most_ids = {each.name: each.most_ids for each in study.curators if each.most_ids is not None}
    if study.identity is not None:
        from veiltab.curator.alignment.linking.link_exchange import LinkExchange  # noqa: PLC0415 - not for studies with ids

        return LinkExchange(
            name,
            names,
            folder,
            store,
            masking,
            room,
            identity=study.identity,
            date_order=study.curator(name).dates,
            is_private=study.alignment == "psi",
            most_ids=most_ids,
            maximum=study.maximum_respondents,
        )
    maximum = min(MAX_IDS, study.maximum_respondents)
    return PrivateExchange(name, names, folder, store, masking, room, most_ids=most_ids, maximum=maximum)
