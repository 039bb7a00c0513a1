"""All plots of a run: which there are, their order, and their files as SVG, PDF and PNG."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from recbias.core.errors import OutOfRange
from recbias.core.files import to_local_path
from recbias.core.packages import CONVERTER, require_packages
from recbias.reports import views
from recbias.reports.plots import (
    NameFile,
    draw_assumptions,
    draw_group_means,
    draw_scatters,
    draw_tradeoff_curves,
    entitle,
    list_plotted_datasets,
)
from recbias.reports.plots_papers import (
    draw_hit_shares,
    draw_long_tail,
    draw_popularity_means,
    draw_projections,
    draw_stereotypes,
    draw_targets,
)
from recbias.reports.run import RunTables
from recbias.reports.svg import FileNames, Plot, narrow
from recbias.reports.wording import Safe

_DrawPlots = Callable[[RunTables, str, NameFile], Iterator[Plot]]

# plots of the models, and of the users and items, of one dataset
_OVERVIEW: Mapping[str, _DrawPlots] = {
    "Accuracy against bias": draw_scatters,
    "Long tail": draw_long_tail,
    "Mean popularity": draw_popularity_means,
}
_UNIT_PLOTS: Mapping[str, _DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Latent space": draw_projections,
}

# plots of ``metrics.csv``, of the mean over all datasets too
_METRIC_PLOTS: Mapping[str, _DrawPlots] = {
    "Means by group": draw_group_means,
    "Attribute values by label": draw_targets,
    "Lists with a stereotype": draw_hit_shares,
    "What a log assumes": draw_assumptions,
    "Accuracy against bias by re-ranking": draw_tradeoff_curves,
}

_MOST_UNIT_DATASETS = 6  # datasets that get unit plots

# exceptions that an unexpected value can raise in a plot; they cost the run nothing else
_DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)


@dataclass(frozen=True, eq=False)
class Gallery:
    """The plots of a run, and a sentence for each that failed."""

    plots: tuple[Plot, ...]
    failed: tuple[str, ...]

    def dump(self) -> dict[str, Any]:
        """Return what ``load_gallery`` reads."""
        return {"plots": [vars(plot) for plot in self.plots], "failed": self.failed}


def load_gallery(stored: Mapping[str, Any]) -> Gallery:
    """Return the plots of a run, from what ``dump`` returned for one with the same tables."""
    plots = [Plot(**{**plot, "body": Safe(plot["body"])}) for plot in stored["plots"]]
    return Gallery(tuple(plots), tuple(stored["failed"]))


def draw_gallery(run: RunTables) -> Gallery:
    """Return the plots of a run, with their dataset where there are several.

    One that fails costs no other.
    """
    names, single = FileNames(), views.list_single_datasets(run)
    plots, failed = list[Plot](), list[str]()
    for kinds, datasets in (
        (_OVERVIEW, single),
        (_UNIT_PLOTS, single[:_MOST_UNIT_DATASETS]),
        (_METRIC_PLOTS, list_plotted_datasets(run)),
    ):
        for dataset, (title, draw) in itertools.product(datasets, kinds.items()):
            suffix = f"-{dataset}" if len(single) > 1 else ""
            try:
                for plot in draw(run, dataset, partial(_name_file, names, suffix)):
                    plots.append(entitle(plot, dataset) if suffix else plot)
            except _DRAWING_FAULTS as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
                failed.append(f"{title}: the plot failed ({reason}).")
    return Gallery(tuple(plots), tuple(dict.fromkeys(failed)))


def draw_narrow_groups(run: RunTables) -> dict[str, Plot]:
    """Return the plots of groups for the screen of a phone, by their names in the gallery."""
    names, drawn = FileNames(), dict[str, Plot]()
    several = len(views.list_single_datasets(run)) > 1
    with narrow():
        for dataset in list_plotted_datasets(run):
            name_file = partial(_name_file, names, f"-{dataset}" if several else "")
            with contextlib.suppress(*_DRAWING_FAULTS):
                drawn |= {plot.name: plot for plot in draw_group_means(run, dataset, name_file)}
    return drawn


def _name_file(names: FileNames, suffix: str, text: str) -> str:
    return names.free(f"{text}{suffix}")


# ---- files ----

_SCALE = 3  # a PNG has about 300 pixels an inch


IMAGES = ("pdf", "png")
"""The formats that figures are converted to."""


def convert_svg(svg: str, image: str) -> bytes:
    """Return a figure as ``pdf`` or ``png``.

    Raises:
        MissingExtra: The package that converts figures is not installed.
    """
    require_packages("a figure as PDF or PNG", CONVERTER)
    import vl_convert

    svg = _STYLE.sub(lambda match: simplify_style(match[0]), svg, count=1)
    if image == "pdf":
        return bytes(vl_convert.svg_to_pdf(svg))
    return bytes(vl_convert.svg_to_png(svg, scale=_SCALE))


_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_DARK = re.compile(r"@media.*(?=</style>)", re.DOTALL)
_ANY_OF = re.compile(r"([^{}<>]*):is\(([^()]*)\)([^{}]*)(?=\{)")
_COLOUR = re.compile(r"\.fig (\.c\d) (\{[^}]*\})")


def simplify_style(style: str) -> str:
    """Return the style sheet in the selectors that the converter knows: no :is() and no :not().

    >>> simplify_style("<style>.fig :is(.dot, text).c0 { fill: red; }</style>")
    '<style>.fig .dot.c0, .fig text.c0 { fill: red; }</style>'
    """
    style = _ANY_OF.sub(
        lambda match: (
            ", ".join(
                f"{match[1].strip()} {part}{match[3].strip()}" for part in match[2].split(", ")
            )
            + " "
        ),
        _DARK.sub("", style),
    )
    open_dots = " ".join(f".fig .dot.open{name} {rule}" for name, rule in _COLOUR.findall(style))
    return style.replace(":not(.open, .cloud)", "").replace("</style>", f"{open_dots}</style>")


@dataclass(frozen=True)
class Figure:
    """A figure of a run; a notebook shows it.

    Args:
        name: The name of its file without the suffix.
        title: What it shows.
        caption: How to read it.
        svg: The figure as an SVG document.
    """

    name: str
    title: str
    caption: str
    svg: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the figure and return the path; its suffix is ``.svg``, ``.pdf`` or ``.png``.

        Raises:
            OutOfRange: Another suffix.
            MissingExtra: PDF and PNG need ``recbias[figures]``.
        """
        target = to_local_path(path)
        image = target.suffix.lower().removeprefix(".")
        if image not in {"svg", *IMAGES}:
            message = f"a figure cannot be written as {target.name!r}"
            raise OutOfRange(message, remedy="end the name in .svg, .pdf or .png")
        target.write_bytes(self.svg.encode() if image == "svg" else convert_svg(self.svg, image))
        return target

    def _repr_svg_(self) -> str:
        """Return the figure for a notebook."""
        return self.svg
