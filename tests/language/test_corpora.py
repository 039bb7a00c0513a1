from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import (
    MalformedLine,
    MissingFile,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from recbias.formats.text_files import FORMULA_STARTS
from recbias.language.corpora import (
    CollectionSettings,
    Swap,
    clean_text,
    collect_sentences,
    count_words,
    divide_sentences,
    read_posts,
    split_sentences,
    split_text,
    swap_sentences,
)
from recbias.language.terms import TermPairs


@pytest.mark.parametrize(
    ("post", "cleaned"),
    [
        ("see https://t.cn/A6x?b=1看这里", "see 看这里"),
        ("www.example.org/page now", "now"),
        ("//@someone:yes @某人 好", "yes 好"),
        ("mail me: ann@example.org", "mail me: ann@example.org"),
        ("#天气#今天下雨[泪]", "今天下雨"),
        ("rain \U0001f327\ufe0f\u2614 again", "rain again"),
        ("family \U0001f469\u200d\U0001f467", "family"),
        ("what??!!!", "what?!"),
        ("真的\uff1f\uff1f\uff1f好……", "真的\uff1f好…"),
        ("  one\n two\t", "one two"),
        ("=HYPERLINK(1)", "HYPERLINK(1)"),
        ("-- +1", "1"),
        ("3 - 2 = 1", "3 - 2 = 1"),
        ("\U0001f600", ""),
    ],
)
def test_what_belongs_to_the_platform_is_removed(post: str, cleaned: str) -> None:
    assert clean_text(post) == cleaned


@given(st.text())
def test_cleaned_text_is_one_line_and_no_formula(post: str) -> None:
    cleaned = clean_text(post)
    assert cleaned == " ".join(cleaned.split())
    assert not cleaned.startswith(FORMULA_STARTS)


def test_long_texts_are_divided_at_sentence_ends() -> None:
    text = "他走了。她来了！我们吃饭。"
    assert list(split_text(text, 13, whole_words=False)) == [text]
    assert list(split_text(text, 9, whole_words=False)) == ["他走了。她来了！", "我们吃饭。"]
    assert list(split_text(text, 2, whole_words=False)) == ["他走了。", "她来了！", "我们吃饭。"]
    assert list(split_text("3.5 is one. Two", 3, whole_words=True)) == ["3.5 is one.", "Two"]


@given(st.text(alphabet="ab .。!", max_size=60), st.integers(1, 12))
def test_division_loses_no_character(text: str, max_words: int) -> None:
    runs = list(split_text(text, max_words, whole_words=False))
    assert "".join("".join(runs).split()) == "".join(text.split())
    sentences = [part for run in runs for part in split_text(run, 1, whole_words=False)]
    for run in runs:
        is_short = count_words(run, whole_words=False) <= max_words
        assert is_short or run in sentences


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


DIVISION_TERMS = {
    "age": TermPairs("age", ("old", "young"), (("old", "young"),), (("slow", "fast"),)),
    "height": TermPairs("height", ("short", "tall"), (("short", "tall"),)),
}
ROWS = [
    {"id": f"{category}-{number}", "text": f"a {term} man {number}", "category": category}
    for category, term in (("age", "old"), ("height", "short"))
    for number in range(12)
]


def test_parts_are_disjoint_and_of_the_sizes() -> None:
    division = divide_sentences(ROWS, DIVISION_TERMS, (5, 2, 3), np.random.default_rng(3))
    sizes = {part: len(rows) for part, rows in division.parts.items()}
    assert sizes == {"train": 10, "validation": 8, "test": 12}
    assert (division.unused, division.identical) == (4, 0)
    sources = [{row.get("pair_id", row["id"]) for row in rows} for rows in division.parts.values()]
    assert sum(map(len, sources)) == len(set.union(*sources)) == 20
    assert {row["group"] for row in division.parts["train"]} == {"old", "short"}
    first, second = division.parts["test"][:2]
    assert (first["group"], second["group"]) == ("old", "young")
    assert (first["target_set"], second["target_set"]) == ("T1", "T2")
    assert first["text"].replace("old", "young") == second["text"]
    assert first["pair_id"] == second["pair_id"]


def test_the_seed_decides() -> None:
    parts = [
        divide_sentences(ROWS, DIVISION_TERMS, (5, 2, 3), np.random.default_rng(seed)).parts
        for seed in (1, 1, 2)
    ]
    assert parts[0] == parts[1] != parts[2]


def test_repeated_sentences_are_used_once_and_identical_pairs_counted() -> None:
    rows = [*ROWS[:4], {**ROWS[0], "id": "again"}, {**ROWS[0], "id": "x", "text": "a man"}]
    division = divide_sentences(rows, DIVISION_TERMS, (0, 0, 5), np.random.default_rng(0))
    assert len(division.parts["test"]) == 10
    assert division.identical == 1
    assert {row["pair_id"] for row in division.parts["test"]} == {
        "age-0",
        "age-1",
        "age-2",
        "age-3",
        "x",
    }


def test_too_few_sentences_and_unknown_categories_are_refused() -> None:
    with pytest.raises(OutOfRange, match="age has 12 different sentences, fewer than") as caught:
        divide_sentences(ROWS, DIVISION_TERMS, (800, 200, 200), np.random.default_rng(0))
    assert "--train" in caught.value.remedy
    with pytest.raises(UnknownName, match="no category 'colour'"):
        swap_sentences([{**ROWS[0], "category": "colour"}], DIVISION_TERMS)
    row = {**ROWS[0], "text": "nobody"}
    with pytest.raises(NothingLeft, match="target term of age"):
        divide_sentences([row], DIVISION_TERMS, (0, 0, 1), np.random.default_rng(0))


def test_attributes_are_swapped_as_groups_of_their_own() -> None:
    row = {"id": "1", "text": "a slow old man", "category": "age"}
    copies = swap_sentences([row], DIVISION_TERMS, "attributes")
    assert [copy["text"] for copy in copies] == ["a slow old man", "a fast old man"]
    assert [copy["group"] for copy in copies] == ["A1", "A2"]
    assert [copy["id"] for copy in copies] == ["1-A1", "1-A2"]
    back = swap_sentences(
        [{**row, "text": "a fast young man"}], DIVISION_TERMS, both_directions=True
    )
    assert back[1]["text"] == "a fast old man"


@pytest.mark.parametrize("swap", ["targets", "attributes"])
def test_terms_of_another_script_are_refused(swap: Swap) -> None:
    row = {"id": "1", "text": "她的姐姐", "category": ROWS[0]["category"]}
    with pytest.raises(NothingLeft, match=f"none of the 1 sentences has one of the {swap}"):
        swap_sentences([row], DIVISION_TERMS, swap)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Fox met Dr. Owl vs. St. John.", ["Mr. Fox met Dr. Owl vs. St. John."]),
        (
            "He paid 3.50 in the U.S. Army, e.g. once.",
            ["He paid 3.50 in the U.S. Army, e.g. once."],
        ),
        ('"Run!" She ran... Then 2 more.', ['"Run!"', "She ran...", "Then 2 more."]),
        ("So did I. Then it ended.", ["So did I.", "Then it ended."]),
        ("A line\nanother\n\n", ["A line", "another"]),
        ("他来了。她走了！再见", ["他来了。", "她走了！", "再见"]),
        ("Он пришёл. Она ушла.", ["Он пришёл.", "Она ушла."]),
        ("", []),
        ("  ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected
