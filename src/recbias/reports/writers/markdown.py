"""``report.md``: the report as Markdown, for code hosts."""

from __future__ import annotations

import re

from recbias.reports.writers.content import Content
from recbias.reports.writers.jinja_environments import render

LONGEST_TABLE = 60
"""A family with more comparisons, or a search with more trials, is counted instead of listed."""


def render_markdown(content: Content) -> str:
    """Return the report; its plots are files in ``figures/``."""
    text = render(
        "report.md.jinja",
        content=content,
        searches=content.searches,
        title=content.run.manifest.get("name", "Report"),
        longest=LONGEST_TABLE,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
