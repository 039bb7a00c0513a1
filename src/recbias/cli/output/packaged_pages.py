"""What ``recbias show`` and ``list`` print about packaged specs and published tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from recbias.config.packaged_specs import list_specs, resolve_spec
from recbias.core.errors import UnknownName
from recbias.reports.published_tables.sources import (
    list_published,
    load_published,
    read_source,
    resolve_name,
)

_INDENT = "    "


def describe_packaged(name: str, width: int) -> Iterator[str]:
    """Yield the pages of the spec and of the published table that have a name."""
    for describe, resolve in ((_describe_spec, resolve_spec), (_describe_table, resolve_name)):
        try:
            found = resolve(name)
        except UnknownName:
            continue
        yield describe(found, width)


def describe_use(name: str) -> str:
    """Return which packaged specs are compared with a published table, or why none is.

    >>> describe_use("aab/1")
    'papers/aab/with-and-without-gender'
    """
    table = read_source(name)
    return ", ".join(table.specs) or table.reason


def list_uses(width: int) -> str:
    """Return the title and the use of every published table, in lines of at most a width."""
    lines = []
    for name in list_published():
        title = f"{name}: {read_source(name).title}"
        lines += textwrap.wrap(title, width, subsequent_indent=_INDENT)
        lines += textwrap.wrap(
            describe_use(name),
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,  # names of specs have hyphens
        )
    return "\n".join(lines)


def _describe_spec(name: str, width: int) -> str:
    """Return the content of a spec below the commands that use it."""
    commands = f"Run it with recbias run {name}; recbias init {name} writes it into this folder."
    content = list_specs()[name].read_text("utf-8").rstrip()
    return "\n\n".join([f"{name} (spec)", textwrap.fill(commands, width), content])


def _describe_table(name: str, width: int) -> str:
    """Return the source, the remarks and the values of a published table."""
    source, values = read_source(name), load_published(name).drop(columns="note", errors="ignore")
    values = values.loc[:, values.notna().any() & (values.astype(str) != "").any()]
    shared = [column for column in values if len({*values[column].astype(str)}) == 1]
    use = f"Compare a run with it: recbias compare RUN --reference {name}"
    lines = [
        source.title + ".",
        *source.remarks,
        *(f"{column}: {values[column].iloc[0]}" for column in shared),
        use if source.comparable else "Its values are not those of a run, so none is compared.",
        f"Source: {source.citation}",
    ]
    table = values.drop(columns=shared).to_string(
        index=False, na_rep="", float_format="{:.6g}".format
    )
    rows = [line.rstrip() for line in textwrap.indent(table, _INDENT).splitlines()]
    text = "\n\n".join(textwrap.fill(line, width, subsequent_indent=_INDENT) for line in lines)
    return "\n\n".join([f"{name} (reference)", text, "\n".join(rows)])
