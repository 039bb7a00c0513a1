from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset, Reviews
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    WrongType,
)
from recbias.core.grouping import group_by
from recbias.data.filters_queries import (
    Deduplicate,
    KCore,
    MinReviews,
    Period,
    SampleUsers,
    Threshold,
    Users,
    find_k_core,
    find_largest_k,
)
from recbias.data.tables import QueryTable
from recbias.language.masking import Language
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def list_pairs(dataset: Dataset) -> list[tuple[str, str]]:
    interactions = dataset.interactions
    users, items = (
        interactions.user_ids.ids[interactions.users],
        interactions.item_ids.ids[interactions.items],
    )
    return list(zip(users.tolist(), items.tolist(), strict=True))


def test_threshold_makes_high_ratings_positive_and_excludes_lower_ratings() -> None:
    world = Dataset(
        make_interactions([(0, 0), (0, 1), (1, 1), (2, 2)], values=[4.0, 3.5, 5.0, 1.0])
    )
    filtered = Threshold(at_least=4).apply(world, RNG)
    assert list_pairs(filtered) == [("u0", "i0"), ("u1", "i1")]
    assert filtered.interactions.values.tolist() == [1.0, 1.0]
    assert filtered.counts == {"interactions_before_threshold": 4}
    assert len(Threshold(at_least=3.5).apply(world, RNG).interactions) == 3


def test_an_empty_threshold_names_the_highest_rating() -> None:
    world = Dataset(make_interactions([(0, 0), (0, 1)], values=[4.0, 3.5]))
    with pytest.raises(
        NothingLeft, match=r"threshold 4\.5 left 0 of the 2 interactions"
    ) as caught:
        Threshold(at_least=4.5).apply(world, RNG)
    assert caught.value.remedy == "the highest rating is 4"
    with pytest.raises(NothingLeft, match="has nothing to filter"):
        Threshold(at_least=1).apply(Dataset(make_interactions([])), RNG)


def test_k_core_is_repeated_until_nothing_changes() -> None:
    # u2 has one row and is excluded; then i2 has only the row of u1 and is excluded
    world = Dataset(make_interactions([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2)]))
    filtered = KCore(k=2).apply(world, RNG)
    assert list_pairs(filtered) == [("u0", "i0"), ("u0", "i1"), ("u1", "i0"), ("u1", "i1")]
    assert filtered.counts == {"interactions_before_k_core": 6}


def test_k_core_counts_rows_not_pairs() -> None:
    world = Dataset(make_interactions([(0, 0), (0, 0), (1, 1)]))
    assert list_pairs(KCore(k=2).apply(world, RNG)) == [("u0", "i0")] * 2


def compute_core(pairs: list[tuple[int, int]], k: int) -> list[tuple[int, int]]:
    while True:
        users, items = [user for user, _ in pairs], [item for _, item in pairs]
        core = [pair for pair in pairs if min(users.count(pair[0]), items.count(pair[1])) >= k]
        if core == pairs:
            return pairs
        pairs = core


pair_lists = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


@given(pair_lists, st.integers(1, 5))
def test_the_core_is_that_of_the_definition(pairs: list[tuple[int, int]], k: int) -> None:
    world = make_interactions(pairs, n_users=6, n_items=6)
    is_core = find_k_core(world, k)
    core = [pair for pair, in_core in zip(pairs, is_core, strict=True) if in_core]
    assert core == compute_core(pairs, k)
    largest = find_largest_k(world)
    assert compute_core(pairs, largest) or not pairs
    assert not compute_core(pairs, largest + 1)


@pytest.mark.parametrize(
    ("keep", "times", "values"),
    [
        # the pair u0, i0 has the rows 0, 2 and 3 with values 3, 5, 5 and times 7, 9, 1
        ("first", [7, 8, 9, 1], [4.0, 5.0]),
        ("last", [7, 8, 9, 1], [4.0, 5.0]),
        ("max", [7, 8, 9, 1], [4.0, 5.0]),
    ],
)
def test_deduplicate_keeps_one_row_of_each_pair(
    keep: str, times: list[int], values: list[float]
) -> None:
    world = make_interactions([(0, 0), (1, 0), (0, 0), (0, 0)], values=[3, 4, 5, 5], times=times)
    filtered = Deduplicate(keep=keep).apply(Dataset(world), RNG)  # type: ignore[arg-type]
    assert sorted(filtered.interactions.values.tolist()) == values
    # first by time: 1 (row 3); last by time: 9 (row 2); of the two highest, row 2 is the first
    expected = {"first": [8, 1], "last": [8, 9], "max": [8, 9]}[keep]
    assert filtered.interactions.times.tolist() == expected
    assert filtered.counts == {"interactions_before_deduplicate": 4}


@pytest.mark.parametrize(("keep", "value"), [("first", 3.0), ("last", 2.0), ("max", 5.0)])
@pytest.mark.parametrize("times", [None, [6, 6, 6]])
def test_deduplicate_uses_the_order_of_rows_without_times(
    keep: str, value: float, times: list[int] | None
) -> None:
    world = make_interactions([(0, 0), (0, 0), (0, 0)], values=[3, 5, 2], times=times)
    filtered = Deduplicate(keep=keep).apply(Dataset(world), RNG)  # type: ignore[arg-type]
    assert filtered.interactions.values.tolist() == [value]


def test_sample_users_keeps_all_rows_of_the_sampled_users(rng: np.random.Generator) -> None:
    pairs = [(user, item) for user in range(20) for item in range(3)]
    world = Dataset(make_interactions(pairs, n_users=25))
    filtered = SampleUsers(n=4).apply(world, rng)
    assert filtered.interactions.n_users == 4
    assert filtered.interactions.user_counts().tolist() == [3, 3, 3, 3]
    repeated = SampleUsers(n=4).apply(world, np.random.default_rng(20261121))
    assert repeated.user_ids.ids.tolist() == filtered.user_ids.ids.tolist()


def test_users_without_rows_are_not_sampled_and_all_users_are_kept_if_too_few(
    rng: np.random.Generator,
) -> None:
    world = Dataset(make_interactions([(3, 0), (7, 1)], n_users=10))
    assert SampleUsers(n=2).apply(world, rng).interactions.n_users == 2  # without a warning
    with collect_warnings() as warnings:
        assert SampleUsers(n=3).apply(world, rng).interactions.n_users == 2
    assert warnings == ["sample_users 3: all 2 users are used, there are no more"]


def test_min_reviews_counts_review_texts_or_else_interactions() -> None:
    interactions = make_interactions([(0, 0), (1, 0), (0, 1), (1, 1)])
    reviews = Reviews(
        np.array([0, 1, 0], dtype=np.int32),
        np.array([0, 0, 1], dtype=np.int32),
        np.array(["a", "", "b"], dtype=object),
    )
    filtered = MinReviews(n=2).apply(Dataset(interactions, reviews=reviews), RNG)
    assert list_pairs(filtered) == [("u0", "i0"), ("u1", "i0")]
    assert filtered.reviews.texts.tolist() == ["a", ""]
    # without texts both items have two interactions
    assert len(MinReviews(n=2).apply(Dataset(interactions), RNG).interactions) == 4


def make_reviews(*texts: str) -> Dataset:
    """Users 0, 1, ... who each reviewed the item of their number, at the time of their number."""
    codes = np.arange(len(texts), dtype=np.int32)
    numbers = codes.tolist()
    rows = make_interactions([*zip(numbers, numbers, strict=True)], times=numbers)
    return Dataset(rows, reviews=Reviews(codes, codes, np.array(texts, dtype=object)))


@pytest.mark.parametrize(
    ("ends", "users"),
    [
        ({"since": 1}, ["u1", "u2", "u3"]),
        ({"before": "1970-01-01T00:00:02"}, ["u0", "u1"]),
        ({"since": "1970-01-01T00:00:01", "before": 3}, ["u1", "u2"]),
    ],
)
def test_a_period_begins_at_since_and_ends_before_its_end(
    ends: dict[str, Any], users: list[str]
) -> None:
    filtered = Period(**ends).apply(make_reviews("0", "1", "2", "3"), RNG)
    assert [user for user, _ in list_pairs(filtered)] == users
    assert [f"u{text}" for text in filtered.reviews.texts] == users


def test_a_period_without_interactions_or_ends_is_refused() -> None:
    with pytest.raises(NothingLeft, match="period left 0 of the 1 interactions") as caught:
        Period(since="2008-01-01").apply(make_reviews("0"), RNG)
    assert caught.value.remedy == "the interactions are of {0} to {0}".format(
        "1970-01-01T00:00:00"
    )
    with pytest.raises(Contradiction):
        Period()
    with pytest.raises(WrongType) as refused:
        Period(since="soon")
    assert refused.value.where == "since"


REVIEWS = {
    "en": [
        "The staff was nice and we loved the food.",
        "Great food!",
        "no quality no taste",
        "👍",
        "",
    ],
    "fr": ["Nous avons passé une bonne soirée et le service est parfait."],
    "de": ["Das Essen war sehr gut und der Service auch."],
    "es": ["La comida es muy buena pero el servicio no."],
    "it": ["Il cibo è molto buono e il servizio anche."],
    "pt": ["A comida é muito boa, mas o atendimento não."],
    "nl": ["Het eten was heel goed en de bediening ook."],
    "other": ["很好吃，下次再来", "Очень вкусно и недорого", "السعر مناسب"],
}


@pytest.mark.parametrize("language", [name for name in REVIEWS if name != "other"])
def test_reviews_of_other_languages_are_excluded(language: str) -> None:
    texts = [text for texts in REVIEWS.values() for text in texts]
    dataset = make_reviews(*texts)
    filtered = Language(keep=language).apply(dataset, RNG)  # type: ignore[arg-type]  # a literal
    kept, short = {*filtered.reviews.texts}, {*REVIEWS["en"][1:]}
    assert kept - short == {*REVIEWS[language]} - short
    assert {"Great food!", "👍", ""} <= kept
    assert "no quality no taste" in kept or language != "en"
    assert filtered.reviews is not None
    assert len(filtered.interactions) == len(filtered.reviews)
    assert filtered.counts["reviews_in_other_languages"] == len(texts) - len(filtered.reviews)


@pytest.mark.parametrize(
    "plugin",
    [Threshold(at_least=2), KCore(k=1), Deduplicate(), SampleUsers(n=9), MinReviews(n=1)],
    ids=lambda plugin: type(plugin).__name__,
)
def test_tables_stay_aligned_and_an_empty_dataset_is_refused(plugin: KCore) -> None:
    interactions = make_interactions([(0, 0), (1, 1), (2, 2)], values=[1, 2, 3])
    users = Attributes(interactions.user_ids, pd.DataFrame({"n": [0.0, 1.0, 2.0]}), "user")
    items = Attributes(interactions.item_ids, pd.DataFrame({"n": [0.0, 1.0, 2.0]}), "item")
    dataset = Dataset(interactions, users, items, counts={"bad_lines": 1})
    with collect_warnings():
        filtered = plugin.apply(dataset, RNG)
    assert [
        f"u{number:g}" for number in filtered.users.frame["n"]
    ] == filtered.user_ids.ids.tolist()
    assert [
        f"i{number:g}" for number in filtered.items.frame["n"]
    ] == filtered.item_ids.ids.tolist()
    assert filtered.counts["bad_lines"] == 1
    with collect_warnings(), pytest.raises(NothingLeft, match="has nothing to filter"):
        plugin.apply(Dataset(make_interactions([])), RNG)


@pytest.mark.real_data
def test_movielens_1m_has_the_published_size_after_its_filters(real_data: Path) -> None:
    from recbias.data.movielens import MovieLens1M

    with collect_warnings():
        world = MovieLens1M().load(real_data, RNG)
    filtered = KCore(k=10).apply(Threshold(at_least=4).apply(world, RNG), RNG)
    interactions = filtered.interactions
    assert (interactions.n_users, interactions.n_items, len(interactions)) == (5949, 2810, 571_531)
    assert filtered.counts["interactions_before_threshold"] == 1_000_209
    assert filtered.counts["interactions_before_k_core"] == 575_281
    assert filtered.users.numbers("age").size == 5949
    assert len(Users(where="age < 18").ask(filtered, RNG)) == 218


def make_dataset() -> Dataset:
    interactions = make_interactions([(0, 0), (2, 1)], n_users=4)
    frame = pd.DataFrame({"age": [10.0, 20.0, np.nan, 15.0], "gender": ["F", "M", "F", None]})
    return Dataset(interactions, Attributes(interactions.user_ids, frame, "user"))


def test_all_users_are_queries_with_their_labels() -> None:
    queries = Users().ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ["u0", "u1", "u2", "u3"]
    assert queries.users.tolist() == [0, 1, 2, 3]
    assert queries.users.dtype == np.int32
    assert queries.labels.frame["gender"].tolist() == ["F", "M", "F", None]
    assert queries.unit == "user"
    assert queries.texts is None


def test_users_are_selected_and_grouped_by_the_length_of_their_history() -> None:
    dataset = Dataset(make_interactions([(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]))
    queries = Users(where="history_length >= 2").ask(dataset, RNG)
    assert queries.users.tolist() == [1, 2]
    groups = group_by(queries.labels, "history_length < 3")
    assert groups.names == ("history_length < 3", "not history_length < 3")
    assert groups.codes.tolist() == [0, 1]
    with pytest.raises(UnknownColumn, match="no users table"):
        Users(where="history_length >= 2 and age < 9").ask(dataset, RNG)


def test_a_sample_is_sorted_and_restricted_by_the_condition() -> None:
    interactions = make_interactions([(0, 0)], n_users=100)
    frame = pd.DataFrame({"n": np.arange(100.0)})
    dataset = Dataset(interactions, Attributes(interactions.user_ids, frame, "user"))
    source = Users(where="n >= 50", sample=7)
    users = source.ask(dataset, np.random.default_rng(3)).users
    assert users.size == 7
    assert (users >= 50).all()
    assert (np.diff(users) > 0).all()
    assert users.tolist() == source.ask(dataset, np.random.default_rng(3)).users.tolist()
    assert users.tolist() != source.ask(dataset, np.random.default_rng(4)).users.tolist()


def test_a_sample_larger_than_the_users_takes_all_with_a_warning() -> None:
    with collect_warnings() as warnings:
        queries = Users(where="gender == 'F'", sample=9).ask(make_dataset(), RNG)
    assert queries.users.tolist() == [0, 2]
    assert warnings == ["a sample of 9 was requested; all 2 users are used"]


def write_table(folder: Path, text: str) -> QueryTable:
    path = folder / "queries.csv"
    path.write_text(text, encoding="utf-8")
    return QueryTable(path=path)


def test_queries_are_in_the_order_of_the_write_table(tmp_path: Path) -> None:
    source = write_table(tmp_path, "race,query_id,age\na,u2,7\n,u0,\nb,007,9\n")
    queries = source.ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ["u2", "u0", "007"]
    assert queries.users.tolist() == [2, 0, -1]
    assert queries.labels.frame["race"].tolist() == ["a", None, "b"]
    np.testing.assert_array_equal(queries.labels.frame["age"], [7, np.nan, 9])
    assert queries.labels.names == ["race", "age", "history_length"]
    np.testing.assert_array_equal(queries.labels.frame["history_length"][2:], [np.nan])
    assert queries.unit == "user"


def test_queries_that_are_not_users_are_prompts(tmp_path: Path) -> None:
    queries = write_table(tmp_path, 'query_id\n"a ""b"", c"\n🎬\n').ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ['a "b", c', "🎬"]
    assert queries.users.tolist() == [-1, -1]
    assert queries.unit == "prompt"
    assert len(queries.labels.frame) == 2


@pytest.mark.parametrize(
    ("text", "error_class", "message"),
    [
        ("query_id\nq1\nq2\nq1\n", MalformedLine, "queries.csv:4: query_id 'q1' has two rows"),
        ("query_id\n", NothingLeft, "has no queries"),
        ("query\nq1\n", UnknownColumn, "no column 'query_id'"),
        ("query_id,a\nq1,1\nq2\n", MalformedLine, "queries.csv:3"),
        ("query_id,a\n,1\n", MalformedLine, "queries.csv:2"),
    ],
)
def test_a_malformed_table_is_refused(
    tmp_path: Path, text: str, error_class: type[Exception], message: str
) -> None:
    with pytest.raises(error_class) as caught:
        write_table(tmp_path, text).ask(make_dataset(), RNG)
    assert message in str(caught.value)


@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32))
def test_samples_of_users_are_disjoint_sorted_and_of_one_size(
    size: int, folds: int, seed: int
) -> None:
    dataset = Dataset(make_interactions([(0, 0)], n_users=63))
    queries = Users(sample=size, folds=folds).ask(dataset, np.random.default_rng(seed))
    samples = queries.users.reshape(folds, size)
    assert len(set(queries.users.tolist())) == folds * size
    assert (np.diff(samples, axis=1) > 0).all()


def test_too_few_users_for_disjoint_samples_are_refused() -> None:
    with pytest.raises(OutOfRange, match=r"2 disjoint samples of 3 need 6 users") as caught:
        Users(sample=3, folds=2).ask(make_dataset(), RNG)
    assert caught.value.remedy == "sample: 2 is the largest possible"
    with pytest.raises(OutOfRange) as caught:
        Users(sample=1, folds=5).ask(make_dataset(), RNG)
    assert caught.value.remedy == "use fewer folds"


def test_disjoint_samples_without_a_size_are_refused() -> None:
    with pytest.raises(Contradiction) as caught:
        Users(folds=2)
    assert caught.value.where == "folds"
