"""``recbias data fetch`` and ``data describe``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from recbias.cli.output import print_line, print_text, report_errors
from recbias.core.errors import Contradiction
from recbias.core.text import normalize_name
from recbias.runner.options import data_folder

if TYPE_CHECKING:  # imported by the functions that use them
    from recbias.core.dataset import Dataset
    from recbias.runner.execute import Executor
    from recbias.runner.plan import DataContext

Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets.", envvar="RECBIAS_DATA", show_default="data"),
]
Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="A dataset.", show_default=False)
]

LOCAL_DATASETS = ("demo", "tables", "sentencetables")
"""Datasets without a download: the generated one, and the user's own tables; normalized names."""

LONGEST = 60
"""The maximum number of characters of a name; a longer text is shortened."""


def fetch(name: Name, data: Data = None) -> None:
    """Download a dataset from its publisher, and verify it."""
    with report_errors():
        from recbias.core.context import stage_context
        from recbias.data.fetch import fetch as fetch_dataset
        from recbias.data.fetch import find_source
        from recbias.progress import open_observer

        if normalize_name(name) in LOCAL_DATASETS:
            print_line(f"{name} needs no download", to_stderr=True)
            return
        print_text(find_source(name).terms(), to_stderr=True)
        with (
            open_observer(quiet=False, verbose=False) as observer,
            stage_context(on_progress=observer.progressed),
        ):
            folder = fetch_dataset(name, data_folder(data))
        print_line(folder, longest=None)


class _SideSource(StrEnum):
    """Where the side information of films is from."""

    imdb = "imdb"
    tmdb = "tmdb"


def side(
    name: Name,
    data: Data = None,
    source: Annotated[_SideSource, typer.Option(help="IMDb's files, or TMDB.")] = _SideSource.imdb,
    links: Annotated[
        Path | None, typer.Option(help="MovieLens links.", show_default="the dataset's")
    ] = None,
    cast: Annotated[int, typer.Option(help="People in the cast.", min=1)] = 5,
    key_env: Annotated[str, typer.Option(help="Variable with your TMDB key.")] = "TMDB_API_KEY",
    language: Annotated[str, typer.Option(help="Language of TMDB's overviews.")] = "en-US",
    url: Annotated[
        str | None, typer.Option(help="Address of a mirror.", show_default="the source's")
    ] = None,
    replace: Annotated[bool, typer.Option(help="Replace an existing table.")] = False,
) -> None:
    """Write the cast, directors and overviews of MovieLens films."""
    with report_errors():
        from recbias.core.context import stage_context
        from recbias.data import side
        from recbias.progress import open_observer

        key = os.environ.get(key_env, "").strip()
        if source is _SideSource.tmdb and not key:
            message = f"TMDB needs a key, and the variable {key_env} is not set"
            remedy = "get a key at themoviedb.org, or take the public files: --source imdb"
            raise Contradiction(message, where="--key-env", remedy=remedy)
        folder = data_folder(data)
        facts: side.Imdb | side.Tmdb = side.Imdb(folder / "imdb", url or side.URL, cast)
        if source is _SideSource.tmdb:
            facts = side.Tmdb(key, url or side.URL_TMDB, language, cast)
        print_text(facts.terms, to_stderr=True)
        with (
            open_observer(quiet=False, verbose=False) as observer,
            stage_context(on_progress=observer.progressed),
        ):
            table = side.build_side_table(name, folder, facts, links=links, replace=replace)
        columns = ", ".join(f"{count:,} with {name}" for name, count in table.counts.items())
        print_line(f"{table.n_films:,} films: {columns}", to_stderr=True)
        print_line(table.path, longest=None)


def describe(name: Name, data: Data = None) -> None:
    """Print the counts, popularity and labels of a dataset."""
    with report_errors():
        for line in describe_datasets(name, data):
            print_line(line)


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
    from recbias.runner.options import Silent

    named = {"name": "describe", "dataset": name, "models": ["MostPop"]}
    spec: Path | dict[str, Any] = named
    if name.endswith((".yaml", ".yml")):
        spec = Path(name)
    elif (facts := _describe_without_training(named, data_folder(data))) is not None:
        yield f"{name}:"
        yield from _render(facts, "  ")
        return
    plan, store = api.plan(spec, data=data)
    for dataset in plan.experiment.datasets:
        label = dataset.label
        context = next(world for world in plan.data_contexts if world.keys.dataset == label)
        executor = Executor(store, Silent())
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


def _describe_without_training(spec: dict[str, Any], data: Path) -> Mapping[Any, Any] | None:
    """Describe a dataset without training interactions, which no spec can fit a model on."""
    import numpy as np

    from recbias import api
    from recbias.core.context import collect_warnings
    from recbias.data.describe import describe as describe_dataset

    source = api.read_experiment(spec).datasets[0].source.plugin
    if "train" in source.gives():
        return None
    with collect_warnings():
        return describe_dataset(source.load(data, np.random.default_rng(0)))


def _render(facts: Mapping[Any, Any], margin: str, separator: str = ",") -> Iterator[str]:
    """Yield the facts; a rating has no trailing zeros, and a long name is shortened."""
    for key, value in facts.items():
        name = f"{key:g}" if isinstance(key, float) else str(key)
        title = f"{margin}{shorten(name, LONGEST, placeholder=' ...') or name}:"
        if isinstance(value, Mapping):
            yield title
            yield from _render(value, margin + "  ", "" if key == "numbers" else separator)
        else:
            yield f"{title} {_render_value(value, separator)}"


def _render_value(value: object, separator: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:{separator}}" if isinstance(value, int) else f"{value:{separator}.4g}"
