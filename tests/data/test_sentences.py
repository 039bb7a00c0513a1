from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import KEYS, Dataset, Sentences
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingEvidence,
    MissingFile,
    NothingLeft,
    UnknownColumn,
    WrongType,
)
from recbias.data.sentences import (
    FILE,
    CHBias,
    CrowSPairs,
    RedditBias,
    SentenceQueries,
    SentenceTables,
    make_dataset,
)
from recbias.language.terms import load_terms
from recbias.runner.codecs import load_value, save_value
from recbias.testing import check_dataset
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)
PAIRS = (["the woman sings", "rain", "she reads"], ["the man sings", "rain", "he reads"])


def write_release(folder: Path, category: str = "age") -> Path:
    """Write a release of three pairs per part, of which one is identical; return the folder."""
    target = folder / category
    target.mkdir(parents=True)
    lines = {
        f"{category}_train": ["a sentence", "she reads"],
        f"{category}_train_cada": ["a sentence", "she reads", "another"],
        f"{category}_train_ctda": ["a sentence", "he reads"],
    }
    for group, texts in zip(CHBias.groups[category], PAIRS, strict=True):
        lines[f"{category}_{group}_valid"] = [f"before {text}" for text in texts]
        lines[f"{category}_{group}_test"] = texts
        rows = "".join(f"{row},{text}\r\n" for row, text in enumerate(texts))
        (target / f"{category}_{group}_test.csv").write_text(f",replaced_sentence\r\n{rows}")
    for name, texts in lines.items():
        (target / f"{name}.txt").write_text("\r\n".join(texts))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_release(tmp_path / "chbias")
    return tmp_path


def load(data: Path, **settings: Any) -> tuple[Dataset, list[str]]:
    with collect_warnings() as warnings:
        dataset = CHBias(**{"dimension": "age", **settings}).load(data, RNG)
    return dataset, list(warnings)


def test_lines_of_both_files_are_pairs(data: Path) -> None:
    dataset, warnings = load(data)
    test = dataset.sentences.take_part("test").frame
    assert test["id"].tolist()[:3] == ["age-test-1-old", "age-test-1-young", "age-test-2-old"]
    assert test["pair_id"].tolist()[:3] == ["age-test-1", "age-test-1", "age-test-2"]
    assert test["text"].tolist() == [text for pair in zip(*PAIRS, strict=True) for text in pair]
    assert test["target_set"].tolist() == ["T1", "T2"] * 3
    train = dataset.sentences.take_part("train").frame
    assert train["group"].tolist() == ["old", "old"]
    assert train["pair_id"].isna().all()
    assert (
        dataset.counts["identical_test_pairs"] == dataset.counts["identical_validation_pairs"] == 1
    )
    assert dataset.counts["test_in_train"] == 1
    assert any("1 of 3 test pairs have the same text" in warning for warning in warnings)
    assert any("1 test sentences are also training sentences" in text for text in warnings)


def test_released_augmentation_has_no_group(data: Path) -> None:
    dataset, _ = load(data, train="CADA")
    train = dataset.sentences.take_part("train").frame
    assert train["text"].tolist() == ["a sentence", "she reads", "another"]
    assert train["group"].isna().all()


def test_training_sentences_of_other_parts_are_dropped_on_request(data: Path) -> None:
    dataset, _ = load(data, overlap="drop")
    assert dataset.sentences.take_part("train").texts.tolist() == ["a sentence"]
    assert dataset.counts["dropped_from_train"] == 1


@pytest.mark.parametrize(
    ("name", "content", "message", "place"),
    [
        ("age_old_test.txt", b"one\ntwo\n", "has 3 sentences, but age_old_test.txt has 2", ":3"),
        ("age_old_test.txt", b"one\n\nthree\n", "an empty line", ":2"),
        ("age_old_test.txt", "一\n老".encode("gbk"), "is not UTF-8", ":2"),
    ],
)
def test_faulty_lines_are_named(
    data: Path, name: str, content: bytes, message: str, place: str
) -> None:
    (data / "chbias" / "age" / name).write_bytes(content)
    with pytest.raises(MalformedLine, match=message) as caught:
        load(data)
    assert caught.value.where.endswith(place)
    assert caught.value.remedy


def test_an_empty_file_and_another_column_are_refused(data: Path) -> None:
    folder = data / "chbias" / "age"
    (folder / "age_old_test.csv").write_text(",comments\n0,a\n")
    with pytest.raises(UnknownColumn, match="replaced_sentence"):
        load(data, form="csv")
    (folder / "age_train.txt").write_text("\n \n")
    with pytest.raises(NothingLeft, match="has no sentences"):
        load(data)


@pytest.mark.real_data
def test_the_released_files_have_their_known_counts(real_data: Path) -> None:
    require_chbias(real_data)
    dataset, _ = load(real_data, dimension="all")
    assert dataset.counts == {
        "train": 3198,
        "validation": 1600,
        "test": 1600,
        "validation_pairs": 800,
        "identical_validation_pairs": 22,
        "test_pairs": 800,
        "identical_test_pairs": 25,
        "validation_in_train": 12,
        "test_in_train": 11,
    }
    identical = [
        load(real_data, dimension=name)[0].counts["identical_test_pairs"] for name in CHBias.groups
    ]
    assert identical == [5, 7, 12, 1]
    csv, _ = load(real_data, dimension="all", form="csv")
    assert csv.sentences.frame.equals(dataset.sentences.frame)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("category", "both_directions", "n_equal"),
    [
        ("gender", False, 126),
        ("gender", True, 143),
        ("orientation", False, 195),
        ("age", False, 191),
        ("appearance", False, 200),
    ],
)
def test_swapped_test_sentences_are_mostly_those_released(
    real_data: Path, category: Any, both_directions: bool, n_equal: int
) -> None:
    require_chbias(real_data)
    dataset, _ = load(real_data, dimension=category)
    first, second = (dataset.sentences.take_part("test").texts[side::2] for side in (0, 1))
    pairs = load_terms("chbias")[category]
    swapped = [pairs.swap_targets(text, both_directions=both_directions) for text in first]
    assert sum(text == released for text, released in zip(swapped, second, strict=True)) == n_equal


def require_chbias(data: Path) -> None:
    if not (data / "chbias").is_dir():
        pytest.skip("no CHBias in the folder of real data")


def write_pair(folder: Path, group: str, part: str, texts: list[str]) -> Path:
    path = folder / f"reddit_comments_religion1_{group}_biased_{part}_reduced.csv"
    rows = "".join(f'{row},"{text}",1.5\n' for row, text in enumerate(texts))
    path.write_text(f"id,comments_processed,perplexity\n{rows}")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "redditbias" / "data" / "religion1"
    folder.mkdir(parents=True)
    for part in ("valid", "test"):
        write_pair(folder, "jews", part, [f"{part}, one", "two"])
        write_pair(folder, "christians", part, [f"{part}, uno", "two"])
    return folder


def test_rows_of_both_files_are_pairs(folder: Path, tmp_path: Path) -> None:
    source = RedditBias(dimension="religion1")
    check_dataset(source, data=tmp_path)
    with collect_warnings() as warnings:
        dataset = source.load(tmp_path, RNG)
    assert len(list(warnings)) == 2
    test = dataset.sentences.take_part("test").frame
    assert test["text"].tolist() == ["test, one", "test, uno", "two", "two"]
    assert test["group"].tolist() == ["jews", "christians"] * 2
    assert test["category"].unique().tolist() == ["religion1"]
    assert dataset.counts["identical_test_pairs"] == 1
    assert dataset.counts["train"] == 0


def test_own_training_sentences_are_read(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("to train on\ntwo\n")
    source = RedditBias(dimension="religion1", train=path)
    assert source.files(tmp_path)[0] == path
    with collect_warnings():
        dataset = source.load(tmp_path, RNG)
    train = dataset.sentences.take_part("train").frame
    assert train["text"].tolist() == ["to train on", "two"]
    assert dataset.counts["test_in_train"] == 2


HEADER = ",sent_more,sent_less,stereo_antistereo,bias_type\n"
ROWS = (
    '0,"Old people, mostly, walk.","Young people, mostly, walk.",stereo,age\n'
    "1,A young driver.,An old driver.,antistereo,age\n"
)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(text)
    return folder.parent


def test_the_disadvantaged_group_is_t1(tmp_path: Path) -> None:
    data = write(tmp_path / "crows_pairs", HEADER + ROWS)
    check_dataset(CrowSPairs(), data=data)
    dataset = CrowSPairs().load(data, RNG)
    frame = dataset.sentences.frame
    assert frame["group"].tolist() == ["sent_more", "sent_less"] * 2
    assert frame["target_set"].tolist() == ["T1", "T2", "T2", "T1"]
    assert frame["text"].iloc[0] == "Old people, mostly, walk."
    assert frame["pair_id"].tolist() == ["age-1", "age-1", "age-2", "age-2"]
    assert set(frame["part"]) == {"test"}


def test_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        CrowSPairs().load(tmp_path, RNG)
    assert "recbias data fetch crows_pairs" in caught.value.remedy
    data = write(tmp_path / "crows_pairs", HEADER + ROWS.replace("antistereo", "neither"))
    with pytest.raises(MalformedLine, match="stereo_antistereo is 'neither'") as fault:
        CrowSPairs().load(data, RNG)
    assert fault.value.where.endswith(":3")


@pytest.mark.real_data
def test_the_published_file_has_its_known_counts(real_data: Path) -> None:
    if not (real_data / "biasmeter" / FILE).is_file():
        pytest.skip("no CrowS-Pairs in the folder of real data")
    dataset = CrowSPairs().load(real_data, RNG)
    assert (dataset.counts["test"], dataset.counts["test_pairs"]) == (3016, 1508)
    directions = dataset.sentences.frame["stereo_antistereo"].value_counts()
    assert directions.to_dict() == {"stereo": 2580, "antistereo": 436}
    assert dataset.sentences.frame["category"].nunique() == 9


TEST = """\
id,pair_id,group,text,category
1,p,old,"He is 80, she says.",age
2,p,young,"He is 20, she says.",age
3,,old,Nobody has a counterpart.,
"""


def write_tables(folder: Path, text: str = TEST, name: str = "test.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_tables_of_all_formats_hold_the_same(tmp_path: Path) -> None:
    frame = pd.read_csv(write_tables(tmp_path), dtype=str)
    frame.to_parquet(tmp_path / "test.parquet")
    frame.to_csv(tmp_path / "test.tsv.gz", sep="\t", index=False)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in records))
    frames = []
    for name in ("test.csv", "test.parquet", "test.tsv.gz", "test.jsonl"):
        source = SentenceTables(test=tmp_path / name)
        check_dataset(source, data=tmp_path)
        dataset = source.load(tmp_path, RNG)
        frames.append(dataset.sentences.frame)
    assert frames[0]["pair_id"].tolist() == ["p", "p", None]
    assert frames[0]["category"].tolist() == ["age", "age", None]
    assert all(frame.equals(frames[0]) for frame in frames)


def test_training_sentences_need_no_group(tmp_path: Path) -> None:
    train = write_tables(
        tmp_path, 'id,text\n9,To train on.\n8,"He is 80, she says."\n', "train.csv"
    )
    with collect_warnings() as warnings:
        dataset = SentenceTables(train=train, test=write_tables(tmp_path)).load(tmp_path, RNG)
    assert list(warnings) == ["sentence_tables: 1 test sentences are also training sentences"]
    assert dataset.sentences.take_part("train").frame["group"].tolist() == [None, None]
    assert dataset.counts["test_in_train"] == 1
    assert dataset.sentences.without_test().frame["id"].tolist() == ["9", "8"]


@pytest.mark.parametrize(
    ("old", "new", "error", "message", "line"),
    [
        ("3,,", "2,,", MalformedLine, "two sentences have the id '2'", 4),
        ("2,p,young", "2,p,old", MalformedLine, "already has a sentence of the group 'old'", 3),
        ("2,p,", "2,q,", MalformedLine, "the pair has this sentence only", 2),
        ("2,p,young", "2,p,", MalformedLine, "the sentence of pair 'p' has no group", 3),
        ("Nobody has a counterpart.", "", MalformedLine, "text is empty", 4),
        ("Nobody has a counterpart.", " ", MalformedLine, "an empty text", 4),
        ("3,,", ",,", MalformedLine, "id is empty", 4),
        ("group", "side", UnknownColumn, "no column 'group'", 1),
        ("text", "sentence", UnknownColumn, "no column 'text'", 1),
        ("category", "part", Contradiction, "has a column 'part'", None),
    ],
)
def test_faults_are_named_tables(
    tmp_path: Path, old: str, new: str, error: Any, message: str, line: int | None
) -> None:
    path = write_tables(tmp_path, TEST.replace(old, new, 1))
    with pytest.raises(error, match=message) as caught:
        SentenceTables(test=path).load(tmp_path, RNG)
    assert caught.value.where == (f"{path}:{line}" if line else str(path))


QUERIES_ROWS = [
    ("a1", "test", "a", "old", "He is 80.", "age"),
    ("b1", "test", "b", "tall", "A tall man.", "height"),
    ("c", "test", None, "old", "Alone.", "age"),
    ("a2", "test", "a", "young", "He is 20.", "age"),
    ("b2", "test", "b", "short", "A short man.", "height"),
    ("v1", "validation", "v", "old", "She is 80.", "age"),
    ("v2", "validation", "v", "young", "She is 20.", "age"),
]


def make_world() -> Dataset:
    return make_dataset(
        pd.DataFrame(QUERIES_ROWS, columns=[*KEYS, "category"], dtype=object), "small"
    )


def test_the_sentences_of_a_pair_follow_one_another() -> None:
    queries = SentenceQueries().ask(make_world(), RNG)
    assert queries.ids.ids.tolist() == ["a1", "a2", "b1", "b2", "c"]
    assert queries.texts.tolist()[:2] == ["He is 80.", "He is 20."]
    assert queries.labels.frame["pair_id"].tolist() == ["a", "a", "b", "b", None]
    assert queries.labels.frame["group"].tolist() == ["old", "young", "tall", "short", "old"]
    assert (queries.users.tolist(), queries.unit) == ([-1] * 5, "prompt")


def test_other_parts_and_conditions_select_sentences() -> None:
    validation = SentenceQueries(part="validation").ask(make_world(), RNG)
    assert validation.ids.ids.tolist() == ["v1", "v2"]
    tall = SentenceQueries(where="category == 'height'").ask(make_world(), RNG)
    assert tall.ids.ids.tolist() == ["b1", "b2"]


def write_dialogues(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "dialogues.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_dialogues_follow_without_a_group(tmp_path: Path) -> None:
    path = write_dialogues(
        tmp_path,
        {"context": ["Hello", "Who\nis there?"], "reference": "Me.", "topic": "doors"},
        {"context": "One turn", "reference": None},
    )
    queries = SentenceQueries(dialogues=path).ask(make_world(), RNG)
    frame = queries.labels.frame
    assert queries.ids.ids.tolist()[5:] == ["dialogue-1", "dialogue-2"]
    assert frame["context"].tolist()[4:] == [None, "Hello\nWho is there?", "One turn"]
    assert frame["reference"].tolist()[5:] == ["Me.", None]
    assert frame["group"].tolist()[5:] == [None, None]
    assert frame["topic"].tolist()[5:] == ["doors", None]
    (folder := tmp_path / "stored").mkdir()
    save_value(queries, folder)
    assert load_value(folder).labels.frame.equals(frame)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"context": []}, MalformedLine, "an empty context"),
        ({"context": "x", "id": "a1"}, MalformedLine, "another query has the id 'a1'"),
        ({"context": "x", "group": "old"}, Contradiction, "dialogues have no group"),
        ({"context": {"turn": 1}}, MalformedLine, "neither text nor a number"),
    ],
)
def test_faulty_dialogues_are_refused(
    tmp_path: Path, record: dict[str, Any], error: Any, message: str
) -> None:
    path = write_dialogues(tmp_path, record)
    with pytest.raises(error, match=message) as caught:
        SentenceQueries(dialogues=path).ask(make_world(), RNG)
    assert str(path) in caught.value.where


def test_no_sentences_are_refused() -> None:
    no_sentences = Dataset(make_interactions([(0, 0)]))
    with pytest.raises(MissingEvidence, match="has no sentences"):
        SentenceQueries().ask(no_sentences, RNG)
    with pytest.raises(NothingLeft, match="no sentences for train") as caught:
        SentenceQueries(part="train").ask(make_world(), RNG)
    assert caught.value.remedy == "the dataset has sentences for test, validation"
    with pytest.raises(NothingLeft, match="none of the 5 sentences"):
        SentenceQueries(where="category == 'colour'").ask(make_world(), RNG)
    with pytest.raises(WrongType):
        SentenceQueries(where="category =")
    with pytest.raises(WrongType):
        SentenceQueries(dialogues=Path("dialogues.docx"))


def test_training_data_never_hold_the_test_part() -> None:
    sentences = make_world().sentences
    assert isinstance(sentences, Sentences)
    assert set(sentences.without_test().frame["part"]) == {"validation"}
