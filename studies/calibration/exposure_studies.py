"""Exposure of items and of genres in lists for the users of the dataset demo."""

from __future__ import annotations

from list_studies import (
    MODEL,
    RECOMMENDED,
    SAMPLES,
    UNBIASED,
    average_samples,
    make_pair_sampler,
    measure_everybody,
)
from population import MANY
from tally import Study, World

from recbias.metrics.exposure import (
    AWRF,
    AmortizedAttention,
    AttentionRatio,
    ClicksToRelevance,
    ExpectedExposureDisparity,
    ExpectedExposureLoss,
    ExpectedExposureRelevance,
    ExposureGap,
    ExposureParity,
    ExposureToRelevance,
    ProviderGap,
    ProviderGini,
)

GENRES = "genres"

OF_USERS = (
    Study("EE-R", ExpectedExposureRelevance().measure),
    Study("EE-L", ExpectedExposureLoss().measure),
    Study("EE-D of genres", ExpectedExposureDisparity(attribute=GENRES).measure),
    Study("EE-R of genres", ExpectedExposureRelevance(attribute=GENRES).measure),
    Study("EE-L of genres", ExpectedExposureLoss(attribute=GENRES).measure),
    Study("AWRF", AWRF(attribute=GENRES).measure),
    Study("AWRF, target relevant", AWRF(attribute=GENRES, target="relevant").measure),
    Study("exposure_gap", ExposureGap(attribute=GENRES, only=("Romance",)).measure),
)
OF_ALL_LISTS = (
    Study("AWRF-min-max", AttentionRatio(attribute=GENRES).measure),
    Study("EXP", ExposureParity(attribute=GENRES).measure),
    Study("EXPU", ExposureToRelevance(attribute=GENRES).measure),
    Study("EXPRU", ClicksToRelevance(attribute=GENRES).measure),
    Study("provider_gap", ProviderGap(attribute=GENRES).measure),
    Study("provider_gini", ProviderGini(attribute=GENRES).measure),
)
OF_SAMPLE = (Study("IAA", AmortizedAttention().measure), *OF_ALL_LISTS)
"""Sums of absolute values and the smallest of several ratios depend on the number of lists."""

WORLDS = (
    World(
        "exposure in recommended lists",
        f"the value of {MANY:,} other users",
        (*OF_USERS, *OF_ALL_LISTS),
        RECOMMENDED.sample,
        measure_everybody,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "exposure in recommended lists, values of a sample",
        f"the mean of {SAMPLES} other samples",
        OF_SAMPLE,
        RECOMMENDED.sample,
        average_samples,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
)
