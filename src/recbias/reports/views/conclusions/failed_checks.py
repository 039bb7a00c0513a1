"""The failed checks of a run, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from recbias.reports.markup import to_line
from recbias.reports.views.definitions import format_title
from recbias.reports.views.headings import make_heading
from recbias.reports.views.rounding import count_decimals, format_interval, format_value
from recbias.reports.views.run_tables import RunTables


def describe_failed_checks(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield the sentence, metric, dataset and model of each failed check."""
    checks = run.manifest.get("checks", [])
    names_dataset = len({check["dataset"] for check in checks}) > 1
    for check in checks:
        if not check["failed"]:
            continue
        numbers = (check["value"], check["ci_low"], check["ci_high"])
        value, low, high = (math.nan if number is None else number for number in numbers)
        places = count_decimals([value, low, high])
        title = format_title(check["metric"], math.nan if check["k"] is None else check["k"])
        parts = [check["group"], check["target"], check["dataset"] if names_dataset else ""]
        suffix = "".join(f", {to_line(part)}" for part in parts if part)
        interval = format_interval(low, high, places)
        bounds = f"95% interval {interval}" if interval else "no interval"
        sentence = (
            f"Check failed: {to_line(check['model'])}, {to_line(make_heading(title))}{suffix}: "
            f"{format_value(value, places)} ({bounds}); limit: {to_line(check['line'])}."
        )
        yield sentence, title, str(check["dataset"]), str(check["model"])
