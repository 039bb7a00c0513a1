from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings, warn
from recbias.core.dataset import AnyArray, Queries, TrainingData
from recbias.core.errors import (
    BrokenContract,
    ChangedFile,
    Faults,
    MalformedLine,
    MissingFile,
    UnknownColumn,
    UnknownIdentifier,
)
from recbias.core.evidence import RankedLists, Responses, SentenceScores, check_lists
from recbias.data.lmrec import LMRecRelease, LMRecSentences
from recbias.models.given import (
    GivenLists,
    GivenResponses,
    GivenSentences,
    GivenVectors,
    LMRecLists,
    read_ids,
    read_once,
    read_vectors,
)
from recbias.testing import check_recommender, make_checkerboard
from support.files.lmrec_files import write_release
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

NAN = float("nan")


def create_data(pairs: list[tuple[int, int]] | None = None) -> TrainingData:
    return TrainingData(make_interactions(pairs or [(0, 5)], n_users=3, n_items=6))


def create_model(
    folder: Path, text: str, *, seen: str = "refuse", name: str = "mine.csv"
) -> GivenLists:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return GivenLists(path=path, seen=seen)  # type: ignore[arg-type]


def recommend_lists(
    model: GivenLists, ids: list[str], *, k: int = 3, data: TrainingData | None = None
) -> RankedLists:
    data = data or create_data()
    users = [
        data.train.user_ids.ids.tolist().index(query) if query[0] == "u" else -1 for query in ids
    ]
    fitted = model.fit(data, np.random.default_rng(0))
    return fitted.recommend(make_queries(ids, users), k, data)


def test_lists_are_in_the_order_of_the_queries_and_of_the_ranks(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu1,i0,2\nu0,i3,1\nu1,i4,1\nu0,i2,2\n")
    lists = recommend_lists(model, ["u1", "u0"])
    assert lists.items.tolist() == [[4, 0, -1], [3, 2, -1]]
    assert np.isnan(lists.scores).all()


def test_a_run_is_ordered_by_rank_and_keeps_its_scores(tmp_path: Path) -> None:
    model = create_model(tmp_path, "u0 Q0 i1 2 1.5 t\nu0 Q0 i2 1 7 t\n", name="mine.run")
    lists = recommend_lists(model, ["u0"])
    assert lists.items.tolist() == [[2, 1, -1]]
    np.testing.assert_array_equal(lists.scores, np.array([[7, 1.5, NAN]], dtype=np.float32))


def test_missing_and_additional_queries_are_counted(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,i1,1\nx,i1,1\ny,i2,1\n")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1", "u2"])
    assert lists.items[:, 0].tolist() == [1, -1, -1]
    assert warnings == [
        "mine.csv has no list for 2 of 3 queries: empty lists",
        "mine.csv has lists for 2 queries that are not in the run: excluded",
    ]


def test_items_outside_the_dataset_keep_their_rank(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,new,1\nu0,i1,2\nu0,\N{SNOWMAN},3\n")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0"])
    assert lists.items.tolist() == [[6, 1, 7]]
    assert lists.outside.tolist() == ["new", "\N{SNOWMAN}"]
    assert warnings == ["mine.csv: 2 of 3 items are not in the dataset"]
    check_lists(lists, n_queries=1, seen=None, n_items=6, model="lists")


def test_an_item_of_the_history_is_an_error(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu1,i5,1\nu0,i1,1\nu0,i5,2\n")
    with pytest.raises(BrokenContract, match="'i5' is in the query's own") as caught:
        recommend_lists(model, ["u0", "u1"])
    assert caught.value.where == f"{model.path}:4"
    assert "seen: keep" in caught.value.remedy


def test_an_item_of_the_history_is_accepted_if_seen_is_keep(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,i5,1\n", seen="keep")
    assert recommend_lists(model, ["u0"], k=1).items.tolist() == [[5]]


TWO_CITIES = (
    "dataset,query_id,item_id,rank\nA,u0,i1,1\nB,u0,i2,1\nA,u0,i3,2\nB,u1,i2,1\nB,u0,x,2\n"
)


@pytest.mark.usefixtures("stage_warnings")
def test_only_rows_of_the_dataset_are_used(tmp_path: Path) -> None:
    model = create_model(tmp_path, TWO_CITIES)
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1"], data=replace(create_data(), dataset="A"))
    assert lists.items.tolist() == [[1, 3, -1], [-1, -1, -1]]
    # nothing of B is counted: neither its item x nor its query u1
    assert warnings == ["mine.csv has no list for 1 of 2 queries: empty lists"]
    lists = recommend_lists(model, ["u0", "u1"], data=replace(create_data(), dataset="B"))
    assert lists.items.tolist() == [[2, 6, -1], [2, -1, -1]]
    assert lists.outside.tolist() == ["x"]


MASKS = "are excluded as masks: a score of -1e8 or less, or the minimum of float16, or the item -1"


def test_masked_items_are_excluded_and_counted(tmp_path: Path) -> None:
    # Elliot fills short lists with seen items of a score of minus infinity: i5 is u0's history
    model = create_model(tmp_path, "u0\ti1\t2.0\nu0\ti5\t-inf\nu1\ti5\t-inf\n", name="recs.tsv")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1"])
    assert lists.items.tolist() == [[1, -1, -1], [-1, -1, -1]]
    assert warnings == [
        "recs.tsv was read as elliot; query 'u0', item 'i1', score 2",
        f"recs.tsv: 2 rows {MASKS}",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "u0\ti3\t2\nu0\ti2\t1\nu0\ti1\t1\n"),
        (
            "a.inter",
            "user_id:token\titem_id:token\tscore:float\nu0\ti2\t1\nu0\ti1\t1\nu0\ti3\t2\n",
        ),
        ("a.json", '{"u0": {"i2": 1, "i1": 1, "i3": 2}}'),
        ("b.json", '{"u0": ["i3", "i2", "i1"]}'),
    ],
)
@pytest.mark.usefixtures("stage_warnings")
def test_ties_of_other_tools_keep_the_order_of_the_file(
    tmp_path: Path, name: str, text: str
) -> None:
    assert recommend_lists(create_model(tmp_path, text, name=name), ["u0"]).items.tolist() == [
        [3, 2, 1]
    ]


calls: list[str] = []


def read(path: Path, case: str = "as it is") -> str:
    calls.append(case)
    if not path.is_file():
        raise MissingFile(f"no file {path.name}")
    text = path.read_text(encoding="utf-8")
    if not text:
        raise MalformedLine("empty", where=str(path))
    warn(f"{path.name} was read")
    return text.upper() if case == "upper" else text


@pytest.fixture(autouse=True)
def clear_calls() -> None:
    calls.clear()


@pytest.mark.usefixtures("stage_warnings")
def test_a_file_is_read_once_and_warns_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one", encoding="utf-8")
    for _ in range(2):
        with collect_warnings() as warnings:
            assert read_once(read, path) == "one"
        assert warnings == ["a.txt was read"]
    assert len(calls) == 1
    assert read_once(read, path, "upper") == "ONE"
    assert len(calls) == 2


@pytest.mark.usefixtures("stage_warnings")
def test_a_file_of_the_same_name_and_size_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "b.txt"
    for text in ("one", "two"):
        path.write_text(text, encoding="utf-8")
        assert read_once(read, path) == text


def read_late(path: Path) -> str:
    path.write_text("two", encoding="utf-8")
    return read(path)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_text("one", encoding="utf-8")
    with pytest.raises(ChangedFile, match=r"e\.txt changed while the run was reading it"):
        read_once(read_late, path)


RNG = np.random.default_rng(0)


def create_data_lmrec_lists(folder: Path) -> tuple[Path, Queries, TrainingData]:
    path = write_release(folder)
    dataset = LMRecRelease().load(folder, RNG)
    data = TrainingData(dataset.interactions, users=dataset.users, items=dataset.items)
    return path, LMRecSentences().ask(dataset, RNG), data


def test_the_lists_are_those_of_the_file(tmp_path: Path) -> None:
    _, queries, data = create_data_lmrec_lists(tmp_path)
    lists = LMRecLists().fit(data, RNG).recommend(queries, 4, data)
    check_lists(lists, n_queries=4, seen=None, n_items=6, model="lmrec_lists")
    ids = np.append(data.train.item_ids.ids, "-")
    assert ids[lists.items].tolist() == [
        ["Pizza Place", "The Bar", "Chez Nous", "-"],
        ["Burger (1)", "Burger (2)", "Secret", "-"],
        ["The Bar", "Pizza Place", "Burger (1)", "-"],
        ["The Bar", "Burger (1)", "Burger (2)", "-"],
    ]
    assert np.isnan(lists.scores).all()


def test_prices_by_label_are_what_pandas_counts_in_the_file(tmp_path: Path) -> None:
    path, queries, data = create_data_lmrec_lists(tmp_path)
    lists = LMRecLists().fit(data, RNG).recommend(queries, 3, data)
    prices = data.items.frame["price_level"].to_numpy()[lists.items]
    raw = pd.read_csv(path)
    counted = raw.assign(price=raw["price"].astype(float)).groupby(["label", "price"]).size()
    # by hand, for $: white has The Bar, The Bar, Burger; black Burger, Burger, The Bar, Burger,
    # Burger. So black has 5 of the 8 places at $, white 3.
    for race, hand in {"white": 3, "black": 5}.items():
        mine = (queries.labels.frame["race"] == race).to_numpy()
        for level in (1.0, 2.0, 4.0):
            assert int((prices[mine] == level).sum()) == counted.get((race, level), 0)
        assert int((prices[mine] == 1.0).sum()) == hand


def read_table(folder: Path, text: str, name: str = "replies.csv") -> Responses:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    fitted = GivenResponses(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    return fitted.responses(make_queries(["u0"]))


def test_responses_are_in_the_natural_order_of_their_ids(tmp_path: Path) -> None:
    text = "query_id,response,reference,topic\n10,a cat,a|b,film\n9,,none,\n2,x,,music\n"
    responses = read_table(tmp_path, text)
    assert responses.ids.tolist() == ["2", "9", "10"]
    assert responses.texts.tolist() == ["x", "", "a cat"]
    assert responses.references.tolist() == [None, "none", "a|b"]
    assert responses.labels.to_dict("list") == {"topic": ["music", None, "film"]}


def test_json_lines_without_references(tmp_path: Path) -> None:
    responses = read_table(
        tmp_path, '{"query_id": "q", "response": "你好\\n吗"}\n', "replies.jsonl"
    )
    assert responses.texts.tolist() == ["你好\n吗"]
    assert responses.references.tolist() == [None]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("query_id,response\n1,a\n2,b\n1,c\n", "query '1' already has a response", ":4"),
        ("query_id,response\n,a\n", "query_id is empty", ":2"),
        ("query_id,response\n1,a,b\n", "3 cells, not 2", ":2"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, message: str, line: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        read_table(tmp_path, text)
    assert caught.value.where == f"{tmp_path / 'replies.csv'}{line}"


HEADER = "sentence_id,pair_id,group,"


def read_table_sentence_scores(
    folder: Path, text: str, name: str = "scores.csv"
) -> SentenceScores:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    fitted = GivenSentences(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    return fitted.sentence_scores(make_queries(["u0"]))


def test_perplexities_are_read_with_their_labels(tmp_path: Path) -> None:
    text = HEADER + "perplexity,category\ns1,p1,T1,12.5,age\ns2,p1,T2,8,age\ns3,,T1,,\n"
    sentences = read_table_sentence_scores(tmp_path, text)
    assert sentences.ids.tolist() == ["s1", "s2", "s3"]
    assert sentences.pairs.tolist() == ["p1", "p1", None]
    assert sentences.groups.tolist() == ["T1", "T2", "T1"]
    assert sentences.perplexity.tolist() == pytest.approx([12.5, 8.0, math.nan], nan_ok=True)
    assert sentences.labels.to_dict("list") == {"category": ["age", "age", None]}


# ln 1/2 = -0.6931 and ln 1/8 = -2.0794, so the perplexity is exp(1.3863) = 4; ln 1/3 = -1.0986
CELLS = HEADER + (
    "log_probabilities,kind\ns1,p1,T1,-0.69314718 -2.07944154,x\ns2,p1,T2, -1.09861229  ,y\n"
    "s3,p2,T1,,z\n"
)


def test_log_probabilities_of_tokens_make_perplexities(tmp_path: Path) -> None:
    sentences = read_table_sentence_scores(tmp_path, CELLS)
    assert sentences.ids.tolist() == ["s1", "s2", "s3"]
    assert sentences.groups.tolist() == ["T1", "T2", "T1"]
    assert sentences.perplexity.tolist() == pytest.approx([4.0, 3.0, math.nan], nan_ok=True)
    assert sentences.labels.to_dict("list") == {"kind": ["x", "y", "z"]}


def test_parquet_holds_lists_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    logs = [[math.log(0.5)], [math.log(0.25), math.log(0.25)]]
    columns = {"sentence_id": ["1", "2"], "pair_id": ["1", "1"], "group": ["a", "b"]}
    pd.DataFrame({**columns, "log_probabilities": logs}).to_parquet(path)
    fitted = GivenSentences(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    assert fitted.sentence_scores(make_queries(["u0"])).perplexity.tolist() == pytest.approx(
        [2.0, 4.0]
    )


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("perplexity\ns1,p1,T1,3\ns2,p1,T2,much\n", "the perplexity 'much' is not a number", ":3"),
        ("perplexity\ns1,p1,T1,0\n", "a perplexity of 0", ":2"),
        ("perplexity\ns1,p1,T1,0.93\n", "a perplexity of 0.93", ":2"),
        ("perplexity\ns1,p1,T1,inf\n", "not finite", ":2"),
        (
            "perplexity\ns1,p1,T1,3\ns2,p1,T1,4\n",
            "pair 'p1' already has a row of group 'T1'",
            ":3",
        ),
        (
            "perplexity\ns1,p1,T1,3\ns1,p2,T1,4\n",
            "sentence 's1' already has a row of group 'T1'",
            ":3",
        ),
        ("perplexity\n,p1,T1,3\n", "sentence_id is empty", ":2"),
        ("perplexity\n", "no rows", ""),
        ("log_probabilities\ns1,p1,T1,-1\ns2,p1,T2,-1 0.5\n", "log-probability of 0.5", ":3"),
        ("log_probabilities\ns1,p1,T1,-1\ns2,p1,T2,-1;-2\n", "'-1;-2' is not a number", ":3"),
        ("log_probabilities\ns1,p1,T1,-9999\n", "not finite", ":2"),
    ],
)
def test_bad_rows_are_named_sentence_scores(
    tmp_path: Path, text: str, message: str, line: str
) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        read_table_sentence_scores(tmp_path, HEADER + text)
    assert caught.value.where == f"{tmp_path / 'scores.csv'}{line}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence_id,group,perplexity\ns1,T1,3\n", "no column 'pair_id'"),
        (HEADER + "score\ns1,p1,T1,3\n", "there is no perplexity"),
        (HEADER + "perplexity,log_probabilities\ns1,p1,T1,3,-1\n", "both give the score"),
    ],
)
def test_absent_columns_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnknownColumn, match=message):
        read_table_sentence_scores(tmp_path, text)


USERS = np.array([[1.0, 0.0], [0.0, 1.0]])


ITEMS = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])


def create_model_vectors(
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


def create_data_vectors(n_users: int = 2, n_items: int = 4) -> TrainingData:
    """Everybody has had the last item only; user 1 also the first."""
    pairs = [(user, n_items - 1) for user in range(n_users)]
    pairs_of_last_user = [(n_users, item) for item in range(n_items)]
    return TrainingData(
        make_interactions(
            [*pairs, (1, 0), *pairs_of_last_user], n_users=n_users + 1, n_items=n_items
        )
    )


def recommend_items(model: GivenVectors, ids: list[str], users: list[int]) -> list[list[int]]:
    data = create_data_vectors()
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
    lists = recommend_items(create_model_vectors(tmp_path, score=score), ["u0", "u1"], [0, 1])
    assert lists == [first, second]


def test_vectors_are_put_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    model = create_model_vectors(tmp_path, user_ids="u1\nx\n", item_ids="i2\ni0\nother\n")
    with collect_warnings() as warnings:
        vectors = model.fit(create_data_vectors(), np.random.default_rng(0)).embeddings()
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
    model = create_model_vectors(
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
    [(b"a\nb\na\n", ":3", "'a' has another line"), (b"\xff\n", ":1", "not UTF-8")],
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
    model = create_model_vectors(tmp_path, items=np.ones((3, 5)))
    with pytest.raises(BrokenContract, match="vectors of size 5; those of the users have 2"):
        model.fit(create_data_vectors(), np.random.default_rng(0))


def test_errors_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    model = create_model_vectors(tmp_path, users=np.array([[np.nan, 1.0]]), item_ids="i0\ni0\n")
    with pytest.raises(Faults) as caught:
        model.check_files(["here"])
    assert [error.where for error in caught.value.faults] == [
        str(model.users),
        f"{model.item_ids}:2",
    ]


def test_check_files_compares_the_files(tmp_path: Path) -> None:
    create_model_vectors(tmp_path).check_files(["here"])
    with pytest.raises(BrokenContract, match="2 ids for 3 vectors"):
        create_model_vectors(tmp_path, item_ids="i0\ni1\n").check_files(["here"])


def test_a_file_without_vectors_is_refused(tmp_path: Path) -> None:
    model = create_model_vectors(tmp_path, items=np.ones((0, 2)), item_ids="")
    with pytest.raises(MalformedLine, match="holds no vector"):
        model.fit(create_data_vectors(), np.random.default_rng(0))


def test_absent_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"v\.npy"):
        read_vectors(tmp_path / "v.npy")
    with pytest.raises(MissingFile, match=r"ids\.txt"):
        read_ids(tmp_path / "ids.txt")


def test_ids_that_the_dataset_writes_otherwise_are_named(tmp_path: Path) -> None:
    model = create_model_vectors(tmp_path, item_ids="i0\nI1\nI2\n")
    with collect_warnings() as warnings:
        model.fit(create_data_vectors(), np.random.default_rng(0))
    assert "i.txt: 2 of 3 items are not in the dataset: 'I1' is written 'i1' there" in warnings[1]
    with pytest.raises(UnknownIdentifier) as caught:
        create_model_vectors(tmp_path, user_ids="u00\n u1\n").fit(
            create_data_vectors(), np.random.default_rng(0)
        )
    assert caught.value.remedy.startswith("' u1' is written 'u1' there: 1 of 2")
