"""Collection of sentences that name a group and have an attribute term, from a corpus of posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.suggestions import suggest
from recbias.formats.delimited import read_cells
from recbias.formats.json_files import parse_json
from recbias.formats.tables import find_suffix, read_text_table
from recbias.formats.text_files import DELIMITERS, get_suffix, open_text
from recbias.language.corpora.cleaning import (
    clean_sentences,
    clean_text,
    count_words,
    split_text,
)
from recbias.language.terms.term_pairs import TermPairs, compile_terms

COUNTS = ("posts", "sentences", "duplicates", "too_long", "beyond_maximum")
"""What is counted, besides keywords."""


Unit: TypeAlias = Literal["sentence", "post"]
"""What is collected."""


@dataclass(frozen=True, kw_only=True)
class CollectionSettings:
    """How sentences are collected.

    Args:
        max_per_keyword: The largest number of sentences for a pair of target and attribute term.
        max_words: The longest sentence in words; in characters for a language without spaces.
        unit: ``sentence``, which has both terms of its keyword, or ``post``: a whole post, of
            which the terms may stand in different sentences; a post of more than ``max_words`` is
            divided at the ends of sentences into the longest parts that are short enough.
    """

    max_per_keyword: int = 100
    max_words: int = 130
    unit: Unit = "sentence"


@dataclass(frozen=True, eq=False)
class Collection:
    """The collected sentences, and counts of the posts and of the sentences left out.

    Args:
        rows: A record per sentence: ``id``, ``text``, ``group``, ``category``, ``target_term`` and
            ``attribute_term``.
        counts: ``COUNTS``, and ``keywords`` and ``keywords_with_sentences``.
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(COUNTS, 0)))


def collect_sentences(
    posts: Iterable[str],
    terms: Mapping[str, TermPairs],
    settings: CollectionSettings | None = None,
) -> Collection:
    """Return the sentences of posts that have a keyword: a target and an attribute term.

    A keyword is a target term of the first group (T1) with a negative attribute term (A1). Posts
    are cleaned and divided into sentences, and both terms of a keyword stand in one sentence. A
    sentence is taken once, for the first of its keywords that has not the maximum yet; posts are
    read in their order.

    Args:
        posts: The texts of the posts, read once.
        terms: The terms of each category.
        settings: How sentences are collected.

    Raises:
        NothingLeft: There are no posts, a category has no attribute terms, or no sentence has a
            keyword.
    """
    for category, pairs in terms.items():
        if not pairs.attributes:
            message = f"the terms of {category} have no attributes to search for"
            raise NothingLeft(message, remedy="add attributes: [[slow, fast]] to the terms")
    settings = settings or CollectionSettings()
    collection = Collection()
    searches = [_KeywordSearch(pairs) for pairs in terms.values()]
    seen: set[str] = set()
    for post in posts:
        collection.counts["posts"] += 1
        _add_post(post, searches, settings, collection, seen)
    _refuse_empty(collection, terms)
    collection.counts["sentences"] = len(collection.rows)
    collection.counts["keywords"] = sum(
        len(pairs.target_terms) * len(pairs.attribute_terms) for pairs in terms.values()
    )
    collection.counts["keywords_with_sentences"] = sum(len(search.taken) for search in searches)
    return collection


class _KeywordSearch:
    """Finds the keywords of a category in a sentence, and counts the sentences taken for each."""

    def __init__(self, pairs: TermPairs) -> None:
        self.pairs = pairs
        self.taken: Counter[tuple[str, str]] = Counter()
        sides = pairs.target_terms, pairs.attribute_terms
        self._any = [compile_terms(side, whole_words=pairs.whole_words) for side in sides]
        self._patterns = [
            [
                (term, compile_terms((term,), whole_words=pairs.whole_words))
                for term in dict.fromkeys(side)
            ]
            for side in sides
        ]

    def find(self, text: str) -> list[tuple[str, str]]:
        """Return the keywords that a text has."""
        if not all(pattern.search(text) for pattern in self._any):
            return []
        targets, attributes = (
            [term for term, pattern in side if pattern.search(text)] for side in self._patterns
        )
        return [(target, attribute) for target in targets for attribute in attributes]


def _add_post(
    post: str,
    searches: list[_KeywordSearch],
    settings: CollectionSettings,
    collection: Collection,
    seen: set[str],
) -> None:
    for search in searches:
        pairs, counts = search.pairs, collection.counts
        if not search.find(post):
            continue
        for text in _divide_post(post, settings, whole_words=pairs.whole_words):
            keywords = search.find(text)
            key = f"{pairs.category}\0{text}"
            if not keywords:
                continue
            if count_words(text, whole_words=pairs.whole_words) > settings.max_words:
                counts["too_long"] += 1
            elif key in seen:
                counts["duplicates"] += 1
            else:
                free = [word for word in keywords if search.taken[word] < settings.max_per_keyword]
                if not free:
                    counts["beyond_maximum"] += 1
                    continue
                seen.add(key)
                search.taken[free[0]] += 1
                collection.rows.append(_make_row(pairs, text, free[0], search.taken.total()))


def _divide_post(post: str, settings: CollectionSettings, *, whole_words: bool) -> Iterator[str]:
    if settings.unit == "sentence":
        return clean_sentences(post)
    return split_text(clean_text(post), settings.max_words, whole_words=whole_words)


def _make_row(
    pairs: TermPairs, text: str, keyword: tuple[str, str], number: int
) -> dict[str, str]:
    return {
        "id": f"{pairs.category}-{number}",
        "text": text,
        "group": pairs.groups[0],
        "category": pairs.category,
        "target_term": keyword[0],
        "attribute_term": keyword[1],
    }


def _refuse_empty(collection: Collection, terms: Mapping[str, TermPairs]) -> None:
    n_posts = collection.counts["posts"]
    if not n_posts:
        raise NothingLeft("there are no posts", remedy="write one post per line")
    if not collection.rows:
        shown = ", ".join(next(iter(terms.values())).target_terms[:3])
        message = (
            f"none of the {n_posts:,} posts has a sentence with a target and an attribute term"
        )
        remedy = f"use terms in the language and script of the posts; these are {shown}, ..."
        raise NothingLeft(message, remedy=remedy)


def read_posts(path: Path) -> Iterator[str]:
    """Yield the posts of a corpus: the lines of a ``.txt`` file, or the texts of a table.

    A table has a column ``text``. Text, CSV, TSV and JSON lines (also with ``.gz``) are read line
    by line, Parquet at once.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It has another suffix.
        UnknownColumn: There is no column ``text``.
        MalformedLine: A line is malformed or not UTF-8.
    """
    suffix = get_suffix(path)
    if suffix == ".txt":
        with open_text(path) as file:
            yield from filter(None, (line.strip() for line in file))
    elif suffix == ".jsonl":
        yield from _read_json_posts(path)
    elif suffix in DELIMITERS:
        rows = read_cells(path, DELIMITERS[suffix])
        column = _find_text(next(rows, []), path)
        for cells in rows:
            if len(cells) > column and (text := cells[column]):
                yield text
    else:
        find_suffix(path)
        table = read_text_table(path)
        _find_text(list(table.columns), path)
        yield from filter(None, table.texts("text"))


def _read_json_posts(path: Path) -> Iterator[str]:
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                record = parse_json(line.rstrip("\r\n"), path, line=number)
                text = record.get("text") if isinstance(record, dict) else None
                if not isinstance(text, str):
                    remedy = 'write {"text": "the post"} on each line'
                    raise UnknownColumn(
                        "there is no text", where=f"{path}:{number}", remedy=remedy
                    )
                yield text


def _find_text(names: list[str], path: Path) -> int:
    if "text" not in names:
        remedy = f"name the column of the posts text; {suggest('text', names)}"
        raise UnknownColumn("there is no column 'text'", where=str(path), remedy=remedy)
    return names.index("text")
