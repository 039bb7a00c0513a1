"""Write docs/plugins: one page a plug-in, from its docstring and fields, and an index.

Run by ``make docs``. Nothing in docs/plugins is written by hand.
"""  # noqa: INP001  a script

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recbias.cli.pages import Page, read_page, split_blocks, split_entries
from recbias.config.describe import Parameter
from recbias.registry import REGISTRIES

FOLDER = Path(__file__).parent / "plugins"
KEYS = {"datasets": "dataset", "splits": "split", "queries": "queries"}
"""The key of a spec under which there is one plug-in of a kind; of the others there is a list."""


def pages() -> dict[str, str]:
    """Return the text of every page by its path below docs/plugins; only what is built in."""
    made = {
        f"{kind}/{file_of(name)}": _markdown(kind, read_page(kind, name))
        for kind, registry in REGISTRIES.items()
        for name in registry.table
    }
    return {"index.md": _index(), **made}


def file_of(name: str) -> str:
    """Return the file of a plug-in's page: ``implicit-ALS.md``."""
    return f"{name.replace('/', '-')}.md"


def _index() -> str:
    lines = [
        "# Plug-ins",
        "",
        "One page for each name that a spec may use. `recbias show NAME` says the same in the",
        "terminal, also of the plug-ins of other packages. Written by `make docs`.",
    ]
    for kind, registry in REGISTRIES.items():
        if registry.table:
            rows = [
                f"| [{name}]({kind}/{file_of(name)}) | {_cell(read_page(kind, name).summary)} |"
                for name in registry.table
            ]
            lines += [
                "",
                f"## {kind.capitalize()}",
                "",
                "| name | what it is |",
                "|---|---|",
                *rows,
            ]
    return "\n".join(lines) + "\n"


def _markdown(kind: str, said: Page) -> str:
    parts = [
        f"# {said.name}",
        f"A {said.kind}. [All plug-ins](../index.md)",
        _prose(said.body),
        "In a spec, with the defaults:",
        _fenced("yaml", _in_a_spec(kind, said)),
        *_parameters(said),
        *_facts(said),
    ]
    if said.errors:
        rows = [f"- `{name}`: {_text(when)}" for name, when in split_entries(said.errors)]
        parts += ["## Errors", "\n".join(rows)]
    if said.example:
        parts += ["## From Python", _fenced("python", said.example)]
    if said.source:
        parts += ["## Source", _text(" ".join(said.source.split()))]
    return "\n\n".join(parts) + "\n"


def _parameters(said: Page) -> Iterator[str]:
    if not said.parameters:
        return
    yield "## Parameters"
    heads = ("name", "type", "default", "range", "what it is")
    rows = [
        (f"`{row.name}`", _cell(row.type), _default(row), _cell(row.range), _cell(row.doc))
        for row in said.parameters
    ]
    yield "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _default(row: Parameter) -> str:
    if row.needed:
        return "must be given"
    return f"`{_cell(row.default)}`" if row.default else "empty"


def _facts(said: Page) -> Iterator[str]:
    if said.facts:
        yield "\n".join(f"- **{name}**: {_text(what)}" for name, what in said.facts.items())


def _in_a_spec(kind: str, said: Page) -> str:
    """Return how a plug-in is written in a spec: its defaults, and dots for what must be given."""
    rows = [row for row in said.parameters if row.default != "null"]
    pairs = [f"{row.name}: {'...' if row.needed else row.default or repr('')}" for row in rows]
    if kind == "detectors":
        return f"labels:\n  - {{{', '.join(['name: mine', f'detector: {said.name}', *pairs])}}}"
    entry = f"{{{', '.join([f'name: {said.name}', *pairs])}}}" if rows else said.name
    if kind == "filters":
        return f"dataset:\n  name: demo\n  filters:\n    - {entry}"
    return f"{KEYS[kind]}: {entry}" if kind in KEYS else f"{kind}:\n  - {entry}"


def _prose(text: str) -> str:
    """Return a description in Markdown: formulas in fences, the rest as it is."""
    return "\n\n".join(
        _fenced("text", block) if block.startswith("    ") else _text(block)
        for block in split_blocks(text)
    )


def _fenced(language: str, text: str) -> str:
    lines = text.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join([f"```{language}", *(line[indent:] for line in lines), "```"])


def _text(text: str) -> str:
    """Return text with Markdown's code marks, and no HTML outside of them."""
    pieces = text.split("``")
    return "`".join(
        piece if number % 2 else piece.replace("<", "&lt;") for number, piece in enumerate(pieces)
    )


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


def write() -> None:
    """Write the pages, and remove those of plug-ins that are gone."""
    made = pages()
    for path in FOLDER.rglob("*.md"):
        if path.relative_to(FOLDER).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
