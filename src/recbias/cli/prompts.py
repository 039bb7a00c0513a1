"""The prompts of a set of templates, as a table that another program can answer."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.registry import REGISTRIES


def prompts_csv(name: str) -> str:
    """Return every prompt of a set as CSV: ``query_id``, ``text`` and its labels.

    Args:
        name: A packaged set, or a file of templates.

    Raises:
        UnknownName: It is neither.
        UserError: The file is not one of templates.
    """
    source: Any = REGISTRIES["queries"].load("templates")
    packaged = list(source.packaged())
    if name not in packaged and not has_file(Path(name)):
        found = f"{name!r} is neither {', '.join(packaged)} nor a file of templates"
        raise UnknownName(found, remedy=suggest(name, packaged))
    queries = source(templates=name if name in packaged else Path(name)).ask(None, None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    frame = queries.labels.frame
    writer.writerow(["query_id", "text", *frame.columns])
    cells = [frame[column].tolist() for column in frame.columns]
    writer.writerows(zip(queries.ids.ids, queries.texts, *cells, strict=True))
    return text.getvalue()
