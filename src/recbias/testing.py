"""Checks of the contract of a plug-in, of each kind, for tests in this package and in others.

::

    from recbias.testing import check_recommender

    def test_my_model_meets_the_contract() -> None:
        check_recommender(MyModel(neighbors=5))

Every check returns None if the plug-in meets the contract of its kind, else raises BrokenContract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings
from recbias.core.dataset import (
    AnyArray,
    Attributes,
    Dataset,
    FloatArray,
    Interactions,
    Odds,
    Reviews,
    TrainingData,
    Vocabulary,
)
from recbias.core.docstrings import read_section, read_summary
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.evidence import (
    Embeddings,
    Evidence,
    Impressions,
    Policy,
    Predictions,
    RankedLists,
    Responses,
    SentenceScores,
    check_lists,
)
from recbias.core.measures import PAIR_COLUMNS, Direction, Measurement, read_bounds
from recbias.core.plugins import (
    NAMES,
    DatasetSource,
    Detector,
    FittedRecommender,
    HasBounds,
    HasEmbeddings,
    Metric,
    NeedsByParameters,
    Recommender,
    Restores,
    Storable,
)
from recbias.core.queries import SAMPLE, Queries
from recbias.statistics.paired import PairedTest


def refuse(violated: object, name: str, violation: str) -> None:
    """Raise BrokenContract with the name of the plug-in if a rule is violated."""
    if violated:
        raise BrokenContract(f"{name} {violation}")


def check_dataclass(plugin: object, declared: Sequence[str], name: str) -> None:
    """Check that a plug-in is a frozen, documented dataclass with the attributes of its kind."""
    refuse(not is_dataclass(plugin), name, "is not a dataclass")
    try:
        hash(plugin)
    except TypeError as error:
        raise BrokenContract(f"{name} is no frozen dataclass of plain fields") from error
    refuse(not read_summary(type(plugin)), name, "has no docstring")
    for attribute in declared:
        refuse(not hasattr(plugin, attribute), name, f"does not declare {attribute}")


@collect_warnings()
def check_dataset(source: DatasetSource, *, data: Path | None = None) -> None:
    """Check that a dataset meets the contract of its kind.

    It is a documented frozen dataclass; its files exist; it has the parts that ``gives`` declares
    and no other; codes lie within the vocabularies and attributes are aligned to them; with the
    same generator it loads the same interactions.

    Args:
        source: The dataset with its settings.
        data: The folder of datasets, by default the current one.

    Raises:
        BrokenContract: It violates a rule.
        MissingFile: It lacks a file.

    Example:
        check_dataset(MyDataset(path=Path("purchases.csv")))
    """
    name = type(source).__name__
    folder = data or Path()
    check_dataclass(source, ("gives", "files", "load"), name)
    parts = source.gives()
    allowed = NAMES["datasets", "gives"]
    refuse(set(parts) - allowed, name, f"gives other parts than {sorted(allowed)}")
    for path in source.files(folder):
        refuse(not path.is_file(), name, f"lists the file {path}, which does not exist")
    dataset = source.load(folder, np.random.default_rng(0))
    _check_parts(dataset, parts, name)
    _check_interactions(dataset.interactions, name)
    _check_attributes(dataset.users, dataset.user_ids, name, "users")
    _check_attributes(dataset.items, dataset.item_ids, name, "items")
    _check_reviews(dataset.reviews, dataset, name)
    reloaded = source.load(folder, np.random.default_rng(0)).interactions
    same = _are_equal(dataset.interactions, reloaded)
    refuse(not same, name, "loads other rows the second time")


def _check_parts(dataset: Dataset, parts: frozenset[str], name: str) -> None:
    present = {
        "train": len(dataset.interactions) > 0,
        "users": dataset.users is not None,
        "items": dataset.items is not None,
        "reviews": dataset.reviews is not None,
        "sentences": dataset.sentences is not None,
    }
    for part, is_present in present.items():
        refuse(part in parts and not is_present, name, f"gives {part} but does not load them")
        refuse(part not in parts and is_present, name, f"loads {part} but does not give them")


def _check_interactions(rows: Interactions, name: str) -> None:
    _check_codes(rows.users, rows.n_users, name, "users")
    _check_codes(rows.items, rows.n_items, name, "items")
    times = rows.values if rows.times is None else rows.times
    sizes = {array.size for array in (rows.users, rows.items, rows.values, times)}
    refuse(len(sizes) > 1, name, "has interaction columns of different lengths")
    refuse(rows.values.dtype != np.float32, name, f"has values of type {rows.values.dtype}")
    for ids, kind in ((rows.user_ids, "user"), (rows.item_ids, "item")):
        names = ids.ids.tolist()
        refuse(len(set(names)) < len(names), name, f"has a {kind} identifier twice")
        is_text = all(isinstance(identifier, str) for identifier in names)
        refuse(not is_text, name, f"has a {kind} identifier that is not text")


def _check_codes(codes: AnyArray, n: int, name: str, kind: str) -> None:
    refuse(codes.dtype != np.int32, name, f"has codes of {kind} of type {codes.dtype}, not int32")
    outside = codes.size and (codes.min() < 0 or codes.max() >= n)
    refuse(outside, name, f"has codes of {kind} outside 0 to {n - 1}")


def _check_attributes(table: Attributes | None, ids: Vocabulary, name: str, kind: str) -> None:
    if table is not None:
        aligned = table.ids.digest == ids.digest and len(table.frame) == len(ids)
        refuse(not aligned, name, f"has attributes of {kind} that are not aligned to the {kind}")


def _check_reviews(reviews: Reviews | None, dataset: Dataset, name: str) -> None:
    if reviews is not None:
        _check_codes(reviews.users, len(dataset.user_ids), name, "reviewers")
        _check_codes(reviews.items, len(dataset.item_ids), name, "reviewed items")
        sizes = {reviews.users.size, reviews.items.size, reviews.texts.size}
        refuse(len(sizes) > 1, name, "has review columns of different lengths")


def _are_equal(rows: Interactions, reloaded: Interactions) -> bool:
    names = ("users", "items", "values")
    same = all(np.array_equal(getattr(rows, name), getattr(reloaded, name)) for name in names)
    ids, reloaded_ids = ((part.user_ids, part.item_ids) for part in (rows, reloaded))
    return same and [part.digest for part in ids] == [part.digest for part in reloaded_ids]


K, N_USERS, N_ITEMS, N_SEEN = 6, 40, 24, 8
"""The length of the lists, and the users, items, and items of each user of the checkerboard."""

N_TEMPLATES, N_REVIEWS = 3, 30
"""The numbers of templates of the random evidence (of queries of one name), and of reviews."""


def make_checkerboard() -> TrainingData:
    """Return training data in which users interact only with items of their own colour.

    Users and items with an even code are white, the others black. A user has 8 of the 12 items of
    the same colour, so a recommender that learns ranks the other 4 first. All items are about
    equally popular. The last user and the last item have no interaction.
    """
    rng = np.random.default_rng(1)
    order = np.argsort(rng.random((N_USERS, N_ITEMS // 2)), axis=1)[:, :N_SEEN]
    users = np.repeat(np.arange(N_USERS), N_SEEN)
    items = 2 * order.ravel() + users % 2
    rows = Interactions(
        users.astype(np.int32),
        items.astype(np.int32),
        rng.integers(3, 6, users.size).astype(np.float32),
        rng.integers(10**9, 2 * 10**9, users.size),
        _make_ids("user", N_USERS + 1),
        _make_ids("item", N_ITEMS + 1),
    )
    colours = pd.DataFrame({"colour": [["white", "black"][n % 2] for n in range(N_USERS + 1)]})
    columns = {
        "genres": ["a|b" if item % 3 else "c" for item in range(N_ITEMS + 1)],
        "price": rng.integers(1, 5, N_ITEMS + 1).astype(np.float64),
        "flag": (np.arange(N_ITEMS + 1) % 3 == 0).astype(np.float64),
    }
    user_table = Attributes(rows.user_ids, colours, "user")
    item_table = Attributes(rows.item_ids, pd.DataFrame(columns), "item")
    return TrainingData(rows, users=user_table, items=item_table)


def query_all_users(data: TrainingData) -> Queries:
    """Return a query for each user of the data, and as the last one a query that is no user."""
    users = data.train.user_ids.ids
    ids = Vocabulary(np.append(users, np.array(["nobody"], dtype=object)))
    labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(ids, labels, np.append(np.arange(users.size), -1).astype(np.int32))


def make_random_evidence() -> Evidence:
    """Return random evidence of every kind for the users of the checkerboard.

    One list is empty and one is short. The queries have the labels ``colour``, ``name`` and
    ``template``: a name has one colour, and occurs with each template once. ``sample`` is 1 for
    the second name, and 0 otherwise.
    """
    data, rng = make_checkerboard(), np.random.default_rng(3)
    queries = query_all_users(data)
    scores = rng.random((len(queries), N_ITEMS + 1))
    scores[:-1] -= 2 * (data.train.binary.toarray() > 0)
    scores[:, ~data.candidates] = -2
    items = np.argsort(-scores, axis=1)[:, :K].astype(np.int32)
    items[0], items[1, 2:] = -1, -1
    ranks = np.where(items >= 0, -np.arange(K), np.nan).astype(np.float32)
    return Evidence(
        replace(queries, labels=_make_labels(queries)),
        data.train.item_ids,
        lists=RankedLists(items, ranks),
        relevant=_sample_relevant(data, rng),
        train=data.train,
        items=data.items,
        users=data.users,
        embeddings=Embeddings(
            *(rng.normal(size=(n + 1, 4)).astype(np.float32) for n in (N_USERS, N_ITEMS))
        ),
        sentence_scores=_sample_sentences(rng),
        responses=_make_responses(),
        predictions=_sample_predictions(data, rng),
        candidates=data.candidates,
        odds=_sample_odds(),
        policy=_sample_policy(),
        shown=Policy.of_shown(),
        log=_SampleLog(),
        n_bootstrap=50,
    )


def _make_ids(kind: str, n: int) -> Vocabulary:
    return Vocabulary(np.array([f"{kind} {code}" for code in range(n)], dtype=object))


def _make_labels(queries: Queries) -> Attributes:
    rows = range(len(queries))
    names = [row // N_TEMPLATES for row in rows]
    columns = {
        "colour": [["white", "black"][name % 2] for name in names],
        "name": [f"name {name}" for name in names],
        "template": [f"template {row % N_TEMPLATES}" for row in rows],
        SAMPLE: [float(name == 1) for name in names],
    }
    return Attributes(queries.ids, pd.DataFrame(columns), "query")


def _sample_sentences(rng: np.random.Generator) -> SentenceScores:
    """Return 12 pairs of sentences; the last pair lacks a sentence."""
    n = 23
    ids = _make_ids("sentence", n).ids
    pairs = np.array([f"pair {row // 2}" for row in range(n)], dtype=object)
    groups = np.array([["T1", "T2"][row % 2] for row in range(n)], dtype=object)
    return SentenceScores(ids, pairs, groups, 10.0 + 5.0 * rng.random(n))


def _sample_policy() -> Policy:
    """Return a policy that shows the first three items at both positions."""
    items, positions = np.tile(np.arange(3, dtype=np.int32), 2), np.repeat([1, 2], 3)
    none, probabilities = np.zeros(6, dtype=np.int32), np.tile([0.5, 0.3, 0.2], 2)
    group_of = np.zeros(N_USERS, dtype=np.int32)
    return Policy(items, positions.astype(np.int32), none, probabilities, group_of)


class _SampleLog:
    """A log of two requests of two items for each user, in two variants."""

    has_positions = has_propensities = True

    def read_blocks(self) -> Iterator[Impressions]:
        """Yield the rows."""
        rng, n = np.random.default_rng(5), 4 * N_USERS
        yield Impressions(
            users=np.repeat(np.arange(N_USERS, dtype=np.int32), 4),
            requests=np.repeat(np.arange(2 * N_USERS), 2),
            items=rng.integers(4, size=n).astype(np.int32),
            positions=np.tile(np.array([1, 2], dtype=np.int32), 2 * N_USERS),
            rewards=rng.integers(2, size=n).astype(np.float64),
            propensities=np.full(n, 0.25),
            variants=np.tile(np.array(["a", "a", "b", "b"], dtype=object), N_USERS),
        )

    read_lists = read_blocks


def _sample_odds() -> Odds:
    """Return the log-odds of the items for white and black users."""
    rng = np.random.default_rng(4)
    return Odds(rng.standard_normal((2, N_ITEMS + 1)), np.arange(N_USERS + 1) % 2)


def _make_responses() -> Responses:
    texts = ["a cat sat on the mat", "a dog", "", "the mat sat on a cat and a dog"]
    references = ["the cat sat on the mat", "a dog ran", "nothing", "a dog sat on the mat"]
    ids = _make_ids("prompt", len(texts)).ids
    return Responses(ids, np.array(texts, dtype=object), np.array(references, dtype=object))


def _sample_predictions(data: TrainingData, rng: np.random.Generator) -> Predictions:
    """Return all candidates in random order for each review; one reviews another item."""
    codes = np.flatnonzero(data.candidates).astype(np.int32)
    items = rng.choice(codes, N_REVIEWS)
    items[0] = N_ITEMS
    ranked = rng.permuted(np.tile(codes, (N_REVIEWS, 1)), axis=1)
    return Predictions(_make_ids("review", N_REVIEWS).ids, items, ranked)


def _sample_relevant(data: TrainingData, rng: np.random.Generator) -> Any:
    """Return test items of each query that are not training items; the last query has none."""
    from scipy.sparse import csr_array

    relevant = (rng.random((N_USERS + 2, N_ITEMS + 1)) < 0.2).astype(np.float32)
    relevant[:-1][data.train.binary.toarray() > 0] = 0
    relevant[-1] = 0
    return csr_array(relevant)


@collect_warnings()
def check_detector(detector: Detector, *, items: Attributes | None = None) -> None:
    """Check that a detector meets the contract of its kind.

    It is a documented frozen dataclass; it returns a column for each of its kinds, and besides
    them only graded columns ``KIND_score``; labels are 0, 1 or NaN; with the same generator it
    returns the same labels, and the order of the items does not matter.

    Args:
        detector: The detector with its settings.
        items: The items to label, by default those of ``make_checkerboard()``, with the columns
            ``genres``, ``price`` and ``flag``.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_detector(MyDetector(column="price"))
    """
    name = type(detector).__name__
    check_dataclass(detector, ("libraries", "kinds", "label"), name)
    kinds = detector.kinds
    refuse(not kinds or len(set(kinds)) < len(kinds), name, "has no kinds, or one of them twice")
    table = make_checkerboard().items if items is None else items
    refuse(table is None, name, "has no items to label")
    if table is None:
        return
    columns = dict(detector.label(table, np.random.default_rng(0)))
    for kind in kinds:
        refuse(kind not in columns, name, f"returns no column {kind}")
    for column, values in columns.items():
        _check_column(column, values, len(table.ids), kinds, name)
    again = dict(detector.label(table, np.random.default_rng(0)))
    refuse(not _are_same_labels(columns, again), name, "returns other labels the second time")
    order = np.arange(len(table.ids))[::-1]
    reverse = detector.label(table.take(order, table.ids.take(order)), np.random.default_rng(0))
    restored = {column: values[order] for column, values in reverse.items()}
    refuse(not _are_same_labels(columns, restored), name, "depends on the order of the items")


def _check_column(
    column: str, values: FloatArray, n_items: int, kinds: tuple[str, ...], name: str
) -> None:
    graded = column.endswith("_score") and column.removesuffix("_score") in kinds
    refuse(column not in kinds and not graded, name, f"returns the column {column} of no kind")
    shape = f"{values.dtype}{list(values.shape)}"
    refuse(shape != f"float64[{n_items}]", name, f"returns {column} as {shape}")
    invalid = ~np.isnan(values) & (values != 0) & (values != 1)
    refuse(not graded and invalid.any(), name, f"returns labels {column} other than 0, 1 and NaN")


def _are_same_labels(columns: dict[str, FloatArray], repeated: dict[str, FloatArray]) -> bool:
    return columns.keys() == repeated.keys() and all(
        np.array_equal(values, repeated[column], equal_nan=True)
        for column, values in columns.items()
    )


Measurements = Sequence[Measurement]


@collect_warnings()
def check_metric(metric: Metric, *, evidence: Evidence | None = None) -> None:
    """Check that a metric meets the contract of its kind.

    It is a documented frozen dataclass with ``needs``, ``direction`` and ``unit``. It returns the
    same values each time and for any order of the queries and reviews; its values lie within the
    ``Range:`` of its docstring, if there is one; a value is the mean of its per-unit scores, and
    counts them; without queries or reviews it is NaN, not 0; without the evidence that the metric
    needs it raises MissingEvidence.

    Args:
        metric: The metric with its settings.
        evidence: What it is computed on, by default ``make_random_evidence()``.

    Raises:
        BrokenContract: It violates a rule.
        MissingEvidence: ``evidence`` lacks what it needs.

    Example:
        check_metric(MyMetric(most=10))
    """
    name = type(metric).__name__
    check_dataclass(metric, ("needs", "direction", "unit", "measure"), name)
    refuse(metric.direction not in get_args(Direction), name, f"has direction {metric.direction}")
    refuse(
        set(metric.needs) - NAMES["metrics", "needs"], name, "needs evidence of an unknown kind"
    )
    evidence = replace(make_random_evidence() if evidence is None else evidence, metric=name)
    for need in _list_needs(metric):
        evidence.need(need)
    measurements = metric.measure(evidence)
    refuse(not measurements, name, "returns no value")
    for measurement in measurements:
        _check_measurement(measurement, metric, name)
    repeated = metric.measure(evidence)
    refuse(
        not _are_same_values(measurements, repeated),
        name,
        "returns other values the second time",
    )
    order = np.random.default_rng(2).permutation(len(evidence.queries))
    shuffled = metric.measure(_take_queries(evidence, order))
    refuse(
        not _are_same_values(measurements, shuffled),
        name,
        "depends on the order of the queries",
    )
    if "lists" in metric.needs:
        _check_undefined(metric.measure(_take_queries(evidence, order[:0])), "queries", name)
    if "predictions" in metric.needs:
        _check_order_of_reviews(metric, evidence, name)
    _check_missing_evidence(metric, evidence, name)


def _list_needs(metric: Metric) -> frozenset[str]:
    return metric.needs_now() if isinstance(metric, NeedsByParameters) else metric.needs


def _check_measurement(measurement: Measurement, metric: Metric, name: str) -> None:
    value, n, units = measurement.value, measurement.n, measurement.units
    refuse((n == 0) != np.isnan(value), name, f"is {value} over {n} units")
    needs_units = metric.unit in {"query", "review"}
    refuse(needs_units and units is None, name, f"has unit {metric.unit} but no per-unit scores")
    is_linear = units is not None and units.totals is not None  # values of units of a ratio
    values = np.array([value]) if units is None or is_linear else units.values
    if units is not None:
        _check_units(measurement, units.values, name)
    stated_range = read_section(type(metric), "Range")
    low, high = read_bounds(stated_range)
    if isinstance(metric, HasBounds):
        low, high = metric.find_bounds(measurement)
    outside = (values < low - 1e-9) | (values > high + 1e-9)
    refuse(outside.any(), name, f"has values outside its range, {stated_range}")


def _check_units(measurement: Measurement, values: AnyArray, name: str) -> None:
    defined = values[~np.isnan(values)]
    counts = (defined.size, values.size - defined.size)
    wrong = counts != (measurement.n, measurement.undefined)
    refuse(wrong, name, f"does not count (defined, undefined) units as {counts}")
    if defined.size:
        is_mean = np.isclose(defined.mean(), measurement.value, rtol=1e-9)
        refuse(not is_mean, name, "is not the mean of its units")


def _check_undefined(measurements: Measurements, unit: str, name: str) -> None:
    for measurement in measurements:
        value = measurement.value
        refuse(not np.isnan(value), name, f"is {value} without {unit}, not NaN")


def _check_order_of_reviews(metric: Metric, evidence: Evidence, name: str) -> None:
    n = 0 if evidence.predictions is None else len(evidence.predictions)
    order = np.random.default_rng(2).permutation(n)
    measurements = metric.measure(evidence)
    shuffled = metric.measure(_take_reviews(evidence, order))
    refuse(
        not _are_same_values(measurements, shuffled),
        name,
        "depends on the order of the reviews",
    )
    _check_undefined(metric.measure(_take_reviews(evidence, order[:0])), "reviews", name)


def _check_missing_evidence(metric: Metric, evidence: Evidence, name: str) -> None:
    for need in _list_needs(metric):
        missing: dict[str, Any] = {"relevant" if need == "test" else need: None}
        try:
            metric.measure(replace(evidence, **missing))
        except MissingEvidence:
            continue
        raise BrokenContract(f"{name} needs {need} but does not raise MissingEvidence without it")


def _are_same_values(measurements: Measurements, expected: Measurements) -> bool:
    both = (measurements, expected)
    keys, expected_keys = ([(row.group, row.target) for row in rows] for rows in both)
    if keys != expected_keys:
        return False
    values = [np.array([(row.value, row.n, row.undefined) for row in rows]) for rows in both]
    return np.allclose(values[0], values[1], rtol=1e-9, equal_nan=True)


def _take_queries(evidence: Evidence, order: AnyArray) -> Evidence:
    lists, relevant = evidence.lists, evidence.relevant
    if lists is not None:
        lists = RankedLists(lists.items[order], lists.scores[order], lists.outside)
    if relevant is not None:
        relevant = relevant[order]
    queries = evidence.queries.take(order)
    return replace(evidence, queries=queries, lists=lists, relevant=relevant)


def _take_reviews(evidence: Evidence, order: AnyArray) -> Evidence:
    predictions = evidence.predictions
    if predictions is None:
        return evidence
    ids, items, ranked = predictions.ids, predictions.items, predictions.ranked
    return replace(evidence, predictions=Predictions(ids[order], items[order], ranked[order]))


N_UNITS = 60
"""The number of units of the systems that are compared."""


@collect_warnings()
def check_test(test: PairedTest) -> None:
    """Check that a significance test meets the contract of its kind.

    It is a documented frozen dataclass with a valid level, correction and family. It returns all
    columns for all pairs of systems, and the same values with the same generator. p is small for
    systems that differ by two standard deviations, and not for systems with equal scores.

    Args:
        test: The test with its settings.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_test(MyTest(alpha=0.01))
    """
    name = type(test).__name__
    check_dataclass(test, ("alpha", "correction", "family", "pairs"), name)
    _check_settings(test, name)
    base = np.random.default_rng(3).normal(size=N_UNITS)
    noise = np.random.default_rng(4).normal(size=N_UNITS)
    values = np.array([base, base + 2 + noise, base])
    columns, repeated = (test.pairs(values, np.random.default_rng(0)) for _ in range(2))
    _check_columns(columns, values, name)
    refuse(columns["p"][0] > 0.05, name, "does not detect a difference of 2 standard deviations")
    refuse(columns["p"][1] < 0.5, name, "detects a difference between equal systems")
    same = all(np.array_equal(columns[key], repeated[key], equal_nan=True) for key in PAIR_COLUMNS)
    refuse(not same, name, "returns other values the second time")


def _check_settings(test: PairedTest, name: str) -> None:
    refuse(not 0 < test.alpha < 1, name, f"has the level {test.alpha}")
    corrections = {"none", "bonferroni", "holm", "bh"}
    refuse(test.correction not in corrections, name, f"has the correction {test.correction}")
    size = test.family if isinstance(test.family, int) else 1
    unknown = not isinstance(test.family, int) and test.family not in {"metric", "report"}
    refuse(unknown or size < 1, name, f"has the family {test.family}")


def _check_columns(columns: Mapping[str, AnyArray], values: FloatArray, name: str) -> None:
    pairs = list(combinations(range(len(values)), 2))
    for column in PAIR_COLUMNS:
        refuse(column not in columns, name, f"returns no column {column}")
        size = np.size(columns[column])
        refuse(size != len(pairs), name, f"returns {size} values of {column} for 3 pairs")
    p = columns["p"]
    refuse(((p < 0) | (p > 1)).any(), name, "returns p-values outside 0 to 1")
    means = values.mean(axis=1)
    differences = [means[a] - means[b] for a, b in pairs]
    same = np.allclose(columns["difference"], differences)
    refuse(not same, name, "does not return mean_a - mean_b as the difference")


TOLERANCE = 1e-4
"""Items whose scores differ by less than this proportion may be ranked either way."""


@collect_warnings()
def check_recommender(
    plugin: Recommender, *, data: TrainingData | None = None, learns: bool = True
) -> None:
    """Check that a recommender meets the contract of its kind.

    It is a documented frozen dataclass with ``provides``, ``needs`` and ``libraries``. With the
    same seed it recommends the same lists. A list holds only candidates, no item twice and none of
    the user's training items, is sorted by score, ties by code, and padded at the end; it depends
    neither on the other queries nor on the length of the lists. A stored model gives the same
    lists. Embeddings have one row for each user and item.

    Args:
        plugin: The recommender with its settings.
        data: What it is fitted on, by default ``make_checkerboard()``.
        learns: Whether it must learn the checkerboard: that users prefer items of their colour.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_recommender(MyModel(neighbors=5))
    """
    name = type(plugin).__name__
    check_dataclass(plugin, ("provides", "needs", "libraries"), name)
    refuse(set(plugin.provides) - NAMES["models", "provides"], name, "provides an unknown output")
    refuse(
        set(plugin.needs) - NAMES["models", "needs"],
        name,
        "needs a part that training data does not have",
    )
    train = make_checkerboard() if data is None else data
    fitted = plugin.fit(train, np.random.default_rng(0))
    for output in plugin.provides - {"lists"}:
        method = "named" if output == "predictions" else output
        missing = not hasattr(fitted, method)
        refuse(missing, name, f"provides {output} but its fitted recommender does not")
    if "embeddings" in plugin.provides and isinstance(fitted, HasEmbeddings):
        _check_embeddings(fitted, train, name)
    if "lists" not in plugin.provides:
        return
    queries = query_all_users(train)
    lists = fitted.recommend(queries, K, train)
    _check_rules(lists, queries, train, name)
    refitted = plugin.fit(train, np.random.default_rng(0)).recommend(queries, K, train)
    refuse(
        not _are_same_lists(lists, refitted),
        name,
        "recommends other lists with the same seed",
    )
    _check_lengths(fitted, lists, train, name)
    _check_single_queries(fitted, lists, train, name)
    _check_restored(plugin, fitted, lists, train)
    if learns and data is None:
        _check_learned(lists, name)


def _check_rules(lists: RankedLists, queries: Queries, data: TrainingData, name: str) -> None:
    from scipy.sparse import csr_array, vstack

    n_items = data.train.n_items
    no_row = csr_array((1, n_items), dtype=np.float32)  # of the query that is no user, code -1
    seen = vstack([data.train.binary, no_row]).tocsr()[queries.users]
    check_lists(lists, n_queries=len(queries), seen=seen, n_items=n_items, model=name)
    inside = lists.items[lists.filled & (lists.items < n_items)]
    refuse((~data.candidates[inside]).any(), name, "lists an item that is not a candidate")
    ties = (lists.scores[:, 1:] == lists.scores[:, :-1]) & lists.filled[:, 1:]
    falls = lists.items[:, 1:] < lists.items[:, :-1]
    refuse((ties & falls).any(), name, "does not sort items of equal score by code")


def _check_lengths(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, name: str
) -> None:
    k = data.train.n_items + 3
    queries = query_all_users(data)
    long_lists = fitted.recommend(queries, k, data)
    refuse(long_lists.k != k, name, f"returns {long_lists.k} positions for k = {k}")
    _check_rules(long_lists, queries, data, name)
    same = _are_close(lists, long_lists.truncate(K))
    refuse(not same, name, "recommends other items in longer lists")
    no_lists = fitted.recommend(queries.take(np.arange(0)), K, data)
    refuse(len(no_lists), name, "returns lists without queries")


def _check_single_queries(
    fitted: FittedRecommender, lists: RankedLists, data: TrainingData, name: str
) -> None:
    queries = query_all_users(data)
    for row in (0, 1, len(queries) - 2, len(queries) - 1):
        alone = fitted.recommend(queries.take(np.array([row])), K, data)
        together = RankedLists(lists.items[row : row + 1], lists.scores[row : row + 1])
        refuse(not _are_close(together, alone), name, f"recommends query {row} other items alone")


def _check_restored(
    plugin: Recommender, fitted: FittedRecommender, lists: RankedLists, data: TrainingData
) -> None:
    if not isinstance(plugin, Restores):
        return
    name = type(plugin).__name__
    if not isinstance(fitted, Storable):
        raise BrokenContract(f"{name} has restore() but its fitted recommender has no state()")
    state = {key: np.array(array) for key, array in fitted.state().items()}
    objects = [key for key, array in state.items() if array.dtype.hasobject]
    refuse(objects, name, f"has objects in the state {objects}: return plain arrays")
    restored = plugin.restore(state).recommend(query_all_users(data), K, data)
    refuse(
        not _are_same_lists(lists, restored),
        name,
        "recommends other lists after it is restored",
    )


def _check_embeddings(fitted: HasEmbeddings, data: TrainingData, name: str) -> None:
    embeddings = fitted.embeddings()
    for kind, vectors, n in (
        ("users", embeddings.users, data.train.n_users),
        ("items", embeddings.items, data.train.n_items),
    ):
        wrong = vectors is not None and (vectors.ndim != 2 or vectors.shape[0] != n)
        refuse(wrong, name, f"does not return one embedding for each of the {n} {kind}")


def _check_learned(lists: RankedLists, name: str) -> None:
    n_unseen = N_ITEMS // 2 - N_SEEN
    items = lists.items[:N_USERS, :n_unseen]
    hits = (items >= 0) & (items % 2 == np.arange(len(items))[:, None] % 2)
    violation = (
        f"does not learn the checkerboard: {hits.mean():.0%} of the first {n_unseen} items "
        "have the user's colour (at random 25%)"
    )
    refuse(hits.mean() < 0.9, name, violation)


def _are_same_lists(lists: RankedLists, expected: RankedLists) -> bool:
    return np.array_equal(lists.items, expected.items) and np.array_equal(
        lists.scores, expected.scores, equal_nan=True
    )


def _are_close(lists: RankedLists, expected: RankedLists) -> bool:
    """Return whether lists are equal up to rounding, which may exchange items of close scores."""
    tolerance = TOLERANCE * np.nan_to_num(np.abs(lists.scores)).max(initial=0.0)
    if not np.allclose(lists.scores, expected.scores, rtol=0, atol=tolerance, equal_nan=True):
        return False
    tied = np.abs(np.diff(lists.scores, axis=1)) <= tolerance
    column = np.ones((len(lists), 1), dtype=bool)
    exchangeable = np.hstack([~column, tied]) | np.hstack([tied, column])
    return bool(((lists.items == expected.items) | exchangeable).all())


__all__ = [
    "check_dataset",
    "check_detector",
    "check_metric",
    "check_recommender",
    "check_test",
    "make_checkerboard",
    "make_random_evidence",
    "query_all_users",
]
