"""Sentences about groups: CHBias, CrowS-Pairs, RedditBias, your own tables; and their queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import (
    KEYS,
    SENTENCE_PARTS,
    AnyArray,
    Attributes,
    Dataset,
    Interactions,
    Queries,
    Sentences,
    Vocabulary,
    tabulate_part,
)
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingEvidence,
    MissingFile,
    NothingLeft,
    at_setting,
)
from recbias.core.grouping import list_condition_columns, match_rows
from recbias.core.plugins import InputFile
from recbias.data.declared import find_folder, require_files
from recbias.formats.delimited import Table
from recbias.formats.identifiers import find_repeat
from recbias.formats.tables import find_suffix, read_text_table
from recbias.formats.text_files import read_text, require_file

_Overlap: TypeAlias = Literal["keep", "drop"]
"""Whether training sentences that are also in another part are used."""

_TARGET_SETS = ("T1", "T2")
"""The label of the first group of a pair, which the stereotypes are about, and of the second."""

_EVALUATION_PARTS = ("validation", "test")


def make_dataset(frame: pd.DataFrame, name: str, overlap: _Overlap = "keep") -> Dataset:
    """Return a dataset that has nothing but sentences.

    Pairs of identical sentences, and sentences of the validation and test parts that are also
    training sentences, are counted and warned about.

    Args:
        frame: The columns of ``Sentences``.
        name: The name of the dataset, for warnings.
        overlap: ``drop`` excludes the training sentences that are also in another part.
    """
    counts = {part: int((frame["part"] == part).sum()) for part in ("train", *_EVALUATION_PARTS)}
    for part in _EVALUATION_PARTS:
        counts |= _count_identical(frame, part, name)
    is_train = (frame["part"] == "train").to_numpy()
    trained = set(frame.loc[is_train, "text"])
    for part in _EVALUATION_PARTS:
        texts = frame.loc[frame["part"] == part, "text"]
        counts[f"{part}_in_train"] = n_repeated = int(texts.isin(trained).sum())
        if n_repeated:
            verb = "were" if overlap == "drop" else "are"
            warn(f"{name}: {n_repeated:,} {part} sentences {verb} also training sentences")
    if overlap == "drop":
        is_repeated = is_train & frame["text"].isin(set(frame.loc[~is_train, "text"])).to_numpy()
        counts["dropped_from_train"] = int(is_repeated.sum())
        frame = frame[~is_repeated].reset_index(drop=True)
    rows = Interactions.without_rows(Vocabulary.of([]), Vocabulary.of([]))
    return Dataset(rows, sentences=Sentences(frame), counts=counts)


def _count_identical(frame: pd.DataFrame, part: str, name: str) -> dict[str, int]:
    rows = frame[(frame["part"] == part) & frame["pair_id"].notna()]
    pairs = rows.groupby("pair_id", sort=False)["text"].agg(["size", "nunique"])
    n_identical = int(((pairs["size"] > 1) & (pairs["nunique"] == 1)).sum())
    if n_identical:
        warn(
            f"{name}: {n_identical:,} of {len(pairs):,} {part} pairs have the same text for both "
            "groups; their difference is 0 under any model"
        )
    return {f"{part}_pairs": len(pairs), f"identical_{part}_pairs": n_identical}


def _read_sentences(path: Path, column: str = "") -> list[str]:
    """Return the sentences of a text file with one per line, or of a column of a table."""
    if path.suffix != ".txt":
        table = read_text_table(path)
        table.need(column)
        return [str(text).strip() for text in table.ids(column)]
    lines = [line.strip() for line in read_text(path).rstrip().split("\n")]
    if lines == [""]:
        remedy = "write one sentence per line"
        raise NothingLeft("has no sentences", where=str(path), remedy=remedy)
    if "" in lines:
        remedy = "write one sentence per line, and no empty line between two"
        raise MalformedLine("an empty line", where=f"{path}:{lines.index('') + 1}", remedy=remedy)
    return lines


def _make_frame(rows: Iterable[tuple[Any, ...]], *labels: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*KEYS, "category", "target_set", *labels], dtype=object)


def _make_train(texts: Sequence[str], group: str | None, category: str | None) -> pd.DataFrame:
    """Return training sentences, which have no counterpart; ``group`` may be unknown."""
    target_set, name = group and _TARGET_SETS[0], category or "sentences"
    return _make_frame(
        (f"{name}-train-{number}", "train", None, group, text, category, target_set)
        for number, text in enumerate(texts, start=1)
    )


class _Sentences:
    """Base of the datasets of sentences."""

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"sentences"})


_PARTS = {"validation": "valid", "test": "test"}
"""The name of each part in the names of the files."""


class _PairFiles(_Sentences):
    """Base of the datasets with a file of sentences for each group, of which line i is a pair.

    ``groups`` are those of each category, ``file`` is the pattern of the names of the files, in
    the layout of the repository or without its folder ``data``, ``column`` that of the sentences.
    """

    name: ClassVar[str]
    groups: ClassVar[Mapping[str, tuple[str, str]]]
    file: ClassVar[str]
    column: ClassVar[str]

    dimension: str
    overlap: _Overlap

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        paths = [path for category in self._categories for path in self._list(data, category)]
        return require_files(paths, fetch=self.name)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        frame = pd.concat([*self._read(data)], ignore_index=True)
        return make_dataset(frame, self.name, self.overlap)

    @property
    def _categories(self) -> tuple[str, ...]:
        return tuple(self.groups) if self.dimension == "all" else (self.dimension,)

    def _find(self, data: Path, name: str) -> Path:
        return find_folder(self.name, data, holds=name, inner="data") / name

    def _list(self, data: Path, category: str) -> list[Path]:
        trains = [path for path, _ in self._find_train(data, category)]
        return trains + [
            path for part in _PARTS for path in self._find_pairs(data, category, part)
        ]

    def _find_train(self, data: Path, category: str) -> list[tuple[Path, str | None]]:
        """Return the files of training sentences of a category, and the group of each."""
        return []

    def _find_pairs(self, data: Path, category: str, part: str) -> list[Path]:
        """Return the files of both groups."""
        form = getattr(self, "form", "") if part == "test" else "txt"
        names = {"category": category, "part": _PARTS[part], "form": form}
        files = [self.file.format(group=group, **names) for group in self.groups[category]]
        return [self._find(data, file) for file in files]

    def _read(self, data: Path) -> Iterator[pd.DataFrame]:
        """Yield the sentences of each category and part; pair i of them is ``category-part-i``."""
        for category in self._categories:
            for path, group in self._find_train(data, category):
                yield _make_train(_read_sentences(path), group, category)
            for part in _PARTS:
                paths = self._find_pairs(data, category, part)
                texts = [_read_sentences(path, self.column) for path in paths]
                _require_equal_numbers(paths, texts)
                groups = [*zip(self.groups[category], _TARGET_SETS, strict=True)]
                yield _make_frame(
                    (f"{pair}-{group}", part, pair, group, text, category, target_set)
                    for number, pair_texts in enumerate(zip(*texts, strict=True), start=1)
                    for pair in [f"{category}-{part}-{number}"]
                    for (group, target_set), text in zip(groups, pair_texts, strict=True)
                )


def _require_equal_numbers(paths: Sequence[Path], texts: Sequence[Sequence[str]]) -> None:
    """Raise MalformedLine if two files, of which line i is a pair, differ in length."""
    (n, path), (n_longer, longer) = sorted(zip(map(len, texts), paths, strict=True))
    if n < n_longer:
        message = f"has {n_longer:,} sentences, but {path.name} has {n:,}"
        remedy = "sentence i of both files is a pair: add or remove the sentence of one file"
        raise MalformedLine(message, where=f"{longer}:{n + 1}", remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class CHBias(_PairFiles):
    """CHBias: offensive Chinese posts about a group, and copies that name another group.

    Each category has 800 training sentences about the first group (799 in age and appearance), and
    200 validation and 200 test pairs: line i of the files of both groups. Labels are ``category``
    and ``target_set``: T1 for the first group (female, lgbt, old, fat), T2 for the second (male,
    straight, young, slim). The sentences are offensive.

    Pairs with the same text for both groups are kept, counted and warned about, and so are
    sentences of validation and test that are also training sentences.

    Args:
        dimension: The category, or all four.
        train: ``plain`` are the collected sentences; ``CADA`` and ``CTDA`` are the augmented ones
            as the authors released them, with copies in which attribute or target terms are
            replaced. They have no group.
        form: The files of the test pairs, which are released twice: ``txt``, or ``csv`` with the
            column ``replaced_sentence``. The sentences are the same.
        overlap: ``drop`` excludes training sentences that are also in validation or test.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch chbias`` downloads it.
        MalformedLine: A line is empty or not UTF-8, or the files of a pair differ in length.

    Source:
        Zhao, Fang, Shi, Li, Chen and Pechenizkiy, "CHBias: Bias Evaluation and Mitigation of
        Chinese Conversational Language Models", ACL 2023.
    """

    dimension: Literal["all", "gender", "orientation", "age", "appearance"] = "all"
    train: Literal["plain", "CADA", "CTDA"] = "plain"
    form: Literal["txt", "csv"] = "txt"
    overlap: _Overlap = "keep"

    name: ClassVar[str] = "chbias"
    groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "gender": ("female", "male"),
        "orientation": ("lgbt", "straight"),
        "age": ("old", "young"),
        "appearance": ("fat", "slim"),
    }
    file: ClassVar[str] = "{category}/{category}_{group}_{part}.{form}"
    column: ClassVar[str] = "replaced_sentence"

    def _find_train(self, data: Path, category: str) -> list[tuple[Path, str | None]]:
        is_plain = self.train == "plain"
        suffix = "" if is_plain else f"_{self.train.lower()}"
        path = self._find(data, f"{category}/{category}_train{suffix}.txt")
        return [(path, self.groups[category][0] if is_plain else None)]


_CROWS_PAIRS = "crows_pairs"
FILE = "crows_pairs_anonymized.csv"
_GROUPS_CROWS_PAIRS = ("sent_more", "sent_less")
"""The columns of a pair, the more stereotypical sentence first."""

_DIRECTION = "stereo_antistereo"
"""The column with ``stereo`` where the more stereotypical sentence is about the disadvantaged
group, ``antistereo`` where the less stereotypical one is."""


@dataclass(frozen=True, kw_only=True)
class CrowSPairs(_Sentences):
    """CrowS-Pairs: 1,508 pairs of sentences, of which one is more stereotypical.

    All pairs are in the test part. The groups are ``sent_more`` and ``sent_less``, the columns of
    the published file: the more and the less stereotypical sentence of a pair. Labels are
    ``category`` (the column ``bias_type``: gender, race-color, age, ...), ``stereo_antistereo``,
    and ``target_set``: T1 for the sentence about the disadvantaged group (``sent_more`` where
    ``stereo_antistereo`` is ``stereo``, ``sent_less`` where it is ``antistereo``), T2 for the
    other. The sentences are offensive.

    Raises:
        MissingFile: The file is missing; ``recbias data fetch crows_pairs`` downloads it.
        UnknownColumn: A column is missing.
        MalformedLine: A sentence is empty, or ``stereo_antistereo`` has another value.

    Source:
        Nangia, Vania, Bhalerao and Bowman, "CrowS-Pairs: A Challenge Dataset for Measuring Social
        Biases in Masked Language Models", EMNLP 2020.
    """

    def files(self, data: Path) -> list[Path]:
        """Return the file that ``load`` reads."""
        folder = find_folder(_CROWS_PAIRS, data, holds=FILE, inner="biasmeter")
        return require_files([folder / FILE], fetch=_CROWS_PAIRS)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the file."""
        table = read_text_table(self.files(data)[0])
        table.need(*_GROUPS_CROWS_PAIRS, "bias_type", _DIRECTION)
        names = (*_GROUPS_CROWS_PAIRS, "bias_type", _DIRECTION)
        columns = dict(zip(names, map(table.ids, names), strict=True))
        directions = columns[_DIRECTION]
        is_other = ~np.isin(directions.astype(str), ["stereo", "antistereo"])
        table.refuse(
            is_other,
            lambda row: f"{_DIRECTION} is {directions[row]!r}",
            "write stereo or antistereo",
        )
        rows = []
        for row, cells in enumerate(zip(*columns.values(), strict=True)):
            *texts, category, direction = cells
            sets = _TARGET_SETS if direction == "stereo" else _TARGET_SETS[::-1]
            pair = f"{category}-{row + 1}"
            for group, text, target in zip(_GROUPS_CROWS_PAIRS, texts, sets, strict=True):
                key = (f"{pair}-{group}", "test", pair, group, text.strip())
                rows.append((*key, category, target, direction))
        return make_dataset(_make_frame(rows, _DIRECTION), _CROWS_PAIRS)


@dataclass(frozen=True, kw_only=True)
class RedditBias(_PairFiles):
    """RedditBias: offensive English phrases of Reddit, and copies that name another group.

    The validation and test pairs are the rows of ``reddit_comments_<category>_<group>_biased_
    valid_reduced.csv`` and ``..._test_reduced.csv``, which hold the pairs without outliers; row i
    of the files of both groups is a pair. Labels are ``category`` and ``target_set``: T1 for the
    first group (female, lgbtq, black, jews, muslims), T2 for the second. The sentences are
    offensive.

    Args:
        dimension: The category, or all five; ``religion1`` and ``religion2`` have Christians as
            second group.
        train: Your own file of training sentences, one per line: the release has none that are
            ready to use. They have no group and no category.
        overlap: ``drop`` excludes training sentences that are also in validation or test.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch redditbias`` downloads it.
        UnknownColumn: A file has no column ``comments_processed``.
        MalformedLine: A cell is empty, or the files of a pair differ in length.

    Source:
        Barikeri, Lauscher, Vulić and Glavaš, "RedditBias: A Real-World Resource for Bias
        Evaluation and Debiasing of Conversational Language Models", ACL 2021.
    """

    dimension: Literal["all", "gender", "orientation", "race", "religion1", "religion2"] = "all"
    train: InputFile | None = None
    overlap: _Overlap = "keep"

    name: ClassVar[str] = "redditbias"
    groups: ClassVar[Mapping[str, tuple[str, str]]] = {
        "gender": ("female", "male"),
        "orientation": ("lgbtq", "straight"),
        "race": ("black", "white"),
        "religion1": ("jews", "christians"),
        "religion2": ("muslims", "christians"),
    }
    file: ClassVar[str] = "{category}/reddit_comments_{category}_{group}_biased_{part}_reduced.csv"
    column: ClassVar[str] = "comments_processed"

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        own = [] if self.train is None else [require_file(self.train)]
        return [*own, *super().files(data)]

    def _read(self, data: Path) -> Iterator[pd.DataFrame]:
        if self.train is not None:
            yield _make_train(_read_sentences(self.train), None, None)
        yield from super()._read(data)


_CONTEXT, _REFERENCE = "context", "reference"
"""The labels of a dialogue: its turns, one per line, and the answer to compare with."""


@dataclass(frozen=True, kw_only=True)
class SentenceQueries:
    """Query with the sentences of the dataset, and with contexts of dialogues to answer.

    A language model scores the sentences and answers the dialogues. The labels of a sentence are
    ``pair_id``, ``group`` and its other labels, such as ``category``; sentences of a pair follow
    one another. A dialogue has no group; its labels are ``context``, the turns, one per line, and
    ``reference``.

    The part chooses the sentences that results are reported on. A search (``tune:``) never reads
    the test part, whatever the part is.

    Args:
        part: The part of the sentences: ``test``, ``validation`` or ``train``.
        where: A condition on the labels, as in ``category == 'gender'``; see ``users``.
        dialogues: A ``.jsonl``, ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` file with
            ``context`` (in JSON and Parquet a list of turns, else one turn per line of the cell),
            optionally ``reference`` and ``id``, and any labels.

    Raises:
        MissingEvidence: The dataset has no sentences, and there are no dialogues.
        NothingLeft: The part has no sentences, or none satisfies ``where``.
        WrongType: ``where`` is not a condition.
        UnknownColumn: The sentences have no column that ``where`` names, or the dialogues lack
            ``context``.
        MalformedLine: A dialogue has an empty context, or its ``id`` is in use.
        Contradiction: The dialogues have a column ``group``, ``pair_id`` or ``text``.
    """

    part: Literal["test", "validation", "train"] = "test"
    where: str | None = None
    dialogues: InputFile | None = None

    def __post_init__(self) -> None:
        """Validate the condition, and the suffix of the file."""
        checks: dict[str, Any] = {"dialogues": find_suffix, "where": list_condition_columns}
        for name, check in checks.items():
            with at_setting(name):
                _ = (value := getattr(self, name)) is None or check(value)

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each sentence, then one for each dialogue."""
        tables = []
        if dataset.sentences is not None:
            tables.append(self._select(tabulate_part(dataset.sentences, self.part)))
        elif self.dialogues is None:
            remedy = "use chbias, redditbias, crows_pairs or sentence_tables as dataset"
            raise MissingEvidence("the dataset has no sentences", remedy=remedy)
        if self.dialogues is not None:
            used = set(tables[0]["id"]) if tables else set()
            tables.append(read_dialogues(self.dialogues, used))
        table = pd.concat(tables, ignore_index=True).astype(object)
        return Queries.of_prompts(table.where(table.notna(), None))

    def _select(self, table: pd.DataFrame) -> pd.DataFrame:
        if self.where is None:
            return table
        labels = table.drop(columns=["id", "text"])
        ids = Vocabulary(table["id"].to_numpy(dtype=object).copy())
        rows = np.flatnonzero(match_rows(self.where, Attributes(ids, labels, "sentence")))
        if not rows.size:
            message = f"none of the {len(table):,} sentences satisfies {self.where!r}"
            remedy = f"the sentences have the labels {', '.join(map(str, labels.columns))}"
            raise NothingLeft(message, where="where", remedy=remedy)
        return table.iloc[rows].reset_index(drop=True)


def read_dialogues(path: Path, used: set[str] | None = None) -> pd.DataFrame:
    """Return the dialogues of a file: ``id``, ``text`` and ``context``, ``reference``, labels.

    Args:
        path: The file.
        used: Identifiers of other queries, which no dialogue may have.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: It has no column ``context``.
        MalformedLine: A context is empty, or an ``id`` occurs twice or is in use.
        Contradiction: It has a column of sentences.
    """
    table = read_text_table(path)
    table.need(_CONTEXT)
    for name in ("group", "pair_id", "text"):
        if name in table.columns:
            remedy = "rename the column; sentences to score belong to the dataset"
            raise Contradiction(f"dialogues have no {name}", where=str(path), remedy=remedy)
    contexts = [
        "\n".join(turn.strip() for turn in text.splitlines() if turn.strip())
        for text in table.texts(_CONTEXT)
    ]
    remedy = "write at least one turn"
    table.refuse(np.array([not text for text in contexts]), "an empty context", remedy)
    has_ids = "id" in table.columns
    ids = table.ids("id") if has_ids else [f"dialogue-{row + 1}" for row in range(len(table))]
    table.refuse_repeats(np.array(ids, dtype=object), lambda row: f"another row has {ids[row]!r}")
    is_used = np.array([identifier in (used or ()) for identifier in ids])
    table.refuse(
        is_used, lambda row: f"another query has the id {ids[row]!r}", "give each its own id"
    )
    texts = {"id": ids, "text": contexts, _CONTEXT: contexts}
    frame = pd.DataFrame({**texts, _REFERENCE: table.optional(_REFERENCE)}, dtype=object)
    return pd.concat([frame, table.labels(("id", _CONTEXT, _REFERENCE))], axis=1)


_SENTENCE_TABLES = "sentence_tables"


@dataclass(frozen=True, kw_only=True)
class SentenceTables(_Sentences):
    """Your own sentences: a table for each of training, validation and test; all are optional.

    Tables are ``.csv``, ``.tsv``, ``.jsonl`` (also with ``.gz``) or ``.parquet``, in UTF-8, with
    the columns ``id`` and ``text``; ``pair_id``, shared by the versions of one sentence and empty
    for a sentence without counterpart; ``group``, the group that a sentence is about; and any
    labels, such as ``category``. Training sentences need neither ``pair_id`` nor ``group``.

    Pairs with the same text for both groups are kept, counted and warned about, and so are
    sentences of validation and test that are also training sentences.

    Args:
        train: The sentences that a model may be trained on.
        validation: The pairs to choose settings on.
        test: The pairs to report on; no training or search can read them.
        overlap: ``drop`` excludes training sentences that are also in validation or test.
        columns: New names of columns, by their names in every table.

    Raises:
        MissingFile: A table does not exist, or none is given.
        WrongType: A file has another suffix.
        UnknownColumn: A table has no column ``id``, ``text``, or ``group`` where it is needed.
        MalformedLine: An ``id`` occurs twice, a text is empty, a sentence of a pair has no group,
            or a pair has one sentence only, or two of the same group.
        Contradiction: A table has a column ``part``.
    """

    train: InputFile | None = None
    validation: InputFile | None = None
    test: InputFile | None = None
    overlap: _Overlap = "keep"
    columns: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse files that are no tables."""
        for path in self._paths.values():
            find_suffix(path)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        if not self._paths:
            message = "there is no table of sentences"
            raise MissingFile(message, remedy="add test: sentences.csv")
        return [require_file(path) for path in self._paths.values()]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the tables."""
        self.files(data)
        tables = {part: read_text_table(x, self.columns) for part, x in self._paths.items()}
        frame = pd.concat(
            [_read_part(table, part) for part, table in tables.items()], ignore_index=True
        )
        _refuse_repeated_ids(frame["id"].to_numpy(object), list(tables.values()))
        return make_dataset(
            frame.astype(object).where(frame.notna(), None), _SENTENCE_TABLES, self.overlap
        )

    @property
    def _paths(self) -> dict[str, Path]:
        paths = {part: getattr(self, part) for part in SENTENCE_PARTS}
        return {part: path for part, path in paths.items() if path is not None}


def _read_part(table: Table, part: str) -> pd.DataFrame:
    table.need("id", "text")
    if "part" in table.columns:
        message = "has a column 'part', but the part is that of the setting"
        remedy = f"write one table per part, and remove the column; this one is the {part} table"
        raise Contradiction(message, where=str(table.path), remedy=remedy)
    pairs, groups = table.optional("pair_id"), table.optional("group")
    has_pair = pd.notna(pairs)
    if part != "train" or has_pair.any():
        table.need("group")
    texts = np.array([text.strip() for text in table.ids("text")], dtype=object)
    table.refuse(texts == "", "an empty text", "remove the row")
    table.refuse(
        has_pair & pd.isna(groups),
        lambda row: f"the sentence of pair {pairs[row]!r} has no group",
        "write its group",
    )
    keys = zip(pairs, groups, range(len(table)), strict=True)
    versions = [row if pair is None else f"{pair}\n{group}" for pair, group, row in keys]
    table.refuse_repeats(
        np.array(versions, dtype=object),
        lambda row: f"pair {pairs[row]!r} already has a sentence of the group {groups[row]!r}",
    )
    sizes = pd.Series(pairs).map(pd.Series(pairs).value_counts())
    remedy = "add its counterpart, or leave pair_id empty for a sentence without one"
    table.refuse((sizes == 1).to_numpy(), "the pair has this sentence only", remedy)
    ids = {"id": table.ids("id"), "part": part, "pair_id": pairs, "group": groups, "text": texts}
    labels = table.labels([name for name in KEYS if name != "part"])
    return pd.concat([pd.DataFrame(ids, dtype=object), labels], axis=1)


def _refuse_repeated_ids(ids: AnyArray, tables: list[Table]) -> None:
    first, repeat = find_repeat(ids)
    if repeat >= 0:
        rows = [(table, row) for table in tables for row in range(len(table))]
        (table, row), (other, other_row) = rows[repeat], rows[first]
        remedy = f"give each sentence its own id; the other is at {other.place(other_row)}"
        message = f"two sentences have the id {ids[repeat]!r}"
        raise MalformedLine(message, where=table.place(row), remedy=remedy)
