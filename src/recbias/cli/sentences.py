"""``recbias sentences``: a corpus of sentence pairs, from posts to a dataset of one's own."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
import typer

from recbias.cli.output import print_line, report_errors
from recbias.core.errors import NothingLeft, UnknownIdentifier
from recbias.core.files import to_local_path
from recbias.formats.ratings import SheetItem, read_sheets, write_sheets
from recbias.formats.text_files import write_json_lines
from recbias.language.corpora import (
    CollectionSettings,
    collect_sentences,
    divide_sentences,
    read_posts,
    read_rows,
    swap_sentences,
)
from recbias.language.terms import load_terms, select_category
from recbias.statistics.agreement import fleiss_kappa, krippendorff_alpha

Terms: TypeAlias = Annotated[
    str, typer.Option(help="Packaged terms (chbias), or a YAML file.", show_default=False)
]
Category: TypeAlias = Annotated[
    str | None, typer.Option(help="One category of the terms.", show_default="all")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the random choices.")]
BothDirections: TypeAlias = Annotated[
    bool,
    typer.Option("--both-directions", help="Also replace terms of the second group."),
]

QUESTION = "biased"
"""The question of the sheets: whether a sentence is biased."""


def collect(
    corpus: Annotated[
        list[Path], typer.Argument(metavar="CORPUS...", help="Posts.", show_default=False)
    ],
    terms: Terms,
    out: Annotated[Path, typer.Option(help="The file to write, .jsonl.")],
    category: Category = None,
    per_keyword: Annotated[
        int, typer.Option(min=1, help="Most sentences for a target with an attribute term.")
    ] = 100,
    max_words: Annotated[
        int, typer.Option(min=1, help="Longest sentence, in words or Chinese characters.")
    ] = 130,
    unit: Annotated[
        Literal["sentence", "post"],
        typer.Option(help="Sentences with both terms, or whole posts."),
    ] = "sentence",
) -> None:
    """Collect sentences with two terms from posts."""
    with report_errors():
        lists = load_terms(terms)
        if category is not None:
            lists = {category: select_category(lists, category)}
        posts = chain.from_iterable(read_posts(to_local_path(path)) for path in corpus)
        settings = CollectionSettings(max_per_keyword=per_keyword, max_words=max_words, unit=unit)
        collection = collect_sentences(posts, lists, settings)
        path = write_json_lines(to_local_path(out), collection.rows)
        for name, count in collection.counts.items():
            print_line(f"{name.replace('_', ' ')}: {count:,}")
        print_line(path, longest=None)


def annotate(
    sentences: Annotated[
        Path, typer.Argument(metavar="SENTENCES", help="A table with id and text.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    raters: Annotated[int, typer.Option(min=1, max=100, help="Number of raters.")] = 3,
    seed: Seed = 42,
) -> None:
    """Write a blinded sheet for each rater."""
    with report_errors():
        rows = read_rows(to_local_path(sentences))
        items = [SheetItem({"text": row["text"]}, {"id": row["id"]}) for row in rows]
        rng = np.random.default_rng(seed)
        paths = write_sheets(to_local_path(out), items, QUESTION, raters, rng)
        for path in paths:
            print_line(path, longest=None)
        print_line(
            f"Each rater fills the column {QUESTION} with yes or no; key.jsonl is not for raters.",
            to_stderr=True,
        )


def agree(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...", help="The filled sheets.")],
    sentences: Annotated[Path, typer.Option(help="The table that was annotated.")],
    key: Annotated[Path, typer.Option(help="The key.jsonl that was written with the sheets.")],
    out: Annotated[Path, typer.Option(help="The file to write, .jsonl.")],
) -> None:
    """Keep the sentences that all raters call biased."""
    with report_errors():
        rows = {row["id"]: row for row in read_rows(to_local_path(sentences))}
        answers = read_sheets(
            [to_local_path(path) for path in sheets], to_local_path(key), QUESTION
        )
        ids, ratings = answers.key["id"], answers.ratings
        is_complete = ~np.isnan(ratings).any(axis=0)
        is_biased = is_complete & (ratings == 1).all(axis=0)
        is_neutral = is_complete & (ratings == 0).all(axis=0)
        if unknown := [name for name in ids if name not in rows]:
            message = f"there is no sentence {unknown[0]!r}, which is in the key"
            remedy = "give the table that the sheets were written from"
            raise UnknownIdentifier(message, where=str(sentences), remedy=remedy)
        chosen = [rows[ids[row]] for row in np.flatnonzero(is_biased)]
        lines = {
            "raters": f"{len(sheets):,}",
            "sentences": f"{is_complete.size:,}",
            "with an answer of every rater": f"{int(is_complete.sum()):,}",
            "unanimously biased": f"{int(is_biased.sum()):,}",
            "unanimously not biased": f"{int(is_neutral.sum()):,}",
            "Fleiss' kappa": f"{fleiss_kappa(ratings):.4g}",
            "Krippendorff's alpha": f"{krippendorff_alpha(ratings):.4g}",
        }
        for name, value in lines.items():
            print_line(f"{name}: {value}")
        if not chosen:
            remedy = "correct the sheets, or collect more sentences"
            raise NothingLeft("no sentence is biased by the answers of all raters", remedy=remedy)
        print_line(write_json_lines(to_local_path(out), chosen), longest=None)


def split(
    sentences: Annotated[
        Path, typer.Argument(metavar="SENTENCES", help="A table with id, text and category.")
    ],
    terms: Terms,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    train: Annotated[int, typer.Option(min=0, help="Training sentences of a category.")] = 800,
    validation: Annotated[int, typer.Option(min=0, help="Validation pairs of a category.")] = 200,
    test: Annotated[int, typer.Option(min=0, help="Test pairs of a category.")] = 200,
    both_directions: BothDirections = False,
    seed: Seed = 42,
) -> None:
    """Divide sentences; add copies of the other group."""
    with report_errors():
        division = divide_sentences(
            read_rows(to_local_path(sentences), "category"),
            load_terms(terms),
            (train, validation, test),
            np.random.default_rng(seed),
            both_directions=both_directions,
        )
        for part, rows in division.parts.items():
            if rows:
                print_line(
                    write_json_lines(to_local_path(out) / f"{part}.jsonl", rows), longest=None
                )
        print_line(f"pairs with the same text for both groups: {division.identical:,}")
        print_line(f"sentences not used: {division.unused:,}")


def swap(
    sentences: Annotated[
        Path, typer.Argument(metavar="SENTENCES", help="A table with id, text and category.")
    ],
    terms: Terms,
    out: Annotated[Path, typer.Option(help="The file to write, .jsonl.")],
    attributes: Annotated[
        bool, typer.Option("--attributes", help="Replace attribute terms, not target terms.")
    ] = False,
    both_directions: BothDirections = False,
) -> None:
    """Write sentences and their copies as pairs."""
    with report_errors():
        rows = swap_sentences(
            read_rows(to_local_path(sentences), "category"),
            load_terms(terms),
            "attributes" if attributes else "targets",
            both_directions=both_directions,
        )
        path = write_json_lines(to_local_path(out), rows)
        n_identical = sum(
            a["text"] == b["text"] for a, b in zip(rows[::2], rows[1::2], strict=True)
        )
        print_line(f"pairs: {len(rows) // 2:,}")
        print_line(f"pairs with the same text: {n_identical:,}")
        print_line(path, longest=None)
