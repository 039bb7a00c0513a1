"""Checks of the contract of a plug-in, of each kind, for tests in this package and in others.

::

    from recbias.testing import check_recommender

    def test_my_model_meets_the_contract() -> None:
        check_recommender(MyModel(neighbors=5))

Every check returns None if the plug-in meets the contract of its kind, else raises BrokenContract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings
from recbias.core.dataset import (
    SAMPLE,
    AnyArray,
    Attributes,
    FloatArray,
    Interactions,
    Odds,
    Queries,
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
    HasBounds,
    Metric,
    NeedsByParameters,
    Recommender,
    Restores,
    Storable,
)
from recbias.statistics.paired import PairedTest

_Rules: TypeAlias = Iterator[tuple[object, str]]
"""Rules in order: whether each is violated, and how that is said."""


def _enforce(plugin: object, declared: Sequence[str], rules: _Rules) -> None:
    """Raise BrokenContract with the name of the plug-in for the first rule that is violated."""
    with collect_warnings():
        for is_violated, violation in chain(_list_common_rules(plugin, declared), rules):
            if is_violated:
                raise BrokenContract(f"{type(plugin).__name__} {violation}")


def _list_common_rules(plugin: object, declared: Sequence[str]) -> _Rules:
    """Yield the rules of a frozen, documented dataclass with the attributes of its kind."""
    yield not is_dataclass(plugin), "is not a dataclass"
    try:
        hash(plugin)
    except TypeError:
        yield True, "is no frozen dataclass of plain fields"
    yield not read_summary(type(plugin)), "has no docstring"
    for attribute in declared:
        yield not hasattr(plugin, attribute), f"does not declare {attribute}"


# ---- datasets ----


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
    _enforce(source, ("gives", "files", "load"), _list_dataset_rules(source, data or Path()))


def _list_dataset_rules(source: DatasetSource, folder: Path) -> _Rules:
    parts, allowed = source.gives(), NAMES["datasets", "gives"]
    yield set(parts) - allowed, f"gives other parts than {sorted(allowed)}"
    for path in source.files(folder):
        yield not path.is_file(), f"lists the file {path}, which does not exist"
    dataset = source.load(folder, np.random.default_rng(0))
    rows, reviews = dataset.interactions, dataset.reviews
    for part in sorted(NAMES["datasets", "gives"]):
        is_present = len(rows) > 0 if part == "train" else getattr(dataset, part) is not None
        yield part in parts and not is_present, f"gives {part} but does not load them"
        yield part not in parts and is_present, f"loads {part} but does not give them"
    yield from _list_code_rules(rows.users, rows.n_users, "users")
    yield from _list_code_rules(rows.items, rows.n_items, "items")
    columns = [
        rows.users,
        rows.items,
        rows.values,
        rows.users if rows.times is None else rows.times,
    ]
    yield (
        len({column.size for column in columns}) > 1,
        "has interaction columns of different lengths",
    )
    yield rows.values.dtype != np.float32, f"has values of type {rows.values.dtype}"
    tables = {"user": dataset.users, "item": dataset.items}
    for kind, ids in (("user", rows.user_ids), ("item", rows.item_ids)):
        names = ids.ids.tolist()
        yield len(set(names)) < len(names), f"has a {kind} identifier twice"
        is_text = all(isinstance(identifier, str) for identifier in names)
        yield not is_text, f"has a {kind} identifier that is not text"
        if (table := tables[kind]) is not None:
            is_aligned = table.ids.digest == ids.digest and len(table.frame) == len(ids)
            yield not is_aligned, f"has attributes of {kind}s that are not aligned to the {kind}s"
    if reviews is not None:
        yield from _list_code_rules(reviews.users, rows.n_users, "reviewers")
        yield from _list_code_rules(reviews.items, rows.n_items, "reviewed items")
        sizes = {reviews.users.size, reviews.items.size, reviews.texts.size}
        yield len(sizes) > 1, "has review columns of different lengths"
    again = source.load(folder, np.random.default_rng(0)).interactions
    same = all(
        np.array_equal(vars(rows)[name], vars(again)[name])
        for name in ("users", "items", "values")
    )
    same &= rows.user_ids.digest == again.user_ids.digest
    yield (
        not (same and rows.item_ids.digest == again.item_ids.digest),
        "loads other rows the second time",
    )


def _list_code_rules(codes: AnyArray, n: int, kind: str) -> _Rules:
    yield codes.dtype != np.int32, f"has codes of {kind} of type {codes.dtype}, not int32"
    is_outside = codes.size and (codes.min() < 0 or codes.max() >= n)
    yield is_outside, f"has codes of {kind} outside 0 to {n - 1}"


# ---- small worlds ----

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


# ---- detectors ----


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
    table: Any = make_checkerboard().items if items is None else items
    _enforce(detector, ("libraries", "kinds", "label"), _list_detector_rules(detector, table))


def _list_detector_rules(detector: Detector, items: Attributes) -> _Rules:
    kinds, n_items = detector.kinds, len(items.ids)
    yield not kinds or len(set(kinds)) < len(kinds), "has no kinds, or one of them twice"
    columns = dict(detector.label(items, np.random.default_rng(0)))
    for kind in kinds:
        yield kind not in columns, f"returns no column {kind}"
    for column, values in columns.items():
        is_graded = column.endswith("_score") and column.removesuffix("_score") in kinds
        yield column not in kinds and not is_graded, f"returns the column {column} of no kind"
        shape = f"{values.dtype}{list(values.shape)}"
        yield shape != f"float64[{n_items}]", f"returns {column} as {shape}"
        is_label = is_graded or np.isin(values, [0, 1]) | np.isnan(values)
        yield not np.all(is_label), f"returns labels {column} other than 0, 1 and NaN"
    again = detector.label(items, np.random.default_rng(0))
    yield not _are_same_labels(columns, again), "returns other labels the second time"
    order = np.arange(n_items)[::-1]
    reverse = detector.label(items.take(order, items.ids.take(order)), np.random.default_rng(0))
    restored = {column: values[order] for column, values in reverse.items()}
    yield not _are_same_labels(columns, restored), "depends on the order of the items"


def _are_same_labels(
    columns: Mapping[str, FloatArray], repeated: Mapping[str, FloatArray]
) -> bool:
    return columns.keys() == repeated.keys() and all(
        np.array_equal(values, repeated[column], equal_nan=True)
        for column, values in columns.items()
    )


# ---- metrics ----


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
    given = make_random_evidence() if evidence is None else evidence
    rules = _list_metric_rules(metric, replace(given, metric=type(metric).__name__))
    _enforce(metric, ("needs", "direction", "unit", "measure"), rules)


def _list_metric_rules(metric: Metric, evidence: Evidence) -> _Rules:
    yield metric.direction not in get_args(Direction), f"has direction {metric.direction}"
    yield set(metric.needs) - NAMES["metrics", "needs"], "needs evidence of an unknown kind"
    needs = metric.needs_now() if isinstance(metric, NeedsByParameters) else metric.needs
    for need in needs:
        evidence.need(need)
    rows = metric.measure(evidence)
    yield not rows, "returns no value"
    for row in rows:
        yield from _list_value_rules(row, metric)
    yield (
        not _are_same_values(rows, metric.measure(evidence)),
        "returns other values the second time",
    )
    orders = [("queries", len(evidence.queries), _take_queries)]
    if "predictions" in metric.needs and evidence.predictions is not None:
        orders.append(("reviews", len(evidence.predictions), _take_reviews))
    for unit, n, take in orders:
        order = np.random.default_rng(2).permutation(n)
        shuffled = metric.measure(take(evidence, order))
        yield not _are_same_values(rows, shuffled), f"depends on the order of the {unit}"
        if unit == "reviews" or "lists" in metric.needs:
            for row in metric.measure(take(evidence, order[:0])):
                yield not np.isnan(row.value), f"is {row.value} without {unit}, not NaN"
    yield from _list_evidence_rules(metric, needs, evidence)


def _list_evidence_rules(metric: Metric, needs: Iterable[str], evidence: Evidence) -> _Rules:
    for need in needs:
        missing: dict[str, Any] = {"relevant" if need == "test" else need: None}
        try:
            metric.measure(replace(evidence, **missing))
        except MissingEvidence:
            continue
        yield True, f"needs {need} but does not raise MissingEvidence without it"


def _list_value_rules(row: Measurement, metric: Metric) -> _Rules:
    """Yield the rules of a value and of its values by unit."""
    units, values = row.units, np.array([row.value])
    yield (row.n == 0) != np.isnan(row.value), f"is {row.value} over {row.n} units"
    needs_units = metric.unit in {"query", "review"}
    yield needs_units and units is None, f"has unit {metric.unit} but no per-unit scores"
    if units is not None:
        values = units.values if units.totals is None else values  # those of a ratio are linear
        defined = units.values[~np.isnan(units.values)]
        counts = (defined.size, units.values.size - defined.size)
        wrong = counts != (row.n, row.undefined)
        yield wrong, f"does not count (defined, undefined) units as {counts}"
        is_mean = not defined.size or np.isclose(defined.mean(), row.value, rtol=1e-9)
        yield not is_mean, "is not the mean of its units"
    stated = read_section(type(metric), "Range")
    low, high = metric.find_bounds(row) if isinstance(metric, HasBounds) else read_bounds(stated)
    outside = (values < low - 1e-9) | (values > high + 1e-9)
    yield outside.any(), f"has values outside its range, {stated}"


def _are_same_values(rows: Sequence[Measurement], expected: Sequence[Measurement]) -> bool:
    if [(row.group, row.target) for row in rows] != [(row.group, row.target) for row in expected]:
        return False
    values, others = (
        np.array([(row.value, row.n, row.undefined) for row in each]) for each in (rows, expected)
    )
    return np.allclose(values, others, rtol=1e-9, equal_nan=True)


def _take_queries(evidence: Evidence, order: AnyArray) -> Evidence:
    lists, relevant = evidence.lists, evidence.relevant
    return replace(
        evidence,
        queries=evidence.queries.take(order),
        lists=None if lists is None else lists.take(order),
        relevant=None if relevant is None else relevant[order],
    )


def _take_reviews(evidence: Evidence, order: AnyArray) -> Evidence:
    predictions: Any = evidence.predictions
    columns = (predictions.ids, predictions.items, predictions.ranked)
    return replace(evidence, predictions=Predictions(*(column[order] for column in columns)))


# ---- tests ----

N_UNITS = 60
"""The number of units of the systems that are compared."""


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
    _enforce(test, ("alpha", "correction", "family", "pairs"), _list_test_rules(test))


def _list_test_rules(test: PairedTest) -> _Rules:
    yield not 0 < test.alpha < 1, f"has the level {test.alpha}"
    corrections = {"none", "bonferroni", "holm", "bh"}
    yield test.correction not in corrections, f"has the correction {test.correction}"
    is_number = isinstance(test.family, int)
    is_family = test.family >= 1 if is_number else test.family in {"metric", "report"}  # type: ignore[operator]
    yield not is_family, f"has the family {test.family}"
    base = np.random.default_rng(3).normal(size=N_UNITS)
    noise = np.random.default_rng(4).normal(size=N_UNITS)
    values = np.array([base, base + 2 + noise, base])
    columns, repeated = (test.pairs(values, np.random.default_rng(0)) for _ in range(2))
    pairs = list(combinations(range(len(values)), 2))
    for column in PAIR_COLUMNS:
        yield column not in columns, f"returns no column {column}"
        size = np.size(columns[column])
        yield size != len(pairs), f"returns {size} values of {column} for 3 pairs"
    p, means = columns["p"], values.mean(axis=1)
    yield ((p < 0) | (p > 1)).any(), "returns p-values outside 0 to 1"
    is_difference = np.allclose(columns["difference"], [means[a] - means[b] for a, b in pairs])
    yield not is_difference, "does not return mean_a - mean_b as the difference"
    yield p[0] > 0.05, "does not detect a difference of 2 standard deviations"
    yield p[1] < 0.5, "detects a difference between equal systems"
    same = all(np.array_equal(columns[key], repeated[key], equal_nan=True) for key in PAIR_COLUMNS)
    yield not same, "returns other values the second time"


# ---- recommenders ----

TOLERANCE = 1e-4
"""Items whose scores differ by less than this proportion may be ranked either way."""


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
    train = make_checkerboard() if data is None else data
    rules = _list_recommender_rules(plugin, train, learns=learns and data is None)
    _enforce(plugin, ("provides", "needs", "libraries"), rules)


def _list_recommender_rules(plugin: Recommender, data: TrainingData, *, learns: bool) -> _Rules:
    yield set(plugin.provides) - NAMES["models", "provides"], "provides an unknown output"
    needs_other = set(plugin.needs) - NAMES["models", "needs"]
    yield needs_other, "needs a part that training data does not have"
    fitted: Any = plugin.fit(data, np.random.default_rng(0))
    for output in plugin.provides - {"lists"}:
        method = "named" if output == "predictions" else output
        yield not hasattr(fitted, method), f"provides {output} but its fitted recommender does not"
    vectors = fitted.embeddings() if "embeddings" in plugin.provides else Embeddings(None, None)
    sizes = {"users": data.train.n_users, "items": data.train.n_items}
    for kind, n in sizes.items():
        rows = getattr(vectors, kind)
        wrong = rows is not None and (rows.ndim != 2 or rows.shape[0] != n)
        yield wrong, f"does not return one embedding for each of the {n} {kind}"
    if "lists" not in plugin.provides:
        return
    queries, name = query_all_users(data), type(plugin).__name__
    lists = fitted.recommend(queries, K, data)
    yield from _list_order_rules(lists, queries, data, name)
    refitted = plugin.fit(data, np.random.default_rng(0)).recommend(queries, K, data)
    yield not _are_close(lists, refitted, 0.0), "recommends other lists with the same seed"
    k = data.train.n_items + 3
    long_lists = fitted.recommend(queries, k, data)
    yield long_lists.k != k, f"returns {long_lists.k} positions for k = {k}"
    yield from _list_order_rules(long_lists, queries, data, name)
    yield not _are_close(lists, long_lists.truncate(K)), "recommends other items in longer lists"
    no_lists = fitted.recommend(queries.take(np.arange(0)), K, data)
    yield len(no_lists), "returns lists without queries"
    for row in (0, 1, len(queries) - 2, len(queries) - 1):
        alone = fitted.recommend(queries.take(np.array([row])), K, data)
        together = lists.take(slice(row, row + 1))
        yield not _are_close(together, alone), f"recommends query {row} other items alone"
    if isinstance(plugin, Restores):
        is_storable = isinstance(fitted, Storable)
        yield not is_storable, "has restore() but its fitted recommender has no state()"
        state = {key: np.array(array) for key, array in fitted.state().items()}
        objects = [key for key, array in state.items() if array.dtype.hasobject]
        yield objects, f"has objects in the state {objects}: return plain arrays"
        restored = plugin.restore(state).recommend(queries, K, data)
        yield not _are_close(lists, restored, 0.0), "recommends other lists after it is restored"
    if learns:
        n_unseen = N_ITEMS // 2 - N_SEEN
        items = lists.items[:N_USERS, :n_unseen]
        hits = (items >= 0) & (items % 2 == np.arange(len(items))[:, None] % 2)
        found = f"{hits.mean():.0%} of the first {n_unseen} items have the user's colour"
        yield hits.mean() < 0.9, f"does not learn the checkerboard: {found} (at random 25%)"


def _list_order_rules(
    lists: RankedLists, queries: Queries, data: TrainingData, name: str
) -> _Rules:
    """Yield the rules of lists: candidates that the user has not, by score, ties by code."""
    from scipy.sparse import csr_array, vstack

    n_items = data.train.n_items
    no_row = csr_array((1, n_items), dtype=np.float32)  # of the query that is no user, code -1
    seen = vstack([data.train.binary, no_row]).tocsr()[queries.users]
    check_lists(lists, n_queries=len(queries), seen=seen, n_items=n_items, model=name)
    inside = lists.items[lists.filled & (lists.items < n_items)]
    yield (~data.candidates[inside]).any(), "lists an item that is not a candidate"
    ties = (lists.scores[:, 1:] == lists.scores[:, :-1]) & lists.filled[:, 1:]
    falls = lists.items[:, 1:] < lists.items[:, :-1]
    yield (ties & falls).any(), "does not sort items of equal score by code"


def _are_close(lists: RankedLists, expected: RankedLists, share: float = TOLERANCE) -> bool:
    """Return whether lists are equal up to rounding, which may exchange items of close scores."""
    tolerance = share * np.nan_to_num(np.abs(lists.scores)).max(initial=0.0)
    if not np.allclose(lists.scores, expected.scores, rtol=0, atol=tolerance, equal_nan=True):
        return False
    if not share:
        return np.array_equal(lists.items, expected.items)
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
