"""``recbias data``: download and describe datasets; ``recbias clean``: what the store holds."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from recbias.cli.output import Data, Out, command, print_line, show_progress
from recbias.core.errors import Contradiction, WrongType
from recbias.core.files import to_local_path
from recbias.core.text import normalize_name
from recbias.runner.plan import data_folder

if TYPE_CHECKING:  # imported by the functions that use them
    from recbias.core.dataset import Dataset
    from recbias.runner.execute import Executor
    from recbias.runner.plan import DataContext

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="A dataset.", show_default=False)
]

_LOCAL_DATASETS = ("demo", "tables", "sentencetables")
"""Datasets without a download: the generated one, and the user's own tables; normalized names."""


@contextmanager
def _download(terms: str) -> Iterator[None]:
    """Print the terms of a download, and show the progress of a block."""
    from recbias.core.context import stage_context

    for line in terms.split("\n"):
        print_line(line, to_stderr=True)
    with (
        show_progress(quiet=False) as observer,
        stage_context(on_progress=observer.progressed),
    ):
        yield


@command
def fetch(name: Name, data: Data = None) -> Iterator[str]:
    """Download a dataset from its publisher, and verify it."""
    from recbias.data import fetch

    if normalize_name(name) in _LOCAL_DATASETS:
        print_line(f"{name} needs no download", to_stderr=True)
        return
    with _download(fetch.find_source(name).terms()):
        folder = fetch.fetch(name, data_folder(data))
    yield str(folder)


class _SideSource(StrEnum):
    """Where the side information of films is from."""

    imdb = "imdb"
    tmdb = "tmdb"


@command
def side(
    name: Name,
    data: Data = None,
    source: _SideSource = _SideSource.imdb,
    links: Path | None = None,
    cast: Annotated[int, typer.Option(min=1)] = 5,
    key_env: str = "TMDB_API_KEY",
    language: str = "en-US",
    url: str | None = None,
    replace: bool = False,
) -> Iterator[str]:
    """Write the cast, directors and overviews of MovieLens films.

    Args:
        source: IMDb's files, or TMDB.
        links: MovieLens links; by default those of the dataset.
        cast: People in the cast.
        key_env: Variable with your TMDB key.
        language: Language of TMDB's overviews.
        url: Address of a mirror; by default that of the source.
        replace: Replace an existing table.
    """
    from recbias.data import side

    folder, key = data_folder(data), os.environ.get(key_env, "").strip()
    facts: side.Imdb | side.Tmdb = side.Imdb(folder / "imdb", url or side.URL, cast)
    if source is _SideSource.tmdb:
        if not key:
            message = f"TMDB needs a key, and the variable {key_env} is not set"
            remedy = "get a key at themoviedb.org, or take the public files: --source imdb"
            raise Contradiction(message, where="--key-env", remedy=remedy)
        facts = side.Tmdb(key, url or side.URL_TMDB, language, cast)
    with _download(facts.terms):
        table = side.build_side_table(name, folder, facts, links=links, replace=replace)
    columns = ", ".join(f"{count:,} with {name}" for name, count in table.counts.items())
    print_line(f"{table.n_films:,} films: {columns}", to_stderr=True)
    yield str(table.path)


# ---- describe ----

_LONGEST = 60
"""The maximum number of characters of a name; a longer text is shortened."""


@command
def describe(name: Name, data: Data = None) -> Iterator[str]:
    """Print the counts, popularity and labels of a dataset."""
    return describe_datasets(name, data)


def describe_datasets(name: str, data: Path | None) -> Iterator[str]:
    """Yield the lines that describe a dataset, or each dataset of a spec file after its filters.

    Labels of a language model behind a server are counted once a run has stored them: nothing is
    sent.

    Raises:
        UserError: The dataset is unknown, or its files are missing or malformed.
    """
    from recbias import api
    from recbias.core.plugins import AsksAboutItems
    from recbias.data.describe import describe as describe_dataset
    from recbias.runner.execute import Executor
    from recbias.runner.plan import Observer

    spec: Path | dict[str, Any] = {"name": "describe", "dataset": name, "models": ["MostPop"]}
    if name.endswith((".yaml", ".yml")):
        spec = Path(name)
    else:
        source = api.read_experiment(spec).datasets[0].source.plugin
        if "train" not in source.gives():  # no model can be fitted, so there is no plan
            yield f"{name}:"
            yield from _render(describe_dataset(_load(source, data)), "  ")
            return
    plan, store = api.plan(spec, data=data)
    for dataset in plan.experiment.datasets:
        label = dataset.label
        context = next(world for world in plan.data_contexts if world.keys.dataset == label)
        executor = Executor(store, Observer())
        counted = [
            stage
            for stage in context.labels
            if executor.is_stored(stage)
            or not isinstance(getattr(stage.work, "detector", None), AsksAboutItems)
        ]
        labels = [executor.value(stage).frame for stage in counted]
        for part, loaded in _list_parts(executor, context).items():
            yield f"{label}{part}:"
            yield from _render(describe_dataset(loaded, labels), "  ")
        for stage in context.labels:
            if stage not in counted:
                yield f"  not counted: {stage.title!r} asks a language model; run the spec first"


def _load(source: Any, data: Path | None) -> Dataset:
    import numpy as np

    from recbias.core.context import collect_warnings

    with collect_warnings():
        dataset: Dataset = source.load(data_folder(data), np.random.default_rng(0))
    return dataset


def _list_parts(executor: Executor, context: DataContext) -> dict[str, Dataset]:
    """Return a dataset, or one for each part of a given split if it has no interactions."""
    dataset: Dataset = executor.value(context.dataset)
    if len(dataset.interactions) or (split := executor.value(context.split)).test is None:
        return {"": dataset}
    parts = {name: getattr(split, name) for name in ("train", "validation", "test")}
    return {
        f", {name} part": replace(dataset, interactions=rows)
        for name, rows in parts.items()
        if rows is not None
    }


def _render(facts: Mapping[Any, Any], margin: str, separator: str = ",") -> Iterator[str]:
    """Yield the facts; a rating has no trailing zeros, and a long name is shortened."""
    for key, value in facts.items():
        name = f"{key:g}" if isinstance(key, float) else str(key)
        title = f"{margin}{shorten(name, _LONGEST, placeholder=' ...') or name}:"
        if isinstance(value, Mapping):
            yield title
            yield from _render(value, margin + "  ", "" if key == "numbers" else separator)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            yield f"{title} {'none' if value is None else value}"
        else:
            yield f"{title} {value:{separator}{'' if isinstance(value, int) else '.4g'}}"


# ---- the store ----

_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@command
def clean(  # noqa: C901  two kinds of results
    out: Out = Path("results"),
    older_than: Annotated[str | None, typer.Option(metavar="AGE")] = None,
    dry_run: bool = False,
    replies: bool = False,
    yes: Annotated[bool, typer.Option("--yes", "-y")] = False,
) -> Iterator[str]:
    """Remove cached stage results from the store.

    Run folders (results/NAME/...) are kept, and so are the replies of language models, unless
    they are named by --replies.

    Args:
        older_than: Only results not used for 30d, 12h, 2w.
        dry_run: Only list the results to remove.
        replies: Remove the replies of language models instead.
        yes: Remove them without a question.
    """
    from recbias.runner.store import Store, measure_replies, remove_replies, remove_unused

    store, verb = Store(to_local_path(out) / "store"), "would remove" if dry_run else "removed"
    n_replies, size = measure_replies(store)
    of_replies = f"{n_replies:,} replies of language models, {_format_size(size)}"

    def may_remove(amount: str, consequence: str) -> bool:
        return not dry_run and (yes or _ask(amount, consequence))

    if replies:
        if older_than is not None:
            message = "the replies of language models do not expire"
            raise Contradiction(message, where="--older-than", remedy="leave --older-than out")
        is_removed = bool(n_replies) and may_remove(of_replies, "only be had by asking again")
        if is_removed:
            remove_replies(store)
        verb = verb if dry_run or is_removed else "kept"
        yield f"{verb} {of_replies}" if n_replies else "nothing to remove"
        return
    age = _parse_age(older_than)
    remaining, removed = remove_unused(store.folder, age, dry_run=True)
    counts, sizes = (sum(part) for part in zip((0, 0), *removed.values(), strict=True))
    if removed and may_remove(f"{counts:,} results, {_format_size(sizes)}", "be computed again"):
        remaining, removed = remove_unused(store.folder, age, dry_run=False)
    elif not dry_run:
        verb = "kept"
    for kind, (number, size) in sorted(removed.items()):
        yield f"{verb} {number:,} {kind} results, {_format_size(size)}"
    if not removed:
        yield "nothing to remove"
    if remaining:
        yield f"kept {sum(count for count, _ in remaining.values()):,} newer results"
    if n_replies:
        yield f"kept {of_replies}"


def _ask(amount: str, consequence: str) -> bool:
    """Return whether the user says that an amount may be removed."""
    try:
        return typer.confirm(f"Remove {amount}? They can {consequence}.")
    except (typer.Abort, RuntimeError):  # RuntimeError: standard input is closed
        message = f"{amount}, are removed only if you say so"
        raise Contradiction(message, where="clean", remedy="add --yes") from None


def _format_size(n_bytes: int) -> str:
    megabytes = n_bytes / 2**20
    return f"{megabytes:,.1f} MB" if megabytes >= 0.1 else f"{math.ceil(n_bytes / 1024)} kB"


def _parse_age(text: str | None) -> float:
    """Return an age in seconds, 0 for None.

    >>> _parse_age("30d"), _parse_age(None)
    (2592000.0, 0.0)

    Raises:
        WrongType: The text is not a number with m, h, d or w.
    """
    if text is None:
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if not match:
        message = f"{text!r} is not an age"
        raise WrongType(message, where="--older-than", remedy="write 30d, 12h, 90m or 2w")
    return float(match[1]) * _SECONDS[match[2]]
