"""Sentences about groups from corpora of posts.

Posts are cleaned and divided into sentences by rules, those with a group and an attribute term are
collected, and they are divided into training, validation and test with copies about the other
group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.dataset import SENTENCE_PARTS
from recbias.core.errors import MalformedLine, NothingLeft, OutOfRange, UnknownColumn
from recbias.formats.json_files import read_records
from recbias.formats.tables import TableColumns, find_suffix, read_file, read_text_table
from recbias.formats.text_files import get_suffix, open_text
from recbias.language.terms import TermPairs, compile_terms, select_category

_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905  one abbreviation a line would be 40 lines
        "adm al apr aug ave capt cmdr co col corp dec dept dr ed esp est etc feb ft gen gov hon "
        "inc jan jr lt ltd maj messrs mr mrs ms mt no nov oct ph prof rep rev sen sep sept sgt sr "
        "st ste vol vs"
    ).split()
)
"""Words before a period that does not end a sentence, without their periods."""

_END = re.compile(
    r"""
    [.!?…]+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]*[^\W_a-z])   # before a capital or a digit
    | [。！？｡]+["'”’」』）]*                            # without a blank after it
    | \n+
    """,
    re.VERBOSE,
)

_END_IN_POST = re.compile(
    r"""
    [.!?…]+["'”’»)\]]*(?=\s)
    | [!?]+(?=[\u3040-\u30ff\u3400-\u9fff])            # keyboards without 。 and ？
    | [。！？｡]+["'”’」』）)]*
    | \n+
    """,
    re.VERBOSE,
)

_LAST_WORD = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")


def split_sentences(text: str, *, is_post: bool = False) -> list[str]:
    """Return the sentences of a text, without the blanks around them.

    A sentence ends at a period, an exclamation or a question mark before a capital letter, a digit
    or a letter of a script without capitals, at an ideographic full stop, and at a line's end. The
    period of an abbreviation (``Dr.``) or of initials (``J. R.``) does not end one.

    Args:
        text: The text.
        is_post: Whether the text is a post of social media, in which a sentence may begin with a
            lower-case letter, and ``!`` and ``?`` stand between Chinese sentences without a blank.

    >>> split_sentences("Dr. No met J. R. Ewing. They left! Who won? The U.S. team.")
    ['Dr. No met J. R. Ewing.', 'They left!', 'Who won?', 'The U.S. team.']
    >>> split_sentences("i left. she is at home!", is_post=True)
    ['i left.', 'she is at home!']
    """
    sentences, start = [], 0
    for match in (_END_IN_POST if is_post else _END).finditer(text):
        if match.group() != "." or not _is_abbreviation(text[start : match.start()]):
            sentences.append(text[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


def _is_abbreviation(before: str) -> bool:
    """Return whether the text before a period ends with an abbreviation or an initial."""
    match = _LAST_WORD.search(before[-20:])
    word = match.group() if match else ""
    is_initial = "." in word or (len(word) == 1 and word.isupper() and word != "I")
    return is_initial or word.lower() in _ABBREVIATIONS


_URL = re.compile(r"(?:https?://|www\.)[\w\-.~:/?#\[\]@!$&'()*+,;=%]+", re.ASCII | re.IGNORECASE)
_MENTION = re.compile(r"(?://)?(?<![A-Za-z0-9.])[@\uff20][\w\-·]+\s*[:\uff1a]?")
_TOPIC = re.compile(r"#[^#\s]{1,60}#")
_EMOTICON_CODE = re.compile(r"\[[^\[\]\s]{1,10}\]")
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u200d\u20e3\ufe0e\ufe0f"
    "\U000e0020-\U000e007f]"
)
_REPEATED = re.compile(r"([^\w\s])\1+")
_FORMULA_START = "=+-@\uff20 "


def clean_text(text: str) -> str:
    """Return a post without what belongs to its platform, on one line.

    URLs, mentions (``@name``, with the ``//`` of a repost), topics between two ``#``, codes of
    emoticons in brackets and emojis are removed, repeated punctuation becomes one character, and
    white space one space. Signs with which a spreadsheet takes a cell for a formula are removed at
    the start.

    >>> clean_text("@ann: Look!!! https://a.org/b [smile]  so good \U0001f600")
    'Look! so good'
    """
    for pattern in (_URL, _MENTION, _TOPIC, _EMOTICON_CODE, _EMOJI):
        text = pattern.sub(" ", text)
    text = _REPEATED.sub(r"\1", text)
    return " ".join(text.split()).lstrip(_FORMULA_START)


def count_words(text: str, *, whole_words: bool) -> int:
    """Return the number of words; of characters in a language that is written without spaces.

    >>> count_words("two words", whole_words=True), count_words("两个 字", whole_words=False)
    (2, 3)
    """
    return len(text.split()) if whole_words else len("".join(text.split()))


def _clean_sentences(post: str) -> Iterator[str]:
    r"""Yield the sentences of a post, cleaned; a sentence ends at a line's end.

    >>> list(_clean_sentences("@ann: I left. My aunt is here!!\nShe reads"))
    ['I left.', 'My aunt is here!', 'She reads']
    """
    for line in post.splitlines():
        yield from split_sentences(clean_text(line), is_post=True)


def split_text(text: str, max_words: int, *, whole_words: bool) -> Iterator[str]:
    """Yield a text as it is if it is short enough, else its longest runs of whole sentences.

    A single sentence that is too long is yielded as it is; ``count_words`` finds it.

    >>> list(split_text("One two. Three four. Five.", 4, whole_words=True))
    ['One two. Three four.', 'Five.']
    """
    run = ""
    for sentence in split_sentences(text, is_post=True):
        joined = f"{run}{' ' if whole_words and run else ''}{sentence}"
        if run and count_words(joined, whole_words=whole_words) > max_words:
            yield run
            run = sentence
        else:
            run = joined
    if run:
        yield run


_COUNTS = ("posts", "sentences", "duplicates", "too_long", "beyond_maximum")
"""What is counted, besides keywords."""


_Unit: TypeAlias = Literal["sentence", "post"]
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
    unit: _Unit = "sentence"


@dataclass(frozen=True, eq=False)
class _Collection:
    """The collected sentences, and counts of the posts and of the sentences left out.

    Args:
        rows: A record per sentence: ``id``, ``text``, ``group``, ``category``, ``target_term`` and
            ``attribute_term``.
        counts: ``_COUNTS``, and ``keywords`` and ``keywords_with_sentences``.
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_COUNTS, 0)))


def collect_sentences(
    posts: Iterable[str],
    terms: Mapping[str, TermPairs],
    settings: CollectionSettings | None = None,
) -> _Collection:
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
    collection = _Collection()
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
    collection: _Collection,
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
        return _clean_sentences(post)
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


def _refuse_empty(collection: _Collection, terms: Mapping[str, TermPairs]) -> None:
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

    A table has a column ``text``. Text and JSON lines (also with ``.gz``) are read line by line.

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
    else:
        find_suffix(path)
        table = read_file(path, TableColumns(needed={"text": "text"}))
        yield from filter(None, table.texts("text"))


def _read_json_posts(path: Path) -> Iterator[str]:
    for number, record in read_records(path):
        if not isinstance(text := record.get("text"), str):
            remedy = 'write {"text": "the post"} on each line'
            raise UnknownColumn("there is no text", where=f"{path}:{number}", remedy=remedy)
        yield text


_Row: TypeAlias = dict[str, str]
"""The columns of a sentence."""

Swap: TypeAlias = Literal["targets", "attributes"]
"""The terms that are replaced in a copy."""

_TARGET_SETS = ("T1", "T2")
"""The label of a sentence about the first group, and of its copy about the second."""


@dataclass(frozen=True, eq=False)
class _Division:
    """The rows of each part, and what was counted.

    Args:
        parts: The rows by part: ``train``, ``validation`` and ``test``.
        identical: Pairs whose copy is the same text, because no target term was replaced.
        unused: Sentences beyond the sizes.
    """

    parts: Mapping[str, list[_Row]]
    identical: int
    unused: int


def divide_sentences(
    rows: Sequence[_Row],
    terms: Mapping[str, TermPairs],
    sizes: tuple[int, int, int],
    rng: np.random.Generator,
    *,
    both_directions: bool = False,
) -> _Division:
    """Divide the sentences of each category at random, and add swapped copies to two parts.

    Training sentences stay as they are. Each sentence of validation and test becomes a pair: the
    sentence, and its copy in which target terms are replaced by those of the second group. A
    sentence that occurs twice is used once, so that no part has a sentence of another.

    Args:
        rows: Records with ``id``, ``text`` and ``category``.
        terms: The terms of each category.
        sizes: The number of sentences of each category in train, validation and test.
        rng: The generator of the division.
        both_directions: Whether terms of the second group are also replaced.

    Raises:
        UnknownName: There are no terms of a category.
        NothingLeft: No sentence of a category has a target term.
        OutOfRange: A category has too few sentences.
    """
    parts: dict[str, list[_Row]] = {part: [] for part in SENTENCE_PARTS}
    identical = unused = 0
    for category in dict.fromkeys(row["category"] for row in rows):
        pairs = select_category(terms, category)
        unique = {row["text"]: row for row in reversed(rows) if row["category"] == category}
        pairs.require_targets(unique)
        if len(unique) < sum(sizes):
            message = (
                f"{category} has {len(unique):,} different sentences, "
                f"fewer than {' + '.join(f'{size:,}' for size in sizes)}"
            )
            remedy = "collect more sentences, or give smaller sizes: --train, --validation, --test"
            raise OutOfRange(message, where="sizes", remedy=remedy)
        ordered = [*unique.values()][::-1]
        shuffled = [ordered[position] for position in rng.permutation(len(ordered))]
        unused += len(shuffled) - sum(sizes)
        start = 0
        for part, size in zip(SENTENCE_PARTS, sizes, strict=True):
            chosen, start = shuffled[start : start + size], start + size
            if part == "train":
                parts[part] += [{**row, "group": pairs.groups[0]} for row in chosen]
                continue
            for row in chosen:
                copies = _make_pair(row, pairs, both_directions=both_directions)
                identical += copies[0]["text"] == copies[1]["text"]
                parts[part] += copies
    return _Division(parts, identical, unused)


def swap_sentences(
    rows: Sequence[_Row],
    terms: Mapping[str, TermPairs],
    swap: Swap = "targets",
    *,
    both_directions: bool = False,
) -> list[_Row]:
    """Return each sentence followed by its copy with swapped terms, as pairs.

    Args:
        rows: Records with ``id``, ``text`` and ``category``.
        terms: The terms of each category.
        swap: ``targets`` names the other group: the groups are those of the terms. ``attributes``
            replaces attribute terms by their counterparts: the groups are A1 and A2.
        both_directions: Whether the terms of the second group are also replaced.

    Raises:
        UnknownName: There are no terms of a category.
        NothingLeft: No copy differs, as with terms of another language.
    """
    copies = []
    for row in rows:
        pairs = select_category(terms, row["category"])
        copies += _make_pair(row, pairs, swap, both_directions=both_directions)
    if all(a["text"] == b["text"] for a, b in zip(copies[::2], copies[1::2], strict=True)):
        message = f"none of the {len(rows):,} sentences has one of the {swap} of its category"
        raise NothingLeft(message, where="terms", remedy="use terms in their language and script")
    return copies


def _make_pair(
    row: _Row, pairs: TermPairs, swap: Swap = "targets", *, both_directions: bool
) -> list[_Row]:
    replace_terms = pairs.swap_targets if swap == "targets" else pairs.swap_attributes
    texts = row["text"], replace_terms(row["text"], both_directions=both_directions)
    groups = pairs.groups if swap == "targets" else ("A1", "A2")
    sides = zip(groups, _TARGET_SETS if swap == "targets" else groups, texts, strict=True)
    return [
        {
            **row,
            "id": f"{row['id']}-{group}",
            "pair_id": row["id"],
            "group": group,
            "target_set": target_set,
            "text": text,
        }
        for group, target_set, text in sides
    ]


def read_rows(path: Path, *needed: str) -> list[dict[str, str]]:
    """Return the rows of a table of sentences; empty cells are left out.

    Args:
        path: A ``.csv``, ``.tsv``, ``.jsonl`` (also with ``.gz``) or ``.parquet`` file with ``id``
            and ``text``.
        needed: Other columns that every row needs.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It has another suffix.
        UnknownColumn: A column is missing.
        MalformedLine: An ``id`` occurs twice, or a cell of a needed column is empty.
    """
    table = read_text_table(path)
    keys = ("id", "text", *needed)
    table.need(*keys)
    columns = {name: (table.ids if name in keys else table.texts)(name) for name in table.columns}
    ids = columns["id"]
    table.refuse_repeats(ids, lambda row: f"two sentences have the id {ids[row]!r}")
    for row, text in enumerate(columns["text"]):
        if not text.strip():
            raise MalformedLine("an empty text", where=table.place(row), remedy="remove the row")
    names = list(columns)
    return [
        {name: cell for name, cell in zip(names, cells, strict=True) if cell}
        for cells in zip(*columns.values(), strict=True)
    ]
