"""Ratings of responses by three people who agree as often as planned."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tally import Measurements, Study, World
from text_studies import make_text_evidence

from recbias.core.evidence import Evidence, Responses
from recbias.formats.ratings import ResponseRatings, digest_response, write_ratings
from recbias.metrics.text import HumanAgreement, HumanRate, HumanScore

N_RESPONSES, N_RATERS = 150, 3
YES, NO = 1.2, 2.8
"""A response gets yes from each rater with a chance of its own, from a beta distribution."""

RATE = YES / (YES + NO)


def sample(seed: int, *, differ: bool = True, rival: bool = False) -> Evidence:
    """Responses with ratings in their labels; without differences all have the same chance."""
    rng = np.random.default_rng([seed, int(rival)])
    chance = rng.beta(YES, NO, N_RESPONSES) if differ else np.full(N_RESPONSES, RATE)
    ratings = (rng.random((N_RATERS, N_RESPONSES)) < chance).astype(np.float64)
    ids = np.array([f"r{index}" for index in range(N_RESPONSES)], dtype=object)
    labels = pd.DataFrame({f"rater{rater}": row for rater, row in enumerate(ratings)})
    return make_text_evidence(seed, responses=Responses(ids, ids, ids, labels))


def make_rating_study(metric: Callable[[Path], Any], name: str) -> Study:
    """A metric that reads the ratings from the file that people's sheets were imported to."""

    def measure(evidence: Evidence) -> Measurements:
        responses: Any = evidence.responses
        digests = [digest_response(text) for text in responses.texts]
        ratings = ResponseRatings(
            responses.ids,
            np.array(digests, dtype=object),
            (("model",),) * len(responses),
            tuple(responses.labels.columns),
            responses.labels.to_numpy().T,
        )
        with tempfile.TemporaryDirectory() as folder:
            path = write_ratings(Path(folder) / "ratings.jsonl", ratings, "biased")
            measurements: Measurements = metric(path).measure(evidence)
            return measurements

    return Study(name, measure)


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    """Alpha is 1 - D_o / D_e with D_o = 2 E[p (1 - p)] and D_e = 2 E[p] (1 - E[p]), which is
    Var[p] / (E[p] (1 - E[p])) = 1 / (a + b + 1) for a beta distribution."""
    return {"": 1 / (YES + NO + 1) if study.name == "human_agreement" else RATE}


def compute_null(study: Study, _seed: int) -> Mapping[str, float]:
    return {"": 0.0 if study.name == "human_agreement" else RATE}


STUDIES = (
    make_rating_study(lambda path: HumanRate(ratings=path), "human_rate"),
    make_rating_study(lambda path: HumanScore(ratings=path), "human_score"),
    make_rating_study(lambda path: HumanAgreement(ratings=path), "human_agreement"),
)

WORLDS = (
    World(
        "ratings by three people",
        "formula of the beta-binomial distribution",
        STUDIES,
        sample,
        compute_truths,
        lambda seed: (sample(seed), sample(seed, rival=True)),
        plants="the chance of a yes is from Beta(1.2, 2.8) for each response",
    ),
    World(
        "ratings by three people, by chance",
        "0 for the agreement, and the planted rate",
        STUDIES,
        lambda seed: sample(seed, differ=False),
        compute_null,
        plants="nothing: the chance of a yes is 0.3 for every response",
    ),
)
