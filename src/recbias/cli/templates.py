"""Sets of templates as text: their prompts as CSV, and a description of what they hold."""

from __future__ import annotations

import csv
import io
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.registry import REGISTRIES


def load_template_sets() -> Mapping[str, Any]:
    """Return the packaged sets of templates by name."""
    source: Any = REGISTRIES["queries"].load("templates")
    template_sets: Mapping[str, Any] = source.packaged()
    return template_sets


def render_prompts_csv(name: str) -> str:
    """Render every prompt of a set as CSV: ``query_id``, ``text`` and its labels.

    Args:
        name: A packaged set, or a template file.

    Raises:
        UnknownName: The name is neither of the two.
        UserError: The file is not a template file.
    """
    packaged = list(load_template_sets())
    if name not in packaged and not has_file(Path(name)):
        message = f"{name!r} is neither {', '.join(packaged)} nor a template file"
        raise UnknownName(message, remedy=suggest(name, packaged))
    source: Any = REGISTRIES["queries"].load("templates")
    queries = source(templates=name if name in packaged else Path(name)).ask(None, None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = queries.labels.frame
    writer.writerow(["query_id", "text", *labels.columns])
    cells = [labels[column].tolist() for column in labels.columns]
    writer.writerows(zip(queries.ids.ids, queries.texts, *cells, strict=True))
    return text.getvalue()


def describe_template_set(name: str, templates: Any, width: int) -> str:
    """Describe a set of templates: its kinds, slots, words, labels and example sentences."""
    total = sum(len(kind) for kind in templates.kinds)
    sections = [f"{name} (templates)", indent(f"{templates.about} {total:,} prompts.", "", width)]
    for kind in templates.kinds:
        title = f"{kind.name}: {len(kind.sentences)} sentences, {len(kind):,} prompts"
        lines = [indent(line, "    ", width) for line in _describe_kind(kind)]
        sections.append("\n".join([title, *lines]))
    sections.append(indent(f"Source: {templates.source}", "", width))
    return "\n\n".join(sections)


def _describe_kind(kind: Any) -> Iterator[str]:
    for slot, word_list in kind.words.items():
        yield f"[{slot}]: {len(word_list.words)} words ({', '.join(word_list.words[:6])}, ...)"
    for column, (slot, label) in kind.labels.items():
        counts = Counter(value for value in kind.words[slot].labels[label] if value)
        yield f"{column}: {', '.join(f'{value} ({count})' for value, count in counts.items())}"
    examples = (kind.sentences[0], kind.sentences[len(kind.sentences) // 2], kind.sentences[-1])
    yield from (f'"{sentence}"' for sentence in dict.fromkeys(examples))


def indent(text: str, margin: str, width: int) -> str:
    """Wrap a text with a margin; its further lines are indented by four more characters."""
    return textwrap.fill(text, width, initial_indent=margin, subsequent_indent=margin + "    ")
