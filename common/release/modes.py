"""How a release is sampled and encrypted, and which modes can be combined."""

from decimal import Decimal
from enum import Enum
from typing import assert_never

from veiltab.common.core.numbers.rounding import parse_delta
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import check_certified, scheme_class


class Sampling(Enum):
    """How the curators agree on a sample."""

    SEED = "seed"
    INDICES = "indices"
    SERVER = "server"

    @property
    def is_by_server(self) -> bool:
        """Whether the curators upload everyone's rows and the server draws the sample."""
        return self is Sampling.SERVER


class Pad(Enum):
    """The source of a column's pad, which decides the key: 32 bytes, or the pad itself."""

    CHACHA20 = "chacha20"
    OTP = "otp"

    @property
    def is_one_time(self) -> bool:
        """Whether the pad is itself the key, so that the ciphertext does not depend on the data at all."""
        return self is Pad.OTP


def check_modes(scheme: str, sampling: Sampling, delta: Decimal | None) -> None:
    """Refuse modes of sampling that cannot be combined.

    Raises:
        InvalidInputError: an unknown scheme; one that is not simple random, with delta (there is no order certificate
            for it), explicit indices or sampling at the server.
    """
    scheme_of_mode = scheme_class(scheme)
    if delta is not None:
        parse_delta(delta)
        check_certified(scheme_of_mode)
    match sampling:
        case Sampling.SEED:
            pass
        case Sampling.INDICES | Sampling.SERVER:
            if not scheme_of_mode.is_simple_random:
                raise InvalidInputError(f"the scheme {scheme} is drawn from a seed", where="sampling")
        case _:
            assert_never(sampling)
