"""Whether a planted difference is found as often as the calculation of power says.

    python studies/calibration/power_studies.py                # 4,000 worlds a row
    python studies/calibration/power_studies.py --worlds 500   # quicker
    python studies/calibration/power_studies.py --only sentence

Each row plants a difference in many worlds and tests it as a run does: either the smallest
detectable difference of n units, or a fixed difference in the number of units that it needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from power_worlds import (
    measure_debiasing,
    measure_pairs,
    measure_sets,
    measure_uncertain,
    sample_debiasing,
    sample_other_sets,
    sample_pairs,
    sample_sets,
    sample_uncertain,
    test_sets,
    test_uncertain,
)
from tally import compute_band
from uncertain_studies import EVEN, RARE, UncertainStudy, sample_gains

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.decomposition import CrossedDesign, estimate_components
from recbias.statistics.groups import compute_moments, welch_contrasts
from recbias.statistics.intervals import (
    ErrorBySize,
    ErrorOfMean,
    compute_detectable_difference,
    find_sample_size,
    measure_crossed_error,
    measure_group_error,
)
from recbias.statistics.paired import PairedT
from recbias.statistics.permutation import Exchange, permute_labels

WORLDS = 4000
POWER = 0.8
SHARE = 0.3
"""The share of the first group among the units."""
GROUP_STD = np.array([1.5, 1.0])
TEMPLATES, COMPONENTS = 6, np.array([0.3, 0.1, 0.6])

Sample = Callable[[np.random.Generator, int, float, int], AnyArray]
"""From a generator, a number of worlds, a difference and a number of units to the values."""


@dataclass(frozen=True)
class PowerStudy:
    """A world and a test.

    Args:
        design: What the units are.
        world: The distribution of the values.
        test: The name of the test.
        measure_error: The true standard error by the number of units, or by the difference too.
        sample: Samples worlds.
        find: The p-value of each world.
        n: The numbers of units whose smallest detectable difference is planted.
        differences: The differences that are planted in as many units as they need.
        alpha: The level of a test.
        remark: What explains a share outside of the band.
    """

    design: str
    world: str
    test: str
    measure_error: Callable[[float], ErrorBySize]
    sample: Sample
    find: Callable[[AnyArray], FloatArray]
    n: Sequence[int] = ()
    differences: Sequence[float] = ()
    alpha: float = 0.05
    smallest: int = 2
    remark: str = ""

    def plant(self) -> Iterable[tuple[int, float, str]]:
        """Yield the number of units, the difference, and which of the two was computed."""
        for n in self.n:
            difference = 0.0
            for _ in range(50):  # the error of hits depends on the difference
                error, df = self.measure_error(difference)(np.array(float(n)))
                last = difference
                difference = float(
                    compute_detectable_difference(error, df, alpha=self.alpha, power=POWER)
                )
                if abs(difference - last) < 1e-6 * difference:
                    break
            yield n, difference, "difference"
        for difference in self.differences:
            (needed,) = find_sample_size(
                self.measure_error(difference),
                difference,
                smallest=[self.smallest],
                alpha=self.alpha,
                power=POWER,
            )
            yield int(needed), difference, "number"


def scale_std(std: float) -> Callable[[float], ErrorBySize]:
    """The error of the mean of n differences."""
    return lambda _: lambda n: (np.asarray(std / np.sqrt(n)), np.asarray(n - 1.0))


def scale_hits(discordant: float) -> Callable[[float], ErrorBySize]:
    """The error of a difference of hits, where a share of the users has a hit from one model."""
    return lambda difference: scale_std(float(np.sqrt(discordant - difference**2)))(0.0)


def sample_normal(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    return rng.normal(difference, 1.0, (worlds, n))


def sample_skewed(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """Exponential differences: the skewness is 2."""
    return rng.exponential(1.0, (worlds, n)) - 1.0 + difference


def sample_tail_below(
    rng: np.random.Generator, worlds: int, difference: float, n: int
) -> AnyArray:
    return 1.0 - rng.exponential(1.0, (worlds, n)) + difference


def sample_hits(discordant: float) -> Sample:
    def sample(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
        chance = rng.random((worlds, n))
        is_up = chance < (discordant + difference) / 2.0
        return np.where(is_up, 1.0, np.where(chance < discordant, -1.0, 0.0))

    return sample


def sample_groups(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    first = round(n * SHARE)
    values = rng.normal(size=(worlds, n)) * np.repeat(GROUP_STD, [first, n - first])
    values[:, :first] += difference
    return values


def sample_labels(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """The means of n names in the templates, of which the first half carries the label."""
    prompts = sample_crossed(rng, worlds, 0.0, n)
    means: FloatArray = prompts.mean(axis=2)
    means[:, : n // 2] += difference
    return means


def sample_crossed(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """The differences of n names in the templates, ``[worlds, names, templates]``."""
    name, template, rest = np.sqrt(COMPONENTS)
    values = rng.normal(0.0, rest, (worlds, n, TEMPLATES)) + difference
    values += rng.normal(0.0, name, (worlds, n, 1))
    return values + rng.normal(0.0, template, (worlds, 1, TEMPLATES))


def sample_fixed(rng: np.random.Generator, worlds: int, difference: float, n: int) -> AnyArray:
    """The means of n names; the effects of fixed templates sum to 0."""
    name, _, rest = np.sqrt(COMPONENTS)
    values = rng.normal(0.0, rest, (worlds, n, TEMPLATES)) + difference
    means: AnyArray = (values + rng.normal(0.0, name, (worlds, n, 1))).mean(axis=2)
    return means


def measure_fixed(n: FloatArray) -> ErrorOfMean:
    name, _, rest = COMPONENTS
    return np.asarray(np.sqrt((name + rest / TEMPLATES) / n)), np.asarray(n - 1.0)


def measure_labels(n: FloatArray) -> ErrorOfMean:
    name, _, rest = COMPONENTS
    return measure_group_error(np.full(2, name + rest / TEMPLATES), np.full(2, 0.5))(n)


def measure_crossed(n: FloatArray) -> ErrorOfMean:
    return measure_crossed_error(COMPONENTS, n, TEMPLATES)


def test_paired(values: AnyArray) -> FloatArray:
    rng, test = np.random.default_rng(0), PairedT()
    zero = np.zeros(values.shape[1])
    return np.array([test.pairs(np.stack([row, zero]), rng)["p"][0] for row in values])


def test_groups(values: AnyArray) -> FloatArray:
    codes = (np.arange(values.shape[1]) >= round(values.shape[1] * SHARE)).astype(np.intp)
    tests = (
        welch_contrasts(("a", "b"), compute_moments(row, codes, 2), between="groups")
        for row in values
    )
    return np.array([test.p for (test,) in tests])


def test_labels(values: AnyArray) -> FloatArray:
    n = values.shape[1]
    gap = values[:, : n // 2].mean(axis=1) - values[:, n // 2 :].mean(axis=1)
    p = permute_labels(
        values[..., None],
        gap[:, None],
        Exchange.of_two(np.array([n]), np.array([n // 2])),
        np.subtract,
        n_permutations=999,
        rng=np.random.default_rng(1),
    )
    return p[:, 0]


def test_crossed(values: AnyArray) -> FloatArray:
    """The t-test whose variance is the sum of the estimated components of both samples."""
    from scipy.special import stdtr

    n = values.shape[1]
    names, templates = np.repeat(np.arange(n), TEMPLATES), np.tile(np.arange(TEMPLATES), n)
    p = np.empty(len(values))
    for world, prompts in enumerate(values):
        design = CrossedDesign.from_values(prompts.ravel(), names, templates, np.zeros(n, int))
        components = estimate_components(design)[0, 1:]
        error, df = measure_crossed_error(components, n, TEMPLATES)
        p[world] = 2.0 * stdtr(df, -abs(prompts.mean()) / error)
    return p


FEW = (
    "Few users have a hit from one model only; where the difference is large for them, their "
    "variance is smaller, and more runs are significant."
)
LARGER_GAPS = (
    "The gap that is removed is larger for sentences of high perplexity: a long tail above."
)
LONG_TAIL = "Of few skewed values, the mean and the standard error are correlated."

STUDIES = (
    PowerStudy(
        "users, paired", "normal", "paired_t", scale_std(1.0), sample_normal, test_paired,
        n=(5, 20, 500), differences=(0.2, 1.0),
    ),
    PowerStudy(
        "users, paired, α / 10", "normal", "paired_t", scale_std(1.0), sample_normal, test_paired,
        n=(20, 500), alpha=0.005,
    ),
    PowerStudy(
        "users, paired", "hits of 0 and 1, 20% from one model only", "paired_t", scale_hits(0.2),
        sample_hits(0.2), test_paired, n=(100, 600), differences=(0.05,), remark=FEW,
    ),
    PowerStudy(
        "users, paired", "hits of 0 and 1, 4% from one model only", "paired_t", scale_hits(0.04),
        sample_hits(0.04), test_paired, n=(300, 2000), differences=(0.02,), remark=FEW,
    ),
    PowerStudy(
        "users, paired", "skewed, long tail above", "paired_t", scale_std(1.0), sample_skewed,
        test_paired, n=(20, 100, 1000), differences=(0.2,),
        remark=LONG_TAIL,
    ),
    PowerStudy(
        "users, paired", "skewed, long tail below", "paired_t", scale_std(1.0), sample_tail_below,
        test_paired, n=(20, 100, 1000), differences=(0.2,), remark=LONG_TAIL,
    ),
    PowerStudy(
        "users of two groups, 30% and 70%", "normal, standard deviations 1.5 and 1", "welch_t",
        lambda _: measure_group_error(GROUP_STD**2, np.array([SHARE, 1 - SHARE])), sample_groups,
        test_groups, n=(40, 600), differences=(0.5,), smallest=7,
    ),
    PowerStudy(
        "names of two labels, 6 templates", "normal", "permutation", lambda _: measure_labels,
        sample_labels, test_labels, n=(12, 24), differences=(0.5,), smallest=4,
    ),
    PowerStudy(
        "names, the same 6 templates", "normal", "paired_t", lambda _: measure_fixed,
        sample_fixed, test_paired, n=(12, 40), differences=(0.3,),
    ),
    PowerStudy(
        "names and 6 templates, both sampled", "normal", "t of both components",
        lambda _: measure_crossed, sample_crossed, test_crossed, n=(12, 40), differences=(0.6,),
    ),
    PowerStudy(
        "sentence pairs, two groups", "perplexities", "paired_t", measure_pairs, sample_pairs,
        test_paired, n=(20, 200, 1000), differences=(0.1,),
        remark="Few differences with long tails on both sides.",
    ),
    PowerStudy(
        "sentence pairs, before and after debiasing", "perplexities", "paired_t",
        measure_debiasing, sample_debiasing, test_paired, n=(20, 200, 1000), differences=(0.1,),
        remark=LARGER_GAPS,
    ),
    PowerStudy(
        "sentences of two groups, not paired", "perplexities", "welch_t", measure_sets,
        sample_other_sets, test_sets, n=(40, 400), differences=(0.2,), smallest=4,
    ),
    PowerStudy(
        "sentences of two groups, pairs ignored", "perplexities", "welch_t", measure_sets,
        sample_sets, test_sets, n=(40, 400), differences=(0.2,), smallest=4,
        remark="Paired sentences are correlated, which an unpaired test ignores.",
    ),
    *(
        PowerStudy(
            f"users, {study.independent} of a group, Dirichlet({study.alpha[0]:g}, "
            f"{study.alpha[1]:g})",
            "within 0 and 1", "uncertain_t", measure_uncertain(study), sample_uncertain(study),
            test_uncertain(study), n=n, differences=(0.1,),
        )
        for study, n in (
            (UncertainStudy(0, EVEN, "probability", sample_gains, ""), (200, 1000)),
            (UncertainStudy(0, EVEN, "weight", sample_gains, ""), (1000,)),
            (UncertainStudy(0, RARE, "probability", sample_gains, ""), (400, 2000)),
        )
    ),
)  # fmt: skip


def write_power_section(n_worlds: int = WORLDS, studies: Sequence[PowerStudy] = STUDIES) -> str:
    """The section of the page."""
    low, high = compute_band(n_worlds, POWER)
    rows = [ABOUT.format(worlds=n_worlds, low=f"{low:.1%}", high=f"{high:.1%}"), HEAD]
    for study in studies:
        for n, difference, computed in study.plant():
            share = simulate(study, n, difference, n_worlds)
            rows.append(_format_row(study, (n, difference, computed), share, (low, high)))
    return "\n".join([*rows, ""])


def _format_row(
    study: PowerStudy, planted: tuple[int, float, str], share: float, band: tuple[float, float]
) -> str:
    n, difference, computed = planted
    number = f"*{n:,}*" if computed == "number" else f"{n:,}"
    size = f"*{difference:.4g}*" if computed == "difference" else f"{difference:.4g}"
    is_inside = band[0] <= share <= band[1]
    text = f"{share:.1%}" if is_inside else f"**{share:.1%}** {'▲' if share > band[1] else '▼'}"
    remark = "" if is_inside else study.remark
    cells = (study.design, study.world, study.test, number, size, text, remark)
    return f"| {' | '.join(cells)} |"


def simulate(study: PowerStudy, n: int, difference: float, n_worlds: int) -> float:
    """The share of the worlds in which the test finds the difference with its sign."""
    rng = np.random.default_rng([n, n_worlds])
    shares, block = [], max(1, 2**23 // (n * TEMPLATES))
    for start in range(0, n_worlds, block):
        values = study.sample(rng, min(block, n_worlds - start), difference, n)
        shares.append(study.find(values) <= study.alpha)
    return float(np.concatenate(shares).mean())


ABOUT = """
## Power

`recbias power` computes the smallest difference that a test finds in 80 of 100 runs, and the
number of units that a difference needs. Here such a difference is planted in {worlds:,} simulated
datasets; the number that was computed, units or difference, is in italics. 99% of the rows of a
correct calculation lie within {low} to {high}. The true variance is used; with the variance of a
pilot run, the needed number is as uncertain as that variance.

The calculation assumes means with a normal distribution. It is exact for normal values. For hits
of 0 and 1 that differ for few users, more runs than 80% are significant: it is cautious. For
strongly skewed values it is cautious where the long tail points in the direction of the
difference, and optimistic where it points against it: still by 2 points with 1,000 units.
Perplexities here have a lognormal distribution; the differences of paired copies are symmetric,
and the number is right to 2 points with 20 pairs. Welch's test ignores the pairs, and needs many
times as many sentences. For groups known as probabilities the standard error is taken to be
proportional to 1 / √n. This section alone: `python studies/calibration/power_studies.py`.
"""
HEAD = (
    "| Units | Values | Test | Number | True difference | Significant | Remark |\n"
    "|---|---|---|---:|---:|---:|---|"
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--only", default="", help="units that a row names: sentence")
    options = parser.parse_args()
    selected = [study for study in STUDIES if options.only in study.design]
    print(write_power_section(options.worlds, selected))
