"""What the page says around its tables, and beside rows of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    """A sentence beside some rows: the world begins so, the others have it in them."""

    text: str
    kind: str = ""
    world: str = ""
    study: str = ""
    figure: str = ""
    exactly: bool = False
    """Whether ``study`` is its whole name."""
    if_outside: bool = False
    """Whether it stands beside rows outside of their band only."""


ABOUT = """# Are intervals and tests calibrated?

A 95% confidence interval should contain the true value in 95 of 100 samples. A test at the 5%
level should be significant in 5 of 100 samples where there is no effect. Here every metric and
every test of recbias is simulated {seeds} times in worlds whose truth is known, each time with new
users, names, items or sentences:

    python studies/calibration/run.py --seeds {seeds} --write

**Result.** {outside} of {rows} rows are outside the band of chance, where about {by_chance} would
be by chance alone: {liberal} intervals or tests that promise too much, and {cautious} that are
conservative (an interval that is too wide, a test that is significant too rarely). The column
*Remark* gives the reason for each. The band, {intervals} for intervals and {tests} for
tests, holds {share} of the rows of a calibrated method; ▼ marks a row below it and ▲ one above it.

How to read the tables:

- Lists, users and items are those of the dataset [demo](../plugins/datasets/demo.md); vectors,
  labels, template lists, perplexities and texts come from the distributions in
  `studies/calibration`.
- The *true value* is a formula where there is one, and otherwise an estimate from a very large
  sample. It is a range where it depends on the sample.
- `75.0% of 150` is a row in which only 150 samples have an interval.
- p-values are not corrected here. Permutation tests use 199 permutations.
- Not in the tables: `overlap_spread`, differences of more than
  two groups, `mad`, `worst` and `worst_quarter`, which have no interval, and EE-D over single
  items, which is a constant where each query has one list.
- Coverage, Gini and entropy depend on the number of lists. Their intervals are about the value
  expected of as many lists of other users: the Gini index of one model is 0.554 for 20 users,
  0.409 for 400 and 0.397 for 100,000.
"""

INTERVALS = "## Intervals"
INSIDE = """
## Tests inside one model

No effect is planted. With several tests per sample, such as one per pair of groups, their share
counts."""
DETECTED = """
## What tests detect

Here the null hypothesis of the test does not hold, although the groups of users do not differ. The
share is a power, and has no band. Where the null hypothesis holds, the same tests are above."""
BETWEEN = """
## Comparisons of two models

No effect is planted: two models with equal accuracy, bias and variance, compared by the tests of a
run."""

AT_THE_END = (
    "Where nothing is planted the true value is at the end of its range, so the difference of two "
    "models is a product of sampling errors, of which the bootstrap overestimates the variance: "
    "the test is conservative."
)
PRODUCT = (
    "Without group differences the estimate is a product of sampling errors, and the "
    "bootstrap overestimates its variance: the test is conservative."
)

REMARKS = (
    Remark(AT_THE_END, "test", "demo, ", figure="paired_bootstrap"),
    Remark(
        "Groups of favourites are of equal size and shape, so the distance of a user from the "
        "others is nearly the same for all: the bootstrap overestimates the variance.",
        "interval",
        "demo, taste",
        "inter_user_distance",
    ),
    Remark(
        "Items with few reviews have a high precision by chance, so the estimate is above the "
        "value of very many reviews.",
        "interval",
        "rankings for reviews",
        "class_precision",
    ),
    Remark(
        "The smallest of several ratios is too small by chance, so that the estimate is below "
        "the value of very many lists.",
        "interval",
        "exposure in recommended lists",
        "EXPU",
        exactly=True,
    ),
    Remark(
        "Popularity is counted in the sample, and the interval treats it as known: it refers "
        "to the training data of these users, not of all users.",
        "interval",
        study="popularity_rank_correlation, popularity counted",
    ),
    Remark(
        "Every item is recommended to at least one user in every sample.",
        world="recommended lists, values of",
        study="ItemCoverage",
    ),
    Remark(
        "Every item is recommended to at least one user in every sample.", study="corrected_QF"
    ),
    Remark(
        "FSat counts the items on one side of a threshold: it is not smooth, and the bootstrap is "
        "slightly too narrow.",
        "interval",
        study="FSat",
    ),
    Remark(
        "Models of the same exposure differ by products of sampling errors, of which the "
        "bootstrap overestimates the variance: the test is conservative.",
        "test",
        study="AI-F",
    ),
    Remark(
        "An index of inequality is never below 0: the interval of equal groups is conservative.",
        "interval",
        "inequality of groups",
    ),
    *(
        Remark(
            "A test of inequality between groups is conservative for groups that do not differ.",
            "test",
            "calibration, diversity",
            f"nDCG: {index} by",
            "paired_bootstrap",
        )
        for index in ("atkinson", "cross_entropy")
    ),
    *(
        Remark(
            "The expected variance of the jackknife is never below that of the estimate: interval "
            "and test are conservative.",
            world="20 recommended lists",
            study=study,
            if_outside=True,
        )
        for study in ("Gini", "Entropy", "ItemCoverage")
    ),
    Remark(
        "A gap is never below 0, so the estimate is above 0 by chance for equal groups: use "
        "the test between the groups.",
        "interval",
        "recommended lists, no effect",
    ),
    Remark(
        "A test of a gap is conservative for groups that do not differ.",
        "test",
        "recommended lists",
        ": ",
        "paired_bootstrap",
    ),
    Remark(
        "The templates are the same in all samples; the interval accounts for sampling of "
        "templates.",
        "interval",
        "templates as units",
    ),
    Remark(
        "Paired sentences are correlated, which an unpaired test ignores: it is conservative.",
        study="perplexity_gap",
        figure="welch_t",
    ),
    Remark(PRODUCT, "test", "vectors", "EAA", "paired_bootstrap"),
    *(
        Remark(PRODUCT, "test", f"vectors{world}", f"R-RIPA, {direction}", "paired_bootstrap")
        for world, direction in (
            (", sampled users and items", "centroid"),
            (", sampled users and items", "svc"),
            (", sampled users and items", "csvc"),
            (", sampled users and items", "pca"),
            (", equal groups", "pca"),
            (" of generated data", "pca"),
        )
    ),
    Remark(
        "A direction estimated from 300 users is noisy, which biases the estimate downwards; "
        "the interval accounts for this and is conservative.",
        "interval",
        "vectors of generated data",
        "R-RIPA, centroid",
    ),
    *(
        Remark(
            "A direction estimated from 300 users is noisy; there is an interval where the "
            "directions of halves of the users agree.",
            "interval",
            "vectors of generated data",
            f"R-RIPA, {direction}",
        )
        for direction in ("svc", "csvc")
    ),
    *(
        Remark(
            "The interval has the largest possible width where another component may be the "
            "first: it is conservative.",
            "interval",
            world,
            "R-RIPA, pca",
        )
        for world in ("vectors, sampled users and items", "vectors of generated data")
    ),
    Remark(
        "The median p of several random samples is rarely small by chance: the test is "
        "conservative.",
        "test",
        study="direction_checks",
        figure="against random",
    ),
    Remark(
        "A random direction does not depend on the groups: p is 1.",
        "test",
        study="R-RIPA, random",
        figure="permutation of groups",
    ),
    Remark(
        "Every item belongs to Bars.", "interval", study="association of categories", figure="Bars"
    ),
    Remark(
        "Every item belongs to Bars, the first target.",
        "test",
        study="association of categories",
        figure="of models",
    ),
    *(
        Remark(
            "The 64 sign flips of six templates give p = 3.1% or 6.2%, never 5%.",
            "test",
            "templates as units",
            figure=test,
        )
        for test in ("permutation", "sign_flip")
    ),
    Remark(
        "The share of two labels is nearly 0 without an effect: the interval is conservative.",
        "interval",
        "templates, sums of squares, no effect",
        "variance_split, squares",
        "label",
    ),
    *(
        Remark("The interval is slightly conservative.", "interval", world, study, if_outside=True)
        for world, study in (
            ("prices of re-ranked lists", "nDCG for ItemCoverage"),
            ("calibration, diversity", "nDCG: cross_entropy by gender & age < 25"),
            ("vectors, fixed classifier", "attribute_classification"),
        )
    ),
    *(
        Remark(
            "The bootstrap of users and items overestimates the variance slightly.",
            "interval",
            "vectors, sampled users and items",
            study,
            exactly=True,
            if_outside=True,
        )
        for study in ("EAA", "DEAA", "R-RIPA, centroid", "R-RIPA, svc", "R-RIPA, csvc")
    ),
    Remark(
        "Few words and templates are sampled: interval and test are conservative.",
        world="templates of couples",
        if_outside=True,
    ),
    Remark(
        "Permuted names differ in few items of these categories: the test is conservative.",
        "test",
        "templates, sampled names",
        "association of categories",
        "permutation of groups",
    ),
    *(
        Remark(
            "Differences have few distinct values, as have p-values of sign flips: the test is "
            "conservative.",
            "test",
            world,
            study,
            "sign_flip of models",
        )
        for world, study in (
            ("recommended lists", "HR"),
            ("recommended lists", "HIT_BAD"),
            ("templates, race and gender", "mean_attribute"),
            ("vectors, fixed classifier", "attribute_classification"),
        )
    ),
    *(
        Remark("The test is conservative.", "test", world, study, figure, if_outside=True)
        for world, study, figure in (
            ("exposure in recommended lists", "exposure_gap", "of models"),
            ("exposure in recommended lists", "IAA", "paired_bootstrap"),
            ("exposure in recommended lists", "EXP", "paired_bootstrap"),
            ("responses, values of a sample", "distinct", "paired_bootstrap"),
            ("lists of 20 users", "homogenization", "paired_bootstrap"),
            ("vectors of generated data, equal groups", "R-RIPA", "paired_bootstrap"),
        )
    ),
    Remark(
        "By chance: coverage is 94.5% over 3,000 other seeds.",
        "interval",
        "rankings for reviews, no effect",
        "class_HR",
        if_outside=True,
    ),
    Remark(
        "The interval is slightly conservative.",
        "interval",
        "labels of two raters",
        "krippendorff_alpha",
        if_outside=True,
    ),
)
