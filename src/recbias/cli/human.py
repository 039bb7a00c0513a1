"""The responses of several models to the same queries, and what raters see of them.

What ``recbias human import`` prints: agreement of the raters, and rates of the models.
``recbias human``: evaluation of responses by people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated

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
from recbias.formats.json_files import parse_json
from recbias.formats.ratings import (
    MODELS,
    QUERY,
    RESPONSE,
    YES_NO,
    ResponseRatings,
    SheetItem,
    digest_response,
    parse_answers,
    rating_shares,
    read_sheets,
    write_ratings,
    write_sheets,
)
from recbias.formats.tables import read_text_table
from recbias.formats.text_files import open_text
from recbias.runs.tables import find_run
from recbias.statistics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from recbias.statistics.intervals import rating_share_interval

RESPONSES_FILE = "responses.jsonl"
"""The file of a run folder that holds the responses of its models."""


@dataclass
class Sources:
    """The responses, and the contexts that they answer.

    Args:
        responses: The responses by model and query.
        contexts: The context by query.
        labels: The labels of each query.
    """

    responses: dict[str, dict[str, str]] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def add(self, model: str, query_id: str, text: str, locate: Callable[[], str]) -> None:
        """Add a response; MixedRuns, with its location, if the model has one to the query."""
        of_model = self.responses.setdefault(model, {})
        if query_id in of_model:
            message = f"{model} has two responses to {query_id!r}"
            remedy = "use a run with one seed and one fold, and another label for each model"
            raise MixedRuns(message, where=locate(), remedy=remedy)
        of_model[query_id] = text


def read_sources(
    words: Sequence[str], dialogues: Path | None, out: Path, dataset_by: str | None = None
) -> Sources:
    """Return the responses of runs and tables, with the contexts of a file of dialogues.

    The models of a run with several datasets are named with their dataset: ``age CDial-GPT``.

    Args:
        words: Runs (folders, or names of experiments), and tables as ``LABEL=FILE`` or ``FILE``.
        dialogues: The file of the query source ``sentences``, or None.
        out: The folder of results, for names of experiments.
        dataset_by: A label of the dialogues: of a run with several datasets, the responses to a
            query are those of the dataset that its label names. None: of all datasets.

    Raises:
        MissingFile: A file does not exist.
        MissingRun: A word is neither a file nor a run.
        UnknownColumn: A table lacks ``query_id`` or ``response``, or a dialogue ``dataset_by``.
        MixedRuns: A model has two responses to a query.
    """
    sources = Sources()
    if dialogues is not None:
        table = read_dialogues(to_local_path(dialogues))
        for row in table.to_dict("records"):
            query_id = str(row.pop("id"))
            sources.contexts[query_id] = str(row["context"])
            sources.labels[query_id] = {str(name): cell for name, cell in row.items()}
    for word in words:
        label, _, name = word.rpartition("=")
        path = to_local_path(name)
        if label or _has_file_or_none(path):
            _add_table(sources, label or path.stem, path)
        else:
            _add_run(sources, find_run(word, out) / RESPONSES_FILE, dataset_by)
    return sources


def _has_file_or_none(path: Path) -> bool:
    """Return whether a path is a file; a folder is none."""
    return not path.is_dir() and has_file(path)


def _add_table(sources: Sources, model: str, path: Path) -> None:
    table = read_text_table(path)
    table.need("query_id", "response")
    frame = table.labels(("query_id", "response", "reference"))
    labels = frame.to_dict("records") or [{}] * len(table)
    cells = zip(table.ids("query_id"), table.texts("response"), labels, strict=True)
    for row, (query_id, text, label) in enumerate(cells):
        sources.add(model, query_id, text, partial(table.place, row))
        _add_context(sources, query_id, label)


def _add_run(sources: Sources, path: Path, dataset_by: str | None) -> None:
    if not has_file(path):
        remedy = "name a run whose models give responses"
        raise NothingLeft("the run has no responses", where=str(path.parent), remedy=remedy)
    rows = []
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            row, location = parse_json(line, path, line=number), f"{path}:{number}"
            try:
                names = str(row["dataset"]), str(row["model"]), str(row["query_id"])
                answer = "" if row["reply"] is None else str(row["reply"])
            except (KeyError, TypeError) as error:
                raise MalformedLine("not a response of a run", where=location) from error
            rows.append((*names, answer, row.get("prompt"), location))
    is_one_dataset = len({row[0] for row in rows}) == 1
    for dataset, model, query_id, answer, prompt, location in rows:
        _add_context(sources, query_id, {"context": prompt})
        if dataset_by is None:
            label = model if is_one_dataset else f"{dataset} {model}"
        elif str(_get_label(sources, query_id, dataset_by, "--dataset-by")) == dataset:
            label = model
        else:
            continue
        sources.add(label, query_id, answer, partial(str, location))


def _add_context(sources: Sources, query_id: str, label: Mapping[object, object]) -> None:
    sources.labels.setdefault(query_id, {str(name): cell for name, cell in label.items()})
    if label.get("context"):
        sources.contexts.setdefault(query_id, str(label["context"]))


def _select_queries(
    sources: Sources, n: int | None, by: str | None, rng: np.random.Generator
) -> list[str]:
    """Return queries that every model answers, at random."""
    answered = [*sources.responses.values()]
    shared = [name for name in (answered[0] if answered else ()) if _is_in_all(name, answered)]
    if not shared:
        remedy = "name models that answered the same queries"
        raise NothingLeft("no query is answered by all models", remedy=remedy)
    groups: dict[object, list[str]] = defaultdict(list)
    for query_id in shared:
        label = None if by is None else _get_label(sources, query_id, by, "--by")
        groups[label].append(query_id)
    n_each = max(map(len, groups.values())) if n is None else n // len(groups)
    if not n_each:
        message = f"{n:,} queries are fewer than the {len(groups):,} values of {by}"
        raise NothingLeft(message, where="--sample", remedy=f"give at least {len(groups):,}")
    chosen = [
        names[row] for names in groups.values() for row in rng.permutation(len(names))[:n_each]
    ]
    positions = {query_id: position for position, query_id in enumerate(shared)}
    return sorted(chosen, key=positions.__getitem__)


def _is_in_all(query_id: str, answered: Iterable[Mapping[str, str]]) -> bool:
    return all(query_id in of_model for of_model in answered)


def _get_label(sources: Sources, query_id: str, by: str, option: str) -> object:
    labels = sources.labels.get(query_id, {})
    if labels.get(by) is None:
        message = f"the query {query_id!r} has no label {by!r}"
        raise UnknownColumn(message, where=option, remedy=suggest(by, labels))
    return labels[by]


def list_items(sources: Sources, query_ids: Sequence[str]) -> list[SheetItem]:
    """Return an item for each response to the queries; equal responses to a query are one item.

    Raises:
        UnknownIdentifier: Some queries have a context, and one has none.
    """
    items = []
    for query_id in query_ids:
        context = _get_context(sources, query_id)
        variants: dict[str, tuple[str, list[str]]] = {}
        for model, of_model in sources.responses.items():
            text = of_model[query_id]
            variants.setdefault(digest_response(text), (text, []))[1].append(model)
        items += [
            SheetItem(
                {**context, "response": text},
                {QUERY: query_id, RESPONSE: digest, MODELS: models},
            )
            for digest, (text, models) in variants.items()
        ]
    return items


def _get_context(sources: Sources, query_id: str) -> dict[str, str]:
    if sources.contexts and query_id not in sources.contexts:
        message = f"the query {query_id!r} has no context"
        remedy = "give the dialogues of the run: --dialogues FILE"
        raise UnknownIdentifier(message, remedy=remedy)
    return {"context": sources.contexts[query_id]} if sources.contexts else {}


def _describe_agreement(ratings: ResponseRatings) -> Iterator[str]:
    """Yield the counts of the ratings and the agreement of the raters, one line each."""
    table = ratings.ratings
    is_rated = ~np.isnan(table)
    yield f"raters: {len(ratings.raters):,}"
    yield f"responses: {len(ratings):,}"
    yield f"with an answer of every rater: {int(is_rated.all(axis=0).sum()):,}"
    yield f"without an answer: {int((~is_rated.any(axis=0)).sum()):,}"
    for rater, row in zip(ratings.raters, is_rated, strict=True):
        if not row.all():
            yield f"answers missing from {rater}: {int((~row).sum()):,}"
    yield f"Krippendorff's alpha: {krippendorff_alpha(table):.4g}"
    if np.unique(table[is_rated]).size > 2:
        yield f"Krippendorff's alpha (interval): {krippendorff_alpha(table, 'interval'):.4g}"
    yield f"Fleiss' kappa: {fleiss_kappa(table):.4g}"
    for a, b in combinations(range(len(ratings.raters)), 2):
        kappa, _ = cohen_kappa(table[a], table[b])
        yield f"Cohen's kappa of {ratings.raters[a]} and {ratings.raters[b]}: {kappa:.4g}"


def _describe_rates(
    ratings: ResponseRatings, question: str, answers: Mapping[str, float]
) -> Iterator[str]:
    """Yield the share of each answer for each model, with its 95% interval, one line each."""
    is_yes_no = answers == YES_NO
    for model in dict.fromkeys(name for names in ratings.models for name in names):
        is_of_model = np.array([model in names for names in ratings.models])
        for score in [1.0] if is_yes_no else sorted(set(answers.values()), reverse=True):
            of_model = ratings.ratings[:, is_of_model]
            shares = rating_shares(of_model, score)
            n = int((~np.isnan(shares)).sum())
            low, high = rating_share_interval(shares, int((~np.isnan(of_model)).sum()))
            rate = float(np.nanmean(shares)) if n else np.nan
            interval = f"{rate:.4g} [{low:.4g}, {high:.4g}]"
            name = question if is_yes_no else f"{question} {score:g}"
            yield f"{model}: {name}: {interval}, {n:,} responses"


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
        candidates = read_sources(sources, dialogues, results, dataset_by)
        queries = _select_queries(candidates, sample, by, np.random.default_rng(seed))
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
    """Read filled sheets; print agreement and rates."""
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
        for line in (*_describe_agreement(ratings), *_describe_rates(ratings, question, scale)):
            print_line(line)
        print_line(path, longest=None)
