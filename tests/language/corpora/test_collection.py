from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.errors import MalformedLine, MissingFile, NothingLeft, UnknownColumn, WrongType
from recbias.language.corpora import CollectionSettings, collect_sentences, read_posts
from recbias.language.terms import TermPairs

AGE = TermPairs(
    "age",
    ("old", "young"),
    (("grandmother", "girl"), ("old man", "young man")),
    (("slow", "fast"), ("tired", None)),
    whole_words=True,
)
TERMS = {"age": AGE}


def test_sentences_with_a_keyword_are_collected() -> None:
    posts = [
        "@ann The Old Man is slow!!",
        "the old man is here",
        "slow and tired",
        "My grandmother is slow and tired",
        "slowly, grandmother",
    ]
    collection = collect_sentences(posts, TERMS)
    assert [row["text"] for row in collection.rows] == [
        "The Old Man is slow!",
        "My grandmother is slow and tired",
    ]
    assert collection.rows[1] == {
        "id": "age-2",
        "text": "My grandmother is slow and tired",
        "group": "old",
        "category": "age",
        "target_term": "grandmother",
        "attribute_term": "slow",
    }
    assert collection.counts["posts"] == 5
    assert (collection.counts["keywords"], collection.counts["keywords_with_sentences"]) == (4, 2)


def test_duplicates_and_long_sentences_are_counted() -> None:
    posts = ["A slow old man.", "A slow old man. @bob", "A slow old man who walks far."]
    collection = collect_sentences(posts, TERMS, CollectionSettings(max_words=6))
    assert len(collection.rows) == 1
    assert (collection.counts["duplicates"], collection.counts["too_long"]) == (1, 1)


def test_each_keyword_has_a_maximum() -> None:
    posts = [f"slow old man {number}" for number in range(5)] + ["slow and tired old man"]
    collection = collect_sentences(posts, TERMS, CollectionSettings(max_per_keyword=2))
    assert [row["attribute_term"] for row in collection.rows] == ["slow", "slow", "tired"]
    assert collection.counts["beyond_maximum"] == 3


def collect_texts(posts: list[str], pairs: TermPairs = AGE, **settings: Any) -> list[str]:
    collection = collect_sentences(posts, {"age": pairs}, CollectionSettings(**settings))
    return [row["text"] for row in collection.rows]


def test_the_sentence_of_a_post_that_has_the_keyword_is_collected() -> None:
    post = "i went home. My grandmother is slow! nothing else.\nThe old man\nis slow"
    assert collect_texts([post]) == ["My grandmother is slow!"]
    chinese = replace(
        AGE, targets=(("奶奶", "姑娘"),), attributes=(("慢", None),), whole_words=False
    )
    posts = ["今天好。我的奶奶很慢\uff01她做饭。", "奶奶来了?真慢", "我的奶奶在家。他很慢。"]
    assert collect_texts(posts[:1], chinese) == ["我的奶奶很慢\uff01"]
    with pytest.raises(NothingLeft, match="none of the 2 posts has a sentence"):
        collect_texts(posts[1:], chinese)


def test_whole_posts_are_collected_if_asked_for() -> None:
    post = "Nothing here. My grandmother is at home. She is slow."
    assert collect_texts([post], unit="post") == [post]
    # in parts of 8 words each term stands in another part
    with pytest.raises(NothingLeft):
        collect_texts([post], unit="post", max_words=8)


def test_posts_of_another_language_are_refused() -> None:
    with pytest.raises(NothingLeft, match="none of the 1 posts") as caught:
        collect_sentences(["奶奶很慢"], TERMS)
    assert "language and script" in caught.value.remedy
    with pytest.raises(NothingLeft, match="terms of age have no attributes"):
        collect_sentences(["slow"], {"age": replace(AGE, attributes=())})
    with pytest.raises(NothingLeft, match="there are no posts"):
        collect_sentences([], TERMS)


def test_all_formats_hold_the_same_posts(tmp_path: Path) -> None:
    posts = ["one, two", 'a "quoted" post', "三"]
    frame = pd.DataFrame({"id": range(3), "text": posts})
    frame.to_csv(tmp_path / "posts.csv", index=False)
    frame.to_csv(tmp_path / "posts.tsv.gz", sep="\t", index=False)
    frame.to_json(tmp_path / "posts.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "posts.parquet")
    (tmp_path / "posts.txt.gz").write_bytes(gzip.compress("\n\n".join(posts).encode()))
    for path in sorted(tmp_path.iterdir()):
        assert list(read_posts(path)) == posts, path


def test_faulty_corpora_are_named(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,post\n1,a\n")
    with pytest.raises(UnknownColumn, match="no column 'text'"):
        list(read_posts(tmp_path / "posts.csv"))
    (tmp_path / "posts.jsonl").write_text('{"text": "a"}\n{"post": "b"}\n')
    with pytest.raises(UnknownColumn, match="no text") as caught:
        list(read_posts(tmp_path / "posts.jsonl"))
    assert caught.value.where.endswith("posts.jsonl:2")
    (tmp_path / "posts.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(MalformedLine, match="is not UTF-8") as fault:
        list(read_posts(tmp_path / "posts.txt"))
    assert fault.value.where.endswith("posts.txt:2")
    with pytest.raises(MissingFile):
        list(read_posts(tmp_path / "absent.txt"))
    with pytest.raises(WrongType):
        list(read_posts(tmp_path / "posts.docx"))
