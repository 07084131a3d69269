"""Plans how many rows to sample and how much to perturb, from public parameters: n, the cells and epsilon.

Every curator computes the plan for itself and compares; so nothing in it may depend on the machine. Sizes and privacy
parameters come from exact arithmetic. Floats appear in certificates and in expected errors, and there only by
operations that have the same digits on every machine (see veiltab.common.core.numbers.elementary).
"""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, sqrt

from veiltab.common.core.mechanism import GammaDiagonal, TwoSidedNoise
from veiltab.common.core.numbers.rounding import exact_decimal, exp_below, ln_above, sqrt_of
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.calibration import calibrate
from veiltab.common.privacy.cards.card import advised_delta, delta_warning
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT, NoiseSharing
from veiltab.common.schemes import Scheme, check_certified, scheme_of

FEWEST_ROWS = 5.0
"""Cochran's rule: the normal law is doubted in a cell that expects fewer noisy rows."""

FEW_ROWS = "Some cells expect fewer than five noisy rows: their intervals may hold less often than they say."
"""Of such cells the worst 95% interval held in 84 to 94% of 4,000 releases (200 cells, 79 to 4,315 rows)."""

_WORTH = 0.99
"""A sample is planned instead of everyone where it takes more than this off the error: no rounding decides."""


def few_rows_warning(cells: int, rows: int | None, fewest: int = 0) -> str:
    """Return that a table samples too few rows for its cells; "" if they suffice.

    Args:
        rows: the most that are sampled; None if not known yet.
        fewest: the least rows of the study, which count while `rows` is not known.
    """
    if (fewest if rows is None else rows) >= FEWEST_ROWS * cells:
        return ""
    five = f"{cells:,} cells take {round(FEWEST_ROWS * cells):,} sampled rows for five each"
    sampled = "" if rows is None else f", and at most {rows:,} are sampled"
    return f"{five}{sampled}. {FEW_ROWS} Ask for fewer attributes, coarser bins, or pairs."


def mean_squared_error(  # noqa: PLR0913 - one argument a quantity
    *,
    population: int,
    sample: int,
    cells: int,
    gamma: float,
    sum_of_squares: float | None = None,
    variance_factor: float | None = None,
) -> float:
    """Return the expected squared error of the estimated joint distribution.

    E||T_hat - T||_2^2 = (1/m) (K-1)(2 gamma + K - 2)/(gamma-1)^2 + v (1 - sum T^2)

    Args:
        population: n, rows of the hub.
        sample: sampled rows m.
        cells: cells K of the joint table.
        gamma: worst-case ratio of the mechanism, above 1.
        sum_of_squares: sum over the cells of T(x)^2; by default 1/K, its least value and so the largest error.
        variance_factor: v of the sampling scheme; by default that without replacement, (n-m)/((n-1) m).

    Returns:
        A squared probability; exact, not a bound.

    Source: derived from the mechanism's mixture law and the law of the sample; the bound of Lin, Wang, Rane,
    Theorem 3.4 is about sqrt(K) above its square root.
    """
    spread = 1 - (1 / cells if sum_of_squares is None else sum_of_squares)
    noise = (cells - 1) * (2 * gamma + cells - 2) / ((gamma - 1) * (gamma - 1)) / sample
    if variance_factor is None:
        variance_factor = (population - sample) / ((population - 1) * sample) if population > 1 else 0.0
    return noise + variance_factor * spread


def optimal_sample(*, population: int, cells: int, epsilon: Decimal, sum_of_squares: Fraction | None = None) -> int:
    """Return the sample size with the least expected error at a pure epsilon.

    m = (e^epsilon - 1) n sqrt( (1 - sum T^2) n / ((n-1) K (K-1)) ), at least 1 and at most n

    Args:
        population: n, rows of the hub.
        cells: cells K, at least 2.
        epsilon: pure epsilon, in nats.
        sum_of_squares: sum of T(x)^2; by default 1/K, which needs no knowledge of the table.

    Returns:
        Rows, the same on every machine.

    Source: minimum over m of `mean_squared_error` with gamma from Lin, Wang, Rane, Theorem 3.2.
    """
    spread = 1 - (Fraction(1, cells) if sum_of_squares is None else sum_of_squares)
    if population <= 1 or cells <= 1 or spread <= 0:
        return population
    root = sqrt_of(spread * population / ((population - 1) * cells * (cells - 1)))
    return _within(population, (exp_below(epsilon) - 1) * population * Fraction(root))


def paper_sample(*, population: int, cells: int, epsilon: Decimal) -> int:
    """Return the sample size m* that minimises the paper's bound, capped at n.

    m* = n (1 + sqrt K)(e^epsilon - 1) / K^1.5

    Source: Lin, Wang, Rane, Corollary 3.6 (which does not say that it can exceed n).
    """
    root = Fraction(sqrt_of(Fraction(cells)))
    return _within(population, population * (1 + root) * (exp_below(epsilon) - 1) / (cells * root))


def paper_bound(*, sample: int, cells: int, gamma: float) -> float:
    """Return the paper's upper bound of the expected error, (c sqrt(K) + 1)/sqrt(m) with c = 1 + K/(gamma-1).

    Source: Lin, Wang, Rane, Theorem 3.4 (a bound, about sqrt(K) loose).
    """
    return ((1 + cells / (gamma - 1)) * sqrt(cells) + 1) / sqrt(sample)


def _within(population: int, rows: Fraction) -> int:
    return max(1, min(population, round(rows)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A release's public parameters: its sampling, its mechanism and its guarantees.

    Args:
        scheme: how rows are sampled.
        mechanism: the noise of both sides.
        epsilon: the requested one, nats.
        delta: the requested one; None asks for a pure guarantee.
        is_sampled_by_server: whether the curators upload everyone and the server draws the sample.
    """

    scheme: Scheme
    mechanism: TwoSidedNoise
    epsilon: Decimal
    delta: Decimal | None
    is_sampled_by_server: bool = False

    @property
    def description(self) -> ReleaseDescription:
        """What the accountants look at: the mechanism that runs, after rounding."""
        return ReleaseDescription(scheme=self.scheme, cells=self.mechanism.cells, gamma=self.mechanism.gamma)

    @property
    def release(self) -> TwoSidedRelease:
        """The release with the noise of either side, for the bounds of coalitions."""
        return TwoSidedRelease(scheme=self.scheme, noise=self.mechanism, is_sampled_by_server=self.is_sampled_by_server)

    @property
    def population(self) -> int:
        """n, rows of every table."""
        return self.scheme.population

    @property
    def sample(self) -> int:
        """Sampled rows, m."""
        return self.scheme.sample

    @property
    def gamma(self) -> float:
        """Worst-case ratio of the mechanism that runs, as a float for display."""
        return float(self.mechanism.gamma)

    @property
    def pure_epsilon(self) -> Decimal:
        """Pure epsilon of the mechanism that runs, nats, an upper bound; at most epsilon unless delta is given."""
        pure = self.description.pure_epsilon
        return pure if self.delta is not None else min(pure, self.epsilon)

    @property
    def local_epsilon(self) -> Decimal:
        """Return ln gamma(r_s), a row's upper bound against who knows the sample and the curators' coins, nats."""
        return ln_above(self.mechanism.server.gamma)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the plan cannot do well, a sentence each."""
        lines = [] if self.delta is None else [delta_warning(self.delta, self.population)]
        return tuple(filter(None, [*lines, few_rows_warning(self.mechanism.cells, self.sample)]))

    def root_mse(self, sum_of_squares: float | None = None) -> float:
        """Return the root of `mean_squared_error` for this plan, a probability."""
        return sqrt(
            mean_squared_error(
                population=self.population,
                sample=self.sample,
                cells=self.mechanism.cells,
                gamma=self.gamma,
                sum_of_squares=sum_of_squares,
                variance_factor=float(self.scheme.variance_factor),
            )
        )

    def cell_root_mse(self, sum_of_squares: float | None = None) -> float:
        """Return the root of `mean_squared_error` divided by the cells: the error of one cell, a probability."""
        return self.root_mse(sum_of_squares) / sqrt(self.mechanism.cells)


def plan_release(  # noqa: PLR0913 - one argument a quantity
    *,
    population: int,
    cells: int,
    epsilon: Decimal | float,
    delta: Decimal | float | None = None,
    max_local_epsilon: Decimal | float | None = None,
    sample: int | None = None,
    scheme: str = "wor",
    stage: int | None = None,
    sum_of_squares: Fraction | None = None,
    noise_split: Decimal | float = DEFAULT_SPLIT,
    max_pair_epsilon: Decimal | float | None = None,
    is_sampled_by_server: bool = False,
) -> Plan:
    """Choose the sample size and the replacement probability of a release.

    The replacement probability is rounded up to 64 bits, and everything reported is that of the mechanism that runs:
    gamma' <= gamma, hence epsilon' <= epsilon. By default the sample has the size of least error: for a pure guarantee
    the optimum of `optimal_sample` (larger where the cap on ln gamma binds), with delta the whole population, whose
    secret order then does what the secret sample did, or the pure optimum where that has less error. A float counts as
    Python shows it: 0.1 is Decimal("0.1").

    Args:
        population: n, rows of the hub.
        cells: cells K of the joint table.
        epsilon: to keep, in nats.
        delta: to keep with it; None keeps epsilon purely.
        max_local_epsilon: most that ln gamma of the server's noise may be, nats.
        sample: rows to sample, m.
        scheme: name of the sampling scheme.
        stage: rows after stage one, for a MUST scheme.
        sum_of_squares: sum T(x)^2, if known from public sources.
        noise_split: the curators' part of the noise, in [0, 1).
        max_pair_epsilon: most epsilon of the desk with the server, and of an analyst with curators, at the delta of the
            request or else the advised one; nats.
        is_sampled_by_server: whether the curators upload everyone and the server draws the sample.

    Returns:
        The plan, the same on every machine.

    Raises:
        InvalidInputError: sizes out of range, a delta or a cap on pairs for a scheme without an order certificate, or
            an epsilon so small that nothing of a row would be kept.

    Source: Lin, Wang, Rane, Theorem 3.2; exact optimum instead of their Corollary 3.6; the order certificate.
    """
    if cells < 2:
        raise InvalidInputError("the table has one cell, so there is nothing to estimate", where="cells")
    if population < 1:
        raise InvalidInputError(f"the population must be at least 1, not {population}", where="population")
    epsilon, delta = exact_decimal(epsilon), None if delta is None else exact_decimal(delta)
    cap = None if max_local_epsilon is None else exact_decimal(max_local_epsilon)

    sharing = NoiseSharing(
        split=exact_decimal(noise_split),
        max_local_epsilon=cap,
        max_pair_epsilon=None if max_pair_epsilon is None else exact_decimal(max_pair_epsilon),
        pair_delta=delta or advised_delta(population),
        is_sampled_by_server=is_sampled_by_server,
    )

    def plan_of(size: int) -> Plan:
        sampling = scheme_of(scheme, population=population, sample=size, stage=stage)
        return Plan(
            scheme=sampling,
            mechanism=sharing.of(_mechanism(sampling, cells, epsilon, delta), sampling),
            epsilon=epsilon,
            delta=delta,
            is_sampled_by_server=is_sampled_by_server,
        )

    if sample is not None:
        return plan_of(sample)
    pure = _least_error(population, cells, epsilon, cap, sum_of_squares)
    if delta is None:
        return plan_of(pure)
    everyone = plan_of(population)
    squares = None if sum_of_squares is None else float(sum_of_squares)
    aim = _WORTH * everyone.root_mse(squares)
    # Without calibrating it: the error of a sample with the least noise that can run.
    least = mean_squared_error(
        population=population,
        sample=pure,
        cells=cells,
        gamma=float(GammaDiagonal(cells=cells, replacement=1).gamma),
        sum_of_squares=squares,
    )
    if pure == population or sqrt(least) >= aim:
        return everyone
    smaller = plan_of(pure)
    return smaller if smaller.root_mse(squares) < aim else everyone


def _mechanism(scheme: Scheme, cells: int, epsilon: Decimal, delta: Decimal | None) -> GammaDiagonal:
    """Return the mechanism with the least noise for a sample."""
    if delta is None:
        return GammaDiagonal.from_gamma(cells, scheme.gamma_for(epsilon))
    check_certified(type(scheme))
    return calibrate(population=scheme.population, sample=scheme.sample, cells=cells, epsilon=epsilon, delta=delta)


def _least_error(
    population: int, cells: int, epsilon: Decimal, cap: Decimal | None, sum_of_squares: Fraction | None
) -> int:
    best = optimal_sample(population=population, cells=cells, epsilon=epsilon, sum_of_squares=sum_of_squares)
    if cap is None:
        return best
    # Below this size the cap binds and only more rows help; the error has its least at one of the two sizes about it.
    enough = population * (exp_below(epsilon) - 1) / (exp_below(cap) - 1)
    if best >= enough:
        return best

    def error(size: int) -> float:
        gamma = 1 + min((exp_below(epsilon) - 1) * population / size, exp_below(cap) - 1)
        return mean_squared_error(
            population=population,
            sample=size,
            cells=cells,
            gamma=float(gamma),
            sum_of_squares=None if sum_of_squares is None else float(sum_of_squares),
        )

    return min((_within(population, Fraction(size)) for size in (floor(enough), ceil(enough))), key=error)
