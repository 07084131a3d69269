import hashlib
from collections.abc import Callable
from math import inf, isnan, nan

import mpmath
import numpy as np
import pytest

from veiltab.common.core.numbers.elementary import Floats, exp, exp_each, expm1_each, log, log1p, log_each

ULP = 2.0**-52
SOME = np.random.default_rng(1)
EXPONENTS = np.concatenate([SOME.uniform(-700, 700, 500), SOME.uniform(-1, 1, 500), [-0.0, 0.0, 1e-300, 5e-324, 1.0]])
NUMBERS = np.concatenate(
    [np.exp(SOME.uniform(-700, 700, 500)), SOME.uniform(0.5, 2, 500), 1 + SOME.uniform(-1e-9, 1e-9, 50), [1.0, 5e-324]]
)


def errors(found: Floats, exact: list[mpmath.mpf]) -> list[float]:
    """Relative errors; none where both are zero."""
    return [0.0 if one == true == 0 else abs(float(one / true - 1)) for one, true in zip(found, exact, strict=True)]


def test_exponentials_have_the_digits_of_a_float() -> None:
    with mpmath.workdps(40):
        exact = [mpmath.exp(mpmath.mpf(x)) for x in EXPONENTS.tolist()]
        assert max(errors(exp_each(EXPONENTS), exact)) < 1.2 * ULP
    assert exp(-3.25) == exp_each(np.array([-3.25]))[0]


def test_exponentials_less_1_have_the_digits_of_a_float() -> None:
    x = np.concatenate([np.exp(SOME.uniform(-30, 5, 500)), [0.0, 1e-300, 0.5, 0.4999999999999999]])
    with mpmath.workdps(350):
        exact = [mpmath.expm1(mpmath.mpf(one)) for one in x.tolist()]
        assert max(errors(expm1_each(x), exact)) < 2 * ULP
        few = x[x < 0.1]
        assert max(errors(expm1_each(few), [true for one, true in zip(x, exact, strict=True) if one < 0.1])) < 2 * ULP


def test_logarithms_have_the_digits_of_a_float() -> None:
    with mpmath.workdps(40):
        exact = [mpmath.log(mpmath.mpf(x)) for x in NUMBERS.tolist()]
        assert max(errors(log_each(NUMBERS), exact)) < 1.5 * ULP
        assert max(errors(np.array([log(x) for x in NUMBERS.tolist()]), exact)) < 1.5 * ULP


def test_logarithms_near_1_have_the_digits_of_a_float() -> None:
    x = np.concatenate([SOME.uniform(-0.9, 5, 300), -np.exp(SOME.uniform(-90, -1, 300)), [0.0, 1e-17]])
    with mpmath.workdps(80):
        exact = [mpmath.log(1 + mpmath.mpf(one)) for one in x.tolist()]
        assert max(errors(np.array([log1p(one) for one in x.tolist()]), exact)) < 2 * ULP


def one_by_one(function: Callable[[float], float]) -> Callable[[Floats], Floats]:
    return lambda x: np.array([function(one) for one in x.tolist()])


@pytest.mark.parametrize(
    ("function", "exact", "worst", "most"),
    [
        (exp_each, mpmath.exp, -0.04467363505024213, 2),
        (expm1_each, mpmath.expm1, 0.6755466281950313, 3),
        (log_each, mpmath.log, 1.0078128598475418, 3),
        (one_by_one(log), mpmath.log, 0.6990607979386586, 3),
        (one_by_one(log1p), mpmath.log1p, -0.35441265997658716, 4),
    ],
)
def test_errors_in_the_last_place_are_as_stated_where_they_are_largest(
    function: Callable[[Floats], Floats], exact: Callable[[mpmath.mpf], mpmath.mpf], worst: float, most: float
) -> None:
    x = worst * np.concatenate([[1.0], SOME.uniform(0.99, 1.01, 500), 1 + ULP * np.arange(-20, 20)])
    with mpmath.workdps(40):
        places = [
            abs(float((one - true) / np.spacing(abs(float(true)))))
            for one, true in zip(function(x).tolist(), [exact(mpmath.mpf(one)) for one in x.tolist()], strict=True)
        ]
    assert max(places) < most


def test_no_number_but_one_above_0_has_a_logarithm() -> None:
    assert log(inf) == log1p(inf) == inf
    assert isnan(log(nan))
    assert isnan(log1p(nan))
    for x in (0.0, -0.0, -1.0, -2.5, -inf):
        with pytest.raises(ValueError, match=r"domain|positive"):
            log(x)
        with pytest.raises(ValueError, match=r"domain|positive"):
            log1p(x - 1)


def test_exponentials_beyond_a_float_are_zero_and_infinite() -> None:
    assert exp_each(np.array([-1e11, -760.0, 720.0, 1e11])).tolist() == [0, 0, inf, inf]
    assert exp_each(np.empty((3, 0))).shape == log_each(np.empty((3, 0))).shape == (3, 0)


def test_every_machine_has_these_bits() -> None:
    x = np.arange(1, 200_001) / 641
    assert digest(exp_each(x - 250)) == "9015d315932f3f46"
    assert digest(log_each(x)) == "4539343165f82c18"


def digest(numbers: Floats) -> str:
    return hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()[:16]
