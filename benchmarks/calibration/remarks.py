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


ABOUT = """# Do intervals and tests keep their promise?

A 95% interval should hold the truth in 95 of 100 samples, and where nothing is planted a test at
the level of 5% should be significant in 5 of 100. Here every metric is measured in worlds in
which the truth is known, {seeds} times, with other users, names, items or sentences each time:

    python benchmarks/calibration/run.py --write

The lists, users and items are those of the [demo world](plugins/datasets/demo.md), with the same
items each time; vectors, labels, template lists, perplexities and texts are drawn from
distributions that `benchmarks/calibration` states. **Planted** is the truth: by a formula where
one can be written down, otherwise the figure of a very large sample of the same population. It is
a range where the truth belongs to each sample, as where the users are taken as they are. A figure
of the name `a - b (test)` is the difference that a test gives, with the test's interval.

With {seeds} samples, {share} of well calibrated rows lie within {intervals} (intervals) and
{tests} (tests). Rows outside are marked, ▼ below and ▲ above: {outside} of {rows}, where about
{by_chance} would be by chance; the remark beside a row says why. A
test below its band or an interval above it errs on the safe side. `75.0% of 150` is a row of which
only 150 samples have an interval. p is not corrected here. Permutation tests draw 199
relabellings; the directions of R-RIPA, but for `centroid`, are found again on 39.
`direction_similarity`, `top_words` and the deciles and favourites of `attribute_classification`
describe, and are not in the tables; `components` of `variance_split` and gaps of more than two
groups have no interval.
"""

INTERVALS = "## Intervals"
INSIDE = """
## Tests inside one model

With nothing planted. Several tests a sample (of every two groups, say) count by their share."""
BETWEEN = """
## Comparisons of two models

With nothing planted: two models that are as good, as biased and as varied as each other, compared
as a run compares them."""

PRODUCT = (
    "Where groups do not differ the figure is a product of errors, and samples of it spread more "
    "than it does: it errs on the safe side."
)

REMARKS = (
    Remark(
        "Popularity is counted in the sample, and the interval takes it for certain: it is one "
        "of these users' training data, not of all users'.",
        "interval",
        study="popularity counted",
    ),
    Remark(
        "Fewer lists are spread less evenly by chance alone: compare figures of equally many.",
        "interval",
        "recommended lists, figures of everybody",
    ),
    Remark(
        "Every item is recommended to someone, in every sample.",
        world="recommended lists, figures of",
        study="ItemCoverage",
    ),
    Remark("20 lists are few for a bootstrap.", "test", "20 recommended lists"),
    Remark(
        "20 lists are few for a bootstrap, which errs on the safe side here: it is 98.0% of 400 "
        "other seeds.",
        "interval",
        "20 recommended lists",
        "Entropy",
    ),
    Remark(
        "A gap is never below 0, so that groups that do not differ lie above it by chance: read "
        "the test between them.",
        "interval",
        "recommended lists, nothing planted",
    ),
    Remark(
        "A test of a gap is conservative where groups do not differ.",
        "test",
        "recommended lists",
        ": ",
        "paired_bootstrap",
    ),
    Remark(
        "The templates are the same each time; the interval allows for others.",
        "interval",
        "templates as units",
    ),
    Remark(
        "Pairs are alike, which a test of separate sets does not know: it errs on the safe side.",
        study="perplexity_gap",
        figure="welch_t",
    ),
    Remark(PRODUCT, "test", "vectors", "EAA", "paired_bootstrap"),
    *(
        Remark(PRODUCT, "test", f"vectors{world}", f"R-RIPA, {each}", "paired_bootstrap")
        for world, each in (
            (", users and items", "centroid"),
            (", users and items", "svc"),
            (", users and items", "csvc"),
            (", users and items", "pca"),
            (", groups alike", "pca"),
            (" of the demo world", "pca"),
        )
    ),
    Remark(
        "Each model turns the random direction to its own users, which is chance where groups are "
        "alike; the sets do lie apart along it.",
        "test",
        "vectors, groups alike",
        "R-RIPA, random",
        "paired_bootstrap",
    ),
    Remark(
        "The direction of 300 users is partly chance, which makes the figure too small; the "
        "interval allows for that, and errs on the safe side.",
        "interval",
        "vectors of the demo world",
        "R-RIPA, centroid",
    ),
    *(
        Remark(
            "The direction of 300 users is partly chance, which makes the figure too small; only "
            "the interval of centroid allows for that.",
            "interval",
            "vectors of the demo world",
            f"R-RIPA, {each}",
        )
        for each in ("svc", "csvc")
    ),
    Remark(
        "The first two components are nearly as large: which one a sample has, and which way it "
        "is turned, is partly chance.",
        "interval",
        "vectors of the demo world",
        "R-RIPA, pca",
    ),
    Remark(
        "The median p of several draws is seldom small by chance: it errs on the safe side.",
        "test",
        study="direction_checks",
        figure="against random",
    ),
    Remark(
        "A random direction is the same for all groups: its p is 1.",
        "test",
        study="R-RIPA, random",
        figure="permutation of groups",
    ),
    Remark("Every item is in Bars.", "interval", study="association of categories", figure="Bars"),
    Remark(
        "Every item is in Bars, the first figure.",
        "test",
        study="association of categories",
        figure="of models",
    ),
    *(
        Remark(
            "Of the 64 signings of six templates p is 3.1% or 6.2%, and no 5%.",
            "test",
            "templates as units",
            figure=each,
        )
        for each in ("permutation", "sign_flip")
    ),
    Remark(
        "Twelve names of each race and six fixed templates: few for the spread of a variance.",
        "interval",
        "templates, sums",
    ),
    Remark(
        "Sets that do differ lie apart along most directions: this test asks for that, not for "
        "the groups. The test of groups does.",
        "test",
        "vectors, groups alike",
        figure="permutation of targets",
    ),
    Remark(
        "Films of two genres do differ, and lie apart along most directions.",
        "test",
        "vectors of the demo world",
        figure="permutation of targets",
    ),
    Remark(
        "By chance: it is 95.2% of 400 other seeds.",
        "interval",
        "recommended lists",
        "herfindahl_difference",
        exactly=True,
    ),
    Remark(
        "By chance: it is 95.5% of 400 other seeds.",
        "interval",
        "vectors, the classifier",
        "attribute_classification, svc",
        "M precision",
    ),
    Remark(
        "By chance: it is 4.7% of 600 other seeds.",
        "test",
        "vectors, groups alike",
        "DEAA",
        "permutation of groups",
    ),
    Remark(
        "Directions lie where the vectors of users vary most or least, in five of six dimensions: "
        "read the test between the groups.",
        "test",
        "vectors of the demo world",
        figure="random_direction",
    ),
)
