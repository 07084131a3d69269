"""Linking: curators without a common number find rows of the same people by names, dates and other identity fields.

One curator is the hub: the rows of all others, the spokes, link to its rows, by the hub rule and the ladder of keys of
the study (veiltab.common.linkage). A session is entered as in a private alignment. docs/linkage.md says who learns what.

When a linkage has ended every curator has the same handles, each on its own row of the person; alignment and releases
go on with these handles in the place of ids.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.errors import DeniedError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.linkage.identity import Identity
from veiltab.common.storage.database import transaction
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.disk_needs import FOLDERS, ROW_BYTES
from veiltab.curator.alignment.linking.agreement import HubLine
from veiltab.curator.alignment.linking.hub_work import HubWork, UnknownHandleError
from veiltab.curator.alignment.linking.leg import ROOM, Leg
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage, Session
from veiltab.curator.alignment.linking.linkages import Linkages
from veiltab.curator.alignment.linking.linked_rows import linked_rows
from veiltab.curator.alignment.linking.oblivious import VALUE_BYTES, Handles
from veiltab.curator.alignment.linking.own_keys import most_variants
from veiltab.curator.alignment.linking.spoke_work import SpokeWork
from veiltab.curator.alignment.private.masking import Masking
from veiltab.curator.alignment.private.private_exchange import PrivateExchange
from veiltab.curator.audit.log import Event
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.ring import PART_BYTES, Standing
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH
from veiltab.curator.table.workplace import Workplace
