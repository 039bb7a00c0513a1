"""``recbias human``: evaluation of responses by people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.printing import print_line, report_errors

app = typer.Typer(
    help="Let people rate the responses of models: export sheets, import ratings.",
    no_args_is_help=True,
)

ANSWERS = "answers"
"""The column of the key with the possible answers."""


def export_sheets(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Runs, and tables of responses as LABEL=FILE.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    question: Annotated[str, typer.Option(help="The column that raters fill.")] = "biased",
    answers: Annotated[
        str, typer.Option(help="yes,no or the numbers of a scale: 0,1,2.")
    ] = "yes,no",
    dialogues: Annotated[
        Path | None, typer.Option(help="The contexts: the file of the queries of the run.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of queries.", show_default="all")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A label with equally many queries of each value.")
    ] = None,
    dataset_by: Annotated[
        str | None,
        typer.Option(
            help="A label of the dialogues that names the dataset whose response is rated.",
            show_default="each dataset's",
        ),
    ] = None,
    raters: Annotated[int, typer.Option(min=1, max=100, help="Number of raters.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the sample of queries.")] = 42,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Write a blinded and shuffled sheet of responses for each rater, as CSV."""
    with report_errors():
        import numpy as np

        from recbias.cli.human.sources import list_items, read_sources, select_queries
        from recbias.core.input_files import to_local_path
        from recbias.formats.ratings import SheetItem, parse_answers, write_sheets

        parse_answers(answers)
        candidates = read_sources(sources, dialogues, results, dataset_by)
        queries = select_queries(candidates, sample, by, np.random.default_rng(seed))
        key = {"question": question, ANSWERS: answers}
        items = [
            SheetItem(item.cells, {**item.key, **key}) for item in list_items(candidates, queries)
        ]
        # from a seed that raters can guess, the numbers of items would say which model is first
        unpredictable = np.random.default_rng()
        paths = write_sheets(to_local_path(out), items, question, raters, unpredictable)
        print_line(f"models: {', '.join(candidates.responses)}")
        print_line(f"queries: {len(queries):,}")
        print_line(f"responses: {len(items):,}")
        for path in paths:
            print_line(path, longest=None)
        note = f"Each rater fills the column {question} with one of {answers}"
        print_line(f"{note}; key.jsonl is not for raters.", to_stderr=True)


def import_ratings(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...", help="The filled sheets.")],
    key: Annotated[Path, typer.Option(help="The key.jsonl that was written with the sheets.")],
    out: Annotated[Path, typer.Option(help="The file of ratings to write, .jsonl.")],
) -> None:
    """Read filled sheets, and print the agreement of the raters and the rates of each model."""
    with report_errors():
        import numpy as np

        from recbias.cli.human.summary import describe_agreement, describe_rates
        from recbias.core.errors import NothingLeft
        from recbias.core.input_files import to_local_path
        from recbias.formats.ratings import (
            MODELS,
            QUERY,
            RESPONSE,
            ResponseRatings,
            parse_answers,
            read_sheets,
            write_ratings,
        )
        from recbias.formats.tables import read_text_table

        key_table = read_text_table(to_local_path(key))
        key_table.need("question", ANSWERS, QUERY, RESPONSE, MODELS)
        question, choices = (key_table.ids(name)[0] for name in ("question", ANSWERS))
        scale = parse_answers(choices)
        paths = [to_local_path(path) for path in sheets]
        read = read_sheets(paths, key_table.path, question, scale)
        models = tuple(tuple(text.split("\n")) for text in read.key[MODELS])
        names = tuple(path.stem for path in paths)
        if len(set(names)) < len(names):
            names = tuple(f"rater-{number + 1}" for number in range(len(paths)))
        ratings = ResponseRatings(read.key[QUERY], read.key[RESPONSE], models, names, read.ratings)
        if np.isnan(read.ratings).all():
            remedy = f"fill the column {question} of a sheet"
            raise NothingLeft("no sheet has an answer", remedy=remedy)
        path = write_ratings(to_local_path(out), ratings, question)
        for line in (*describe_agreement(ratings), *describe_rates(ratings, question, scale)):
            print_line(line)
        print_line(path, longest=None)


app.command("export")(export_sheets)
app.command("import")(import_ratings)
