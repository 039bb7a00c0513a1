"""A report of titled sections below an answer, each with a plot, a table or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from recbias.reports import svg
from recbias.reports.environments import read_resource, render
from recbias.reports.svg import Plot
from recbias.reports.wording import Safe, Table, tabulate_frame


@dataclass(frozen=True, eq=False)
class Section:
    """A table under a title, below a sentence and a plot if there are any."""

    title: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    note: str = ""
    plot: Plot | None = None

    @property
    def grid(self) -> Table:
        """The table as it is shown."""
        return tabulate_frame(self.title, self.table)


def write_sections(
    folder: Path, sentences: Sequence[str], notes: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write ``report.html``, ``report.md`` and the plots into a folder, which is made.

    Args:
        folder: The folder.
        sentences: What the report says; the first one is its title.
        notes: What was left out.
        sections: The sections; those without a row and a plot are left out.
    """
    shown = [each for each in sections if len(each.table) or each.plot]
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for plot in (each.plot for each in shown if each.plot):
        path = folder / "figures" / f"{plot.name}.svg"
        path.write_text(plot.document(), encoding="utf-8")
    styles = {"style": Safe(read_resource("page.css"))}
    styles["plot_style"] = Safe(svg.read_style_sheet())
    content = {
        "answer": sentences[0],
        "sentences": sentences[1:],
        "notes": notes,
        "sections": shown,
    }
    for kind, extra in (("md", {}), ("html", styles)):
        text = render(f"sections.{kind}.jinja", **content, **extra)
        (folder / f"report.{kind}").write_text(text, encoding="utf-8")
