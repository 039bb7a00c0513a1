"""``recbias human``: sheets on which people rate responses, and the ratings on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import typer

from recbias.cli.output import command, print_line
from recbias.core.errors import (
    MixedRuns,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
)
from recbias.core.files import has_file, to_local_path
from recbias.core.text import suggest
from recbias.data.sentences import read_dialogues
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
from recbias.reports.run import read_responses, to_records
from recbias.runs.tables import find_run

_Labels: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The context and the labels of each query."""

_ANSWERS = "answers"
"""The column of the key with the possible answers."""


class _Response(NamedTuple):
    dataset: str
    model: str
    query_id: str
    text: str
    labels: Mapping[str, Any]
    place: str


@command
def export_sheets(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...")],
    out: Annotated[Path, typer.Option()],
    question: str = "biased",
    answers: str = "yes,no",
    dialogues: Path | None = None,
    sample: Annotated[int | None, typer.Option(min=1)] = None,
    by: str | None = None,
    dataset_by: str | None = None,
    raters: Annotated[int, typer.Option(min=1, max=100)] = 3,
    seed: int = 42,
    results: Path = Path("results"),
) -> Iterator[str]:
    """Write a blinded sheet of responses for each rater.

    Args:
        sources: Runs, and tables of responses as LABEL=FILE.
        out: The folder to write.
        question: The column that raters fill.
        answers: yes,no or the numbers of a scale: 0,1,2.
        dialogues: The contexts: the file of the queries of the run.
        sample: Number of queries; by default all.
        by: A label with equally many queries of each value.
        dataset_by: A label of the dialogues that names the dataset whose response is rated; by
            default that of each dataset is.
        raters: Number of raters.
        seed: Seed of the sample of queries.
        results: Folder of results.
    """
    parse_answers(answers)
    known = [] if dialogues is None else to_records(read_dialogues(to_local_path(dialogues)))
    labels: dict[str, Mapping[str, Any]] = {str(row["id"]): row for row in known}
    responses = _read_responses(sources, labels, results, dataset_by)
    shared = [
        query_id
        for query_id in next(iter(responses.values()))
        if all(query_id in of_model for of_model in responses.values())
    ]
    if not shared:
        remedy = "name models that answered the same queries"
        raise NothingLeft("no query is answered by all models", remedy=remedy)
    chosen = _sample_queries(shared, labels, sample, by, np.random.default_rng(seed))
    key = {"question": question, _ANSWERS: answers}
    items = [*_list_items(responses, labels, chosen, key)]
    # from a seed that raters can guess, the numbers of items would say which model is first
    unpredictable = np.random.default_rng()
    paths = write_sheets(to_local_path(out), items, question, raters, unpredictable)
    yield f"models: {', '.join(responses)}"
    yield f"queries: {len(chosen):,}"
    yield f"responses: {len(items):,}"
    yield from map(str, paths)
    note = f"Each rater fills the column {question} with one of {answers}"
    print_line(f"{note}; key.jsonl is not for raters.", to_stderr=True)


def _read_responses(
    words: Sequence[str], labels: dict[str, Mapping[str, Any]], out: Path, dataset_by: str | None
) -> dict[str, dict[str, str]]:
    """Return the responses of runs and tables by model and query, and add to the labels.

    The models of a run with several datasets are named with their dataset: ``age CDial-GPT``;
    with ``dataset_by``, a label of the dialogues, only the responses of the dataset that it names
    are read.
    """
    responses: dict[str, dict[str, str]] = defaultdict(dict)
    for word in words:
        found = [*_list_responses(word, out)]
        several = len({row.dataset for row in found}) > 1 and not dataset_by
        for row in found:
            known = {name: cell for name, cell in row.labels.items() if cell}
            labels[row.query_id] = {**known, **labels.get(row.query_id, {})}
            if dataset_by and row.dataset:
                label = _get_label(labels, row.query_id, dataset_by, "--dataset-by")
                if str(label) != row.dataset:
                    continue
            name = f"{row.dataset} {row.model}" if several else row.model
            if row.query_id in responses[name]:
                message = f"{name} has two responses to {row.query_id!r}"
                remedy = "use a run with one seed and one fold, and another label for each model"
                raise MixedRuns(message, where=row.place, remedy=remedy)
            responses[name][row.query_id] = row.text
    return responses


def _list_responses(word: str, out: Path) -> Iterator[_Response]:
    """Yield the responses of a table or a run."""
    label, _, name = word.rpartition("=")
    path = to_local_path(name)
    if label or (not path.is_dir() and has_file(path)):
        table = read_text_table(path)
        table.need("query_id", "response")
        others = to_records(table.labels(("query_id", "response", "reference")))
        cells = zip(table.ids("query_id"), table.texts("response"), strict=True)
        for at, (query_id, text) in enumerate(cells):
            own = others[at] if others else {}
            yield _Response("", label or path.stem, query_id, text, own, table.place(at))
        return
    path = find_run(word, out) / "responses.jsonl"
    if not has_file(path):
        remedy = "name a run whose models give responses"
        raise NothingLeft("the run has no responses", where=str(path.parent), remedy=remedy)
    for place, response in read_responses(path.parent):
        dataset, model, query_id = (str(response[k]) for k in ("dataset", "model", "query_id"))
        answer = "" if response["reply"] is None else str(response["reply"])
        yield _Response(
            dataset, model, query_id, answer, {"context": response.get("prompt")}, place
        )


def _get_label(labels: _Labels, query_id: str, by: str, option: str) -> object:
    if (label := labels[query_id].get(by)) is None:
        message = f"the query {query_id!r} has no label {by!r}"
        raise UnknownColumn(message, where=option, remedy=suggest(by, labels[query_id]))
    return label


def _sample_queries(
    query_ids: Sequence[str],
    labels: _Labels,
    n: int | None,
    by: str | None,
    rng: np.random.Generator,
) -> list[str]:
    """Return queries at random, equally many of each value of a label."""
    groups: dict[object, list[str]] = defaultdict(list)
    for query_id in query_ids:
        label = None if by is None else _get_label(labels, query_id, by, "--by")
        groups[label].append(query_id)
    n_each = max(map(len, groups.values())) if n is None else n // len(groups)
    if not n_each:
        message = f"{n:,} queries are fewer than the {len(groups):,} values of {by}"
        raise NothingLeft(message, where="--sample", remedy=f"give at least {len(groups):,}")
    chosen = {
        names[row] for names in groups.values() for row in rng.permutation(len(names))[:n_each]
    }
    return [query_id for query_id in query_ids if query_id in chosen]


def _list_items(
    responses: Mapping[str, Mapping[str, str]],
    labels: _Labels,
    query_ids: Sequence[str],
    key: Mapping[str, str],
) -> Iterator[SheetItem]:
    """Yield an item for each response to the queries; equal responses to a query are one item."""
    has_contexts = any("context" in own for own in labels.values())
    for query_id in query_ids:
        if has_contexts and "context" not in labels[query_id]:
            message = f"the query {query_id!r} has no context"
            remedy = "give the dialogues of the run: --dialogues FILE"
            raise UnknownIdentifier(message, remedy=remedy)
        context = {"context": str(labels[query_id]["context"])} if has_contexts else {}
        models: dict[str, dict[str, str]] = defaultdict(dict)
        for model, of_model in responses.items():
            text = of_model[query_id]
            models[digest_response(text)][model] = text
        for digest, texts in models.items():
            own = {QUERY: query_id, RESPONSE: digest, MODELS: [*texts]}
            response = next(iter(texts.values()))
            yield SheetItem({**context, "response": response}, {**own, **key})


@command
def import_ratings(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...")],
    key: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> Iterator[str]:
    """Read filled sheets into a file of ratings.

    Args:
        sheets: The filled sheets.
        key: The key.jsonl that was written with the sheets.
        out: The file of ratings to write, .jsonl.
    """
    key_table = read_text_table(to_local_path(key))
    key_table.need("question", _ANSWERS, QUERY, RESPONSE, MODELS)
    question, choices = (key_table.ids(name)[0] for name in ("question", _ANSWERS))
    paths = [to_local_path(path) for path in sheets]
    read = read_sheets(paths, key_table.path, question, parse_answers(choices))
    models = tuple(tuple(text.split("\n")) for text in read.key[MODELS])
    names = tuple(path.stem for path in paths)
    if len(set(names)) < len(names):
        names = tuple(f"rater-{number + 1}" for number in range(len(paths)))
    ratings = ResponseRatings(read.key[QUERY], read.key[RESPONSE], models, names, read.ratings)
    is_rated = ~np.isnan(read.ratings)
    if not is_rated.any():
        remedy = f"fill the column {question} of a sheet"
        raise NothingLeft("no sheet has an answer", remedy=remedy)
    path = write_ratings(to_local_path(out), ratings, question)
    yield f"raters: {len(names):,}"
    yield f"responses: {len(ratings):,}"
    yield f"with an answer of every rater: {int(is_rated.all(axis=0).sum()):,}"
    yield f"without an answer: {int((~is_rated.any(axis=0)).sum()):,}"
    for rater, missing in zip(names, (~is_rated).sum(axis=1).tolist(), strict=True):
        if missing:
            yield f"answers missing from {rater}: {missing:,}"
    yield str(path)
