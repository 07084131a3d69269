"""What a round sends: the bytes of one report as it travels."""

from veiltab.common.collection.oracles import Oracle
from veiltab.common.collection.round import EVERYONE
from veiltab.common.collection.round_messages import report_to_proto
from veiltab.common.collection.tokens import TOKEN_BYTES
from veiltab.common.core.randomness import CipherStream

_ROUND = "0" * 32


def report_length(oracle: Oracle) -> int:
    """Return the bytes of one report as it travels: round, token, stratum and payload, before transport encryption.

    A report's length depends on the round alone, so any value's stands for all of them.
    """
    report = oracle.randomise(0, CipherStream(bytes(32)))
    return len(report_to_proto(_ROUND, bytes(TOKEN_BYTES), EVERYONE, report).SerializeToString())
