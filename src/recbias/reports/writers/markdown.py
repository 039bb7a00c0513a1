"""``report.md``: the report as Markdown, for code hosts."""

from __future__ import annotations

import re

from recbias.reports.views.facts import build_stages_table
from recbias.reports.writers.content import Content
from recbias.reports.writers.jinja_environments import render

LONGEST_TABLE = 60
"""Of more comparisons and stages the first are listed; more trials of a search are counted."""


def render_markdown(content: Content) -> str:
    """Return the report; its plots are files in ``figures/``."""
    text = render(
        "report.md.jinja",
        content=content,
        searches=content.searches,
        stages=build_stages_table(content.run),
        title=content.run.manifest.get("name", "Report"),
        longest=LONGEST_TABLE,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
