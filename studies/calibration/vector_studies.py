"""Vectors of users and items whose groups and sets lie apart by a known shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from list_studies import get_values
from tally import Measurements, Study, World

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, FloatArray, Interactions, Queries, Vocabulary
from recbias.core.evidence import Embeddings, Evidence
from recbias.metrics.embeddings.association import DEAA, EAA, GEAA, LatentProjection, RRipa
from recbias.metrics.embeddings.classification import AttributeClassification
from recbias.metrics.embeddings.directions import (
    DirectionChecks,
    find_direction,
    split_in_halves,
    train_classifier,
)
from recbias.metrics.embeddings.sets import GroupPair, TargetPair, normalize_rows, select_sets

GENDER = GroupPair(of="users", attribute="gender", a="F", b="M")
GENRES = TargetPair(of="items", attribute="genres", e="Romance", p="Action")
DIRECTIONS = ("centroid", "svc", "csvc", "pca", "pca_centred", "random")
IN_EVERY_SAMPLE = ("centroid", "svc", "csvc", "pca")
"""Directions that all users there could be have as well. Vectors that spread alike all round have
no second component, and a random direction is another each time."""

D = 8
N_USERS, N_ITEMS = 100, 60
"""Of each group, and of each set."""

MANY, OTHERS = 10_000, 3_000
"""Of each, where they stand for all there could be: once, and for every seed."""

DRAWS, REFITS = 199, 39
TOP = 0.4
"""The share of each group that csvc learns from."""

TOP_N = round(TOP * N_USERS)


@dataclass(frozen=True)
class Space:
    """Standard normal vectors; groups lie ``users``, sets ``items`` to either side of the first
    axis."""

    users: float = 0.5
    items: float = 0.3
    n_users: int = N_USERS

    def sample(self, seed: int, *, rival: bool = False) -> Evidence:
        """Users and items of a seed; a rival has other vectors for them."""
        users = sample_vectors([seed, 1, int(rival)], self.n_users, self.users)
        items = sample_vectors([seed, 2, int(rival)], N_ITEMS, self.items)
        return make_evidence(users, items, seed)

    def sample_more_items(self, seed: int) -> Evidence:
        """The users of a seed, and very many other items."""
        users = sample_vectors([seed, 1, 0], N_USERS, self.users)
        return replace(make_evidence(users, self.sample_all_items(OTHERS), seed), n_bootstrap=2)

    def sample_all_items(self, n: int = MANY) -> FloatArray:
        return sample_vectors([10**6], n, self.items)

    def sample_all_users(self) -> FloatArray:
        return sample_vectors([10**7], MANY, self.users)


def sample_vectors(seed: list[int], n: int, shift: float) -> FloatArray:
    """``n`` vectors on either side, ``float64 (2 n, d)``."""
    vectors = np.random.default_rng(seed).standard_normal((2 * n, D))
    vectors[:n, 0] += shift
    vectors[n:, 0] -= shift
    return vectors


def make_evidence(users: FloatArray, items: FloatArray, seed: int) -> Evidence:
    n, m = len(users) // 2, len(items) // 2
    user_ids, item_ids = (number_ids(size) for size in (2 * n, 2 * m))
    of_users = pd.DataFrame({"gender": ["F"] * n + ["M"] * n})
    of_items = pd.DataFrame({"genres": ["Romance"] * m + ["Action"] * m})
    no_queries = Vocabulary.of([])
    nothing = Attributes(no_queries, pd.DataFrame(index=range(0)), "query")
    embeddings = Embeddings(users.astype(np.float32), items.astype(np.float32))
    return Evidence(
        queries=Queries(no_queries, nothing, np.empty(0, dtype=np.int32)),
        item_ids=item_ids,
        train=sample_histories(user_ids, item_ids, seed),
        users=Attributes(user_ids, of_users, "user"),
        items=Attributes(item_ids, of_items, "item"),
        embeddings=embeddings,
        bootstrap_seed=seed,
        n_bootstrap=400,
        metric="calibration",
    )


def sample_histories(users: Vocabulary, items: Vocabulary, seed: int) -> Interactions:
    """Five items of each user, at random."""
    user_codes = np.repeat(np.arange(len(users), dtype=np.int32), 5)
    rng = np.random.default_rng([seed, 3])
    item_codes = rng.integers(0, len(items), user_codes.size, dtype=np.int32)
    return Interactions(
        user_codes, item_codes, np.ones(user_codes.size, dtype=np.float32), None, users, items
    )


def number_ids(n: int) -> Vocabulary:
    return Vocabulary(np.arange(n).astype(str).astype(object))


def make_permutation_study(metric: Any, name: str, only: tuple[str, ...] = ()) -> Study:
    """A metric with few permutations, and as good as none over very many items."""

    def measure(evidence: Evidence) -> Measurements:
        draws = 1 if is_all(evidence) else DRAWS
        measurements: Measurements = replace(metric, permutations=draws).measure(evidence)
        return measurements

    return Study(name, measure, only)


def is_all(evidence: Evidence) -> bool:
    """Whether it stands for all there could be."""
    return len(evidence.item_ids) > 1000


def make_r_ripa_study(direction: Any) -> Study:
    """R-RIPA along a direction; ``csvc`` learns from the same share of every group."""

    def measure(evidence: Evidence) -> Measurements:
        users: Any = evidence.users
        refits, draws = (9, 1) if is_all(evidence) else (REFITS, DRAWS)
        metric = RRipa(
            groups=GENDER,
            targets=GENRES,
            direction_=direction,
            top_n=round(TOP * len(users.ids) / 2),
            permutations=draws,
            refits=refits,
        )
        with collect_warnings():  # of directions without an interval, which the table counts
            measurements: Measurements = metric.measure(evidence)
        return measurements

    return Study(f"R-RIPA, {direction}", measure)


SETS = ("genres=Romance", "genres=Action")
OF_EAA = make_permutation_study(EAA(groups=GENDER, targets=GENRES), "EAA")
SPREADS = (
    OF_EAA,
    make_permutation_study(GEAA(groups=GENDER, targets=GENRES), "GEAA", SETS),
    make_permutation_study(DEAA(groups=GENDER, targets=GENRES), "DEAA"),
)
R_RIPA = tuple(map(make_r_ripa_study, DIRECTIONS))
FOUND_AGAIN = tuple(study for study in R_RIPA if study.name.split(", ")[1] in IN_EVERY_SAMPLE)
RANDOM = R_RIPA[DIRECTIONS.index("random")]
PROJECTION = Study(
    "latent_projection",
    LatentProjection(groups=GENDER, targets=GENRES).measure,
    tuple(
        f"genres={genre} PC{component}" for genre in ("Romance", "Action") for component in (1, 2)
    ),
)
CHECKS = tuple(
    Study(
        f"direction_checks, {direction}",
        DirectionChecks(
            groups=GENDER, directions=(direction,), top_n=TOP_N // 2, repeats=11
        ).measure,  # type: ignore[arg-type]
    )
    for direction in DIRECTIONS
)
CLASSIFIED = tuple(
    Study(
        f"attribute_classification, {direction}",
        AttributeClassification(
            groups=GENDER, targets=GENRES, direction_=direction, top_n=TOP_N
        ).measure,  # type: ignore[arg-type]
    )
    for direction in ("svc", "csvc")
)

APART = "groups of users lie 0.5, sets of items 0.3, to either side of the origin"
SETS_DIFFER = {"permutation of targets": "The two sets of items have one distribution."}
"""What the null hypothesis of this test says, and is not so where the sets differ."""

PLANTED = Space()
NOTHING = Space(users=0.0, items=0.0)
MIRRORED = Space(n_users=3_000)
SETS_APART = Space(users=0.0, items=0.3)


def measure_these_users(study: Study, seed: int, space: Space = PLANTED) -> Mapping[str, float]:
    """The figure of very many items, the users being as they are."""
    return get_values(study.measure(space.sample_more_items(seed)))


def measure_everything(study: Study, _seed: int) -> Mapping[str, float]:
    """The figure of very many users and items; sums are of as many items as a sample has."""
    everything = make_evidence(PLANTED.sample_all_users(), PLANTED.sample_all_items(), 10**6)
    return scale_sums(study, study.measure(replace(everything, n_bootstrap=2)))


def scale_sums(study: Study, measurements: Measurements) -> Mapping[str, float]:
    values = get_values(measurements)
    if study.name not in {"GEAA", "DEAA"}:
        return values
    sums = (name for name in values if not name.startswith("mean of"))
    return {**values, **{name: values[name] * N_ITEMS / MANY for name in sums}}


def project_items(_study: Study, seed: int) -> Mapping[str, float]:
    """How far very many items lie along the random direction of a seed."""
    evidence = PLANTED.sample(seed)
    groups = select_sets(evidence, GENDER)
    axis = find_direction("random", groups, evidence)
    cosines = normalize_rows(PLANTED.sample_all_items()) @ axis
    e, p = float(cosines[:MANY].mean()), float(cosines[MANY:].mean())
    return {"": e - p, SETS[0]: e, SETS[1]: p}


def project_users(study: Study, seed: int) -> Mapping[str, float]:
    """The mean cosines of very many users with the direction of half of those of the seed."""
    evidence = PLANTED.sample(seed)
    choice: Any = study.name.split(", ")[1]
    first_half, _ = split_in_halves(select_sets(evidence, GENDER), evidence)
    axis = find_direction(choice, first_half, evidence, top_n=TOP_N // 2)
    cosines = normalize_rows(PLANTED.sample_all_users()) @ axis
    a, b = float(cosines[:MANY].mean()), float(cosines[MANY:].mean())
    return {choice: a - b, f"gender=F {choice}": a, f"gender=M {choice}": b}


def classify_everything(study: Study, seed: int) -> Mapping[str, float]:
    """What the classifier that the users of the seed give says of very many users and items."""
    evidence = PLANTED.sample(seed)
    a, b = (entity_set.vectors for entity_set in select_sets(evidence, GENDER))
    top_n = TOP_N if study.name.endswith("csvc") else None
    says_a = train_classifier(a, b, rng=evidence.rng(), top_n=top_n).separator.predict_a
    of_users, of_items = says_a(PLANTED.sample_all_users()), says_a(PLANTED.sample_all_items())
    right_a, right_b = float(of_users[:MANY].mean()), float(1 - of_users[MANY:].mean())
    truths = {
        "accuracy": (right_a + right_b) / 2,
        "gender=F accuracy": right_a,
        "gender=M accuracy": right_b,
    }
    hit_e, false_e = float(of_items[:MANY].mean()), float(of_items[MANY:].mean())
    for group, genre, hit, false in (
        ("F", "Romance", hit_e, false_e),
        ("M", "Action", 1 - false_e, 1 - hit_e),
    ):
        truths[f"gender={group} recall of genres={genre}"] = hit
        truths[f"gender={group} precision of genres={genre}"] = hit / (hit + false)
        truths[f"gender={group} F1 of genres={genre}"] = 2 * hit / (hit + false + 1)
    return truths


WORLDS = (
    World(
        "vectors, sampled users and items",
        f"the value of {MANY:,} other users per group and items per set",
        (*SPREADS, *FOUND_AGAIN),
        PLANTED.sample,
        measure_everything,
        plants=APART,
    ),
    World(
        "vectors, sampled users and items, no effect",
        "",
        (*SPREADS, *R_RIPA),
        null=lambda seed: (NOTHING.sample(seed), NOTHING.sample(seed, rival=True)),
        plants="nothing: one distribution",
    ),
    World(
        "vectors, fixed random direction",
        f"the value of {MANY:,} other items per set",
        (RANDOM,),
        PLANTED.sample,
        project_items,
        shares_truth=False,
        plants=APART,
    ),
    World(
        "vectors, fixed users",
        f"the value of {OTHERS:,} other items per set",
        (PROJECTION,),
        PLANTED.sample,
        measure_these_users,
        shares_truth=False,
        plants=APART,
    ),
    World(
        "vectors, fixed users, no effect",
        f"the value of {OTHERS:,} other items per set",
        (PROJECTION,),
        NOTHING.sample,
        lambda study, seed: measure_these_users(study, seed, NOTHING),
        shares_truth=False,
        plants="nothing: one distribution",
    ),
    World(
        "vectors, fixed direction",
        f"the mean of {MANY:,} other users per group",
        CHECKS,
        PLANTED.sample,
        project_users,
        lambda seed: (NOTHING.sample(seed), NOTHING.sample(seed, rival=True)),
        shares_truth=False,
        plants=APART,
    ),
    World(
        "vectors, fixed classifier",
        f"the share of {MANY:,} other users per group and items per set",
        CLASSIFIED,
        PLANTED.sample,
        classify_everything,
        lambda seed: (NOTHING.sample(seed), NOTHING.sample(seed, rival=True)),
        shares_truth=False,
        plants=APART,
        detects={"rank_sum of targets": "This classifier is right for as many items of each set."},
    ),
    World(
        "vectors, classifier of many users",
        "",
        CLASSIFIED[:1],  # csvc learns from few members, however many there are
        null=lambda seed: (MIRRORED.sample(seed), MIRRORED.sample(seed, rival=True)),
        plants=f"{APART}: the classifier is as often right for both sets",
    ),
    World(
        "vectors, equal groups and different sets",
        "",
        (*SPREADS, *R_RIPA),
        null=lambda seed: (SETS_APART.sample(seed), SETS_APART.sample(seed, rival=True)),
        plants="nothing between the groups of users",
        detects=SETS_DIFFER,
    ),
)
