"""``recbias human``: sheets on which people rate responses, and the ratings on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from recbias.cli.output import print_line, report_errors
from recbias.core.errors import (
    MalformedLine,
    MixedRuns,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
)
from recbias.core.files import has_file, to_local_path
from recbias.core.text import suggest
from recbias.data.sentences import read_dialogues
from recbias.formats.json_files import read_records
from recbias.formats.ratings import (
    MODELS,
    QUERY,
    RESPONSE,
    ResponseRatings,
    SheetItem,
    digest_response,
    parse_answers,
    read_sheets,
    write_ratings,
    write_sheets,
)
from recbias.formats.tables import read_text_table
from recbias.reports.run import to_records
from recbias.runs.tables import find_run

_DATASET_BY = "--dataset-by"
_Responses = Mapping[str, Mapping[str, str]]  # by model and query
_Labels = dict[str, Mapping[str, Any]]  # the context and the labels of each query


def _read_sources(
    words: Sequence[str], dialogues: Path | None, out: Path, dataset_by: str | None
) -> tuple[_Responses, _Labels]:
    """Return the responses of runs and tables, with the labels of a file of dialogues.

    The models of a run with several datasets are named with their dataset: ``age CDial-GPT``;
    with ``dataset_by``, a label of the dialogues, only the responses of the dataset that it names
    are read.
    """
    responses: dict[str, dict[str, str]] = defaultdict(dict)
    rows = [] if dialogues is None else to_records(read_dialogues(to_local_path(dialogues)))
    labels: _Labels = {str(row["id"]): row for row in rows}
    for word in words:
        found = [*_list_responses(word, out)]
        several = len({dataset for dataset, *_ in found}) > 1
        for dataset, model, query_id, text, own, place in found:
            known = {name: cell for name, cell in own.items() if cell}
            labels[query_id] = {**known, **labels.get(query_id, {})}
            name = f"{dataset} {model}" if several and not dataset_by else model
            named = (
                dataset_by and dataset and _get_label(labels, query_id, dataset_by, _DATASET_BY)
            )
            if named and str(named) != dataset:
                continue
            if query_id in responses[name]:
                message = f"{name} has two responses to {query_id!r}"
                remedy = "use a run with one seed and one fold, and another label for each model"
                raise MixedRuns(message, where=place, remedy=remedy)
            responses[name][query_id] = text
    return responses, labels


def _list_responses(
    word: str, out: Path
) -> Iterator[tuple[str, str, str, str, Mapping[Any, Any], str]]:
    """Yield dataset, model, query, text, labels and place of the responses of a table or a run."""
    label, _, name = word.rpartition("=")
    path = to_local_path(name)
    if label or (not path.is_dir() and has_file(path)):
        table = read_text_table(path)
        table.need("query_id", "response")
        frame = table.labels(("query_id", "response", "reference"))
        cells = zip(table.ids("query_id"), table.texts("response"), strict=True)
        for row, (query_id, text) in enumerate(cells):
            own = {key: frame[key].iloc[row] for key in frame}
            yield "", label or path.stem, query_id, text, own, table.place(row)
        return
    path = find_run(word, out) / "responses.jsonl"
    if not has_file(path):
        remedy = "name a run whose models give responses"
        raise NothingLeft("the run has no responses", where=str(path.parent), remedy=remedy)
    for number, record in read_records(path):
        place = f"{path}:{number}"
        try:
            names = str(record["dataset"]), str(record["model"]), str(record["query_id"])
            answer = "" if record["reply"] is None else str(record["reply"])
        except KeyError as error:
            raise MalformedLine("not a response of a run", where=place) from error
        yield *names, answer, {"context": record.get("prompt")}, place


def _get_label(labels: _Labels, query_id: str, by: str, option: str) -> object:
    if (label := labels[query_id].get(by)) is None:
        message = f"the query {query_id!r} has no label {by!r}"
        raise UnknownColumn(message, where=option, remedy=suggest(by, labels[query_id]))
    return label


def _select_queries(
    responses: _Responses,
    labels: _Labels,
    n: int | None,
    by: str | None,
    rng: np.random.Generator,
) -> list[str]:
    """Return queries that all models answer, at random, equally many of each value of a label."""
    answered = [*responses.values()]
    shared = [name for name in answered[0] if all(name in each for each in answered)]
    if not shared:
        remedy = "name models that answered the same queries"
        raise NothingLeft("no query is answered by all models", remedy=remedy)
    groups: dict[object, list[str]] = defaultdict(list)
    for query_id in shared:
        label = None if by is None else _get_label(labels, query_id, by, "--by")
        groups[label].append(query_id)
    n_each = max(map(len, groups.values())) if n is None else n // len(groups)
    if not n_each:
        message = f"{n:,} queries are fewer than the {len(groups):,} values of {by}"
        raise NothingLeft(message, where="--sample", remedy=f"give at least {len(groups):,}")
    chosen = {
        names[row] for names in groups.values() for row in rng.permutation(len(names))[:n_each]
    }
    return [query_id for query_id in shared if query_id in chosen]


def _list_items(
    responses: _Responses, labels: _Labels, query_ids: Sequence[str], key: Mapping[str, str]
) -> Iterator[SheetItem]:
    """Yield an item for each response to the queries; equal responses to a query are one item."""
    has_contexts = any("context" in own for own in labels.values())
    for query_id in query_ids:
        if has_contexts and "context" not in labels[query_id]:
            message = f"the query {query_id!r} has no context"
            remedy = "give the dialogues of the run: --dialogues FILE"
            raise UnknownIdentifier(message, remedy=remedy)
        context = {"context": str(labels[query_id]["context"])} if has_contexts else {}
        texts: dict[str, str] = {}
        models: dict[str, list[str]] = defaultdict(list)
        for model, of_model in responses.items():
            digest = digest_response(of_model[query_id])
            texts.setdefault(digest, of_model[query_id])
            models[digest].append(model)
        for digest, names in models.items():
            own = {QUERY: query_id, RESPONSE: digest, MODELS: names}
            yield SheetItem({**context, "response": texts[digest]}, {**own, **key})


def _describe_ratings(ratings: ResponseRatings) -> Iterator[str]:
    """Yield the counts of the ratings, one line each."""
    is_rated = ~np.isnan(ratings.ratings)
    yield f"raters: {len(ratings.raters):,}"
    yield f"responses: {len(ratings):,}"
    yield f"with an answer of every rater: {int(is_rated.all(axis=0).sum()):,}"
    yield f"without an answer: {int((~is_rated.any(axis=0)).sum()):,}"
    for rater, row in zip(ratings.raters, is_rated, strict=True):
        if not row.all():
            yield f"answers missing from {rater}: {int((~row).sum()):,}"


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
    """Write a blinded sheet of responses for each rater."""
    with report_errors():
        parse_answers(answers)
        responses, labels = _read_sources(sources, dialogues, results, dataset_by)
        queries = _select_queries(responses, labels, sample, by, np.random.default_rng(seed))
        key = {"question": question, ANSWERS: answers}
        items = [*_list_items(responses, labels, queries, key)]
        # from a seed that raters can guess, the numbers of items would say which model is first
        unpredictable = np.random.default_rng()
        paths = write_sheets(to_local_path(out), items, question, raters, unpredictable)
        print_line(f"models: {', '.join(responses)}")
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
    """Read filled sheets into a file of ratings."""
    with report_errors():
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
        for line in _describe_ratings(ratings):
            print_line(line)
        print_line(path, longest=None)
