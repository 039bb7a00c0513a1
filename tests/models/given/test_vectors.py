from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.errors import (
    BrokenContract,
    Faults,
    MalformedLine,
    MissingFile,
    UnknownIdentifier,
)
from recbias.models.given import GivenVectors, read_ids, read_vectors
from recbias.testing import check_recommender, make_checkerboard
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

USERS = np.array([[1.0, 0.0], [0.0, 1.0]])
ITEMS = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])


def create_model(
    folder: Path,
    users: AnyArray = USERS,
    items: AnyArray = ITEMS,
    *,
    user_ids: str = "u0\nu1\n",
    item_ids: str = "i0\ni1\ni2\n",
    score: str = "dot",
) -> GivenVectors:
    np.save(folder / "u.npy", users)
    np.save(folder / "i.npy", items)
    (folder / "u.txt").write_text(user_ids, encoding="utf-8", newline="")
    (folder / "i.txt").write_text(item_ids, encoding="utf-8", newline="")
    return GivenVectors(
        users=folder / "u.npy",
        items=folder / "i.npy",
        user_ids=folder / "u.txt",
        item_ids=folder / "i.txt",
        score=score,  # type: ignore[arg-type]
    )


def create_data(n_users: int = 2, n_items: int = 4) -> TrainingData:
    """Everybody has had the last item only; user 1 also the first."""
    pairs = [(user, n_items - 1) for user in range(n_users)]
    pairs_of_last_user = [(n_users, item) for item in range(n_items)]
    return TrainingData(
        make_interactions(
            [*pairs, (1, 0), *pairs_of_last_user], n_users=n_users + 1, n_items=n_items
        )
    )


def recommend_items(model: GivenVectors, ids: list[str], users: list[int]) -> list[list[int]]:
    data = create_data()
    fitted = model.fit(data, np.random.default_rng(0))
    lists: list[list[int]] = fitted.recommend(make_queries(ids, users), 3, data).items.tolist()
    return lists


@pytest.mark.parametrize(
    ("score", "first", "second"),
    [
        # dot     u0: 1, 3, 0          u1: (had i0), 4, 2
        ("dot", [1, 0, 2], [1, 2, -1]),
        # cosine  u0: 1, 3/5, 0        u1: (had i0), 4/5, 1
        ("cosine", [0, 1, 2], [2, 1, -1]),
    ],
)
@pytest.mark.usefixtures("stage_warnings")
def test_lists_follow_the_products(
    tmp_path: Path, score: str, first: list[int], second: list[int]
) -> None:
    lists = recommend_items(create_model(tmp_path, score=score), ["u0", "u1"], [0, 1])
    assert lists == [first, second]


def test_vectors_are_put_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    model = create_model(tmp_path, user_ids="u1\nx\n", item_ids="i2\ni0\nother\n")
    with collect_warnings() as warnings:
        vectors = model.fit(create_data(), np.random.default_rng(0)).embeddings()
    nan = [np.nan, np.nan]
    np.testing.assert_array_equal(vectors.users, np.array([nan, [1, 0], nan]))
    np.testing.assert_array_equal(vectors.items, np.array([[3, 4], nan, [1, 0], nan]))
    assert warnings == [
        "u.txt: 1 of 2 users are not in the dataset",
        "2 of the 3 users of the dataset have no vector",
        "i.txt: 1 of 3 items are not in the dataset",
        "2 of the 4 items of the dataset have no vector",
    ]


@pytest.mark.parametrize("score", ["dot", "cosine"])
def test_it_fulfils_the_contract_of_recommenders(tmp_path: Path, score: str) -> None:
    data = make_checkerboard()
    colours = np.eye(2)
    n_users, n_items = data.train.n_users - 1, data.train.n_items
    model = create_model(
        tmp_path,
        colours[np.arange(n_users) % 2] + 0.1,
        colours[np.arange(n_items) % 2] + 0.1,
        user_ids="\n".join(data.train.user_ids.ids[:-1]),
        item_ids="\n".join(data.train.item_ids.ids),
        score=score,
    )
    check_recommender(model)


@pytest.mark.parametrize(
    ("content", "location", "message"),
    [
        (b"a\nb\na\n", ":3", "'a' has another line"),
        (b"\xff\n", ":1", "not UTF-8"),
    ],
)
def test_bad_ids_are_named(tmp_path: Path, content: bytes, location: str, message: str) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(content)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_ids(path)
    assert caught.value.where == f"{path}{location}"


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(MalformedLine, match=r"not a \.npy file of numbers"):
        read_vectors(tmp_path / "v.npy")


def test_vectors_of_different_sizes_are_an_error(tmp_path: Path) -> None:
    model = create_model(tmp_path, items=np.ones((3, 5)))
    with pytest.raises(BrokenContract, match="vectors of size 5; those of the users have 2"):
        model.fit(create_data(), np.random.default_rng(0))


def test_errors_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    model = create_model(tmp_path, users=np.array([[np.nan, 1.0]]), item_ids="i0\ni0\n")
    with pytest.raises(Faults) as caught:
        model.check_files(["here"])
    assert [error.where for error in caught.value.faults] == [
        str(model.users),
        f"{model.item_ids}:2",
    ]


def test_check_files_compares_the_files(tmp_path: Path) -> None:
    create_model(tmp_path).check_files(["here"])
    with pytest.raises(BrokenContract, match="2 ids for 3 vectors"):
        create_model(tmp_path, item_ids="i0\ni1\n").check_files(["here"])


def test_a_file_without_vectors_is_refused(tmp_path: Path) -> None:
    model = create_model(tmp_path, items=np.ones((0, 2)), item_ids="")
    with pytest.raises(MalformedLine, match="holds no vector"):
        model.fit(create_data(), np.random.default_rng(0))


def test_absent_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"v\.npy"):
        read_vectors(tmp_path / "v.npy")
    with pytest.raises(MissingFile, match=r"ids\.txt"):
        read_ids(tmp_path / "ids.txt")


def test_ids_that_the_dataset_writes_otherwise_are_named(tmp_path: Path) -> None:
    model = create_model(tmp_path, item_ids="i0\nI1\nI2\n")
    with collect_warnings() as warnings:
        model.fit(create_data(), np.random.default_rng(0))
    assert "i.txt: 2 of 3 items are not in the dataset: 'I1' is written 'i1' there" in warnings[1]
    with pytest.raises(UnknownIdentifier) as caught:
        create_model(tmp_path, user_ids="u00\n u1\n").fit(create_data(), np.random.default_rng(0))
    assert caught.value.remedy.startswith("' u1' is written 'u1' there: 1 of 2")
