"""The failures and warnings of a run, once per cause."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.core.records import summarize_failures
from recbias.reports.markup import to_line
from recbias.reports.views.headings import make_heading
from recbias.reports.views.rounding import format_count
from recbias.reports.views.run_tables import RunTables

_MEASURE = "measure "
"""The start of the title of a stage that computes a metric: ``measure nDCG of EASE``."""


def list_failures(run: RunTables) -> list[str]:
    """Return one line per cause of failures: the first stage, the error and the remedy."""
    return [
        to_line(
            f"{failure.stage} failed: {failure.message}."
            + (f" Help: {failure.help}" if failure.help else "")
        )
        for failure in summarize_failures(run.manifest.get("failures", []))
    ]


def list_warnings(run: RunTables) -> list[str]:
    """Return the warnings of the run, one line per cause with the metrics that it concerns."""
    labels = [to_line(entry.get("metric", "")) for entry in run.manifest.get("metrics", [])]
    names = {to_line(entry.get("name", "")) for entry in run.manifest.get("metrics", [])}
    sources: dict[str, list[tuple[str, str]]] = {}
    for line in dict.fromkeys(map(to_line, run.manifest.get("warnings", []))):
        stage, metric, text = _split(line, labels)
        start, _, cause = text.partition(": ")
        is_named = metric and cause and start.partition("@")[0] in {*names, *labels}
        sources.setdefault(cause if is_named else text, []).append((stage, metric))
    return [_describe(cause, found) for cause, found in sources.items()]


def _split(line: str, metrics: Sequence[str]) -> tuple[str, str, str]:
    """Return the stage of a warning, the metric that it computes (or blank), and the text."""
    found = [name for name in metrics if line.startswith(f"{_MEASURE}{name} of ")]
    metric = max(found, key=len, default="")
    end = line.find(": ", len(_MEASURE + metric) if metric else 0)
    return (line[:end], metric, line[end + 2 :]) if end >= 0 else ("", "", line)


def _describe(cause: str, sources: Sequence[tuple[str, str]]) -> str:
    """Return a warning with its stage, or with its metrics and the number of its stages."""
    stage = sources[0][0]
    if len(sources) == 1:
        return f"{stage}: {cause}" if stage else cause
    metrics = dict.fromkeys(make_heading(metric) for _, metric in sources if metric)
    return f"{cause} ({'; '.join([*metrics, format_count(len(sources), 'stage')])})"
