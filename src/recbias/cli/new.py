"""``recbias init``, ``list``, ``show``, ``new`` and ``schema``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.output import (
    AsJson,
    open_document,
    print_line,
    print_rows,
    print_table,
    print_text,
    report_errors,
)
from recbias.core.errors import Contradiction, OutOfRange, UnknownName, Unwritable
from recbias.core.text import suggest


def init(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="quickstart, audit, prompts, logs, probe, papers/..."),
    ] = None,
) -> None:
    """Write a packaged spec and its tables into this folder, or list all.

    A file that exists is never overwritten.
    """
    with report_errors():
        from recbias.cli.catalogue import list_entries
        from recbias.config.source import list_spec_files, resolve_spec

        if name is None:
            print_rows(("name", "description"), list_entries("specs"))
            print_line("next: recbias init NAME")
            return
        spec = resolve_spec(name.removesuffix(".yaml"))
        write_files(list_spec_files(spec))
        print_line(f"next: recbias {'probe' if spec == 'probe' else 'run'} {spec}")


def write_files(files: Mapping[Path, Path]) -> None:
    """Copy files to new paths, all or none; those that are there with the same content stay.

    Args:
        files: The file to copy, by its new path.

    Raises:
        Unwritable: A path has another content, or cannot be written.
    """
    from recbias.runner.store import report_unwritable

    with report_unwritable(Path()):
        missing = [target for target in files if not target.exists()]
        for target in files.keys() - {*missing}:
            if not target.is_file() or target.read_bytes() != files[target].read_bytes():
                remedy = "move it away, or run recbias init in another folder"
                raise Unwritable("exists, with other content", where=str(target), remedy=remedy)
        for target in missing:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                stream.write(files[target].read_bytes())
    for target in files:
        print_line(f"wrote {target}" if target in missing else f"unchanged {target}: it was here")


NEW_PLUGINS = Path(__file__).parent / "new_plugins"
"""The folder of the texts that ``recbias new`` starts from."""

NEW_KINDS = ("metric", "model", "detector", "dataset")
"""The kinds that ``recbias new`` accepts."""

KIND_HELP = (
    "datasets, filters, splits, queries, models, detectors, metrics, tests, "
    "templates, prompts, mitigations, terms, references or specs"
)


def list_(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help=KIND_HELP, show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List everything of a KIND; without one, the kinds."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias.cli.catalogue import (
            KINDS,
            describe_kinds,
            describe_use,
            find_extra,
            find_kind,
            list_entries,
        )

        if as_json:
            kinds = KINDS if kind is None else (find_kind(kind),)
            document["kinds"] = describe_kinds(kinds)
            return
        if kind is None:
            counts = [(name, str(len(list_entries(name)))) for name in KINDS]
            print_rows(("kind", "entries"), counts, numeric={"entries"})
            print_line("next: recbias list KIND")
            return
        entries = list_entries(kind)
        if find_kind(kind) == "references":
            rows = [(*entry, describe_use(entry[0])) for entry in entries]
            print_rows(("name", "description", "spec, or why there is none"), rows)
            return
        rows = [(*entry, find_extra(kind, entry[0])) for entry in entries]
        print_rows(("name", "description", "extra"), rows)


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A plug-in, template set, prompt, mitigation, list of terms, packaged spec or "
            "reference.",
            show_default=False,
        ),
    ],
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print the prompts of a set of templates as CSV.")
    ] = False,
) -> None:
    """Show a plug-in, a prompt, a spec or a published table."""
    with report_errors():
        import shutil

        if prompts:
            from recbias.cli.catalogue import render_prompts_csv

            print_table(render_prompts_csv(name))
            return

        from recbias.cli.catalogue import WIDTH, describe

        width = shutil.get_terminal_size((WIDTH, 24)).columns
        print_text(describe(name, min(width, WIDTH)))


def new(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="metric, model, detector or dataset.", show_default=False
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The name of the class, as in MyMetric.", show_default=False
        ),
    ],
) -> None:
    """Write a plug-in of one's own with its test into this folder."""
    with report_errors():
        path, test = write_plugin(kind, name, Path())
        print_text(
            f"wrote {path.name} and {test.name}\n"
            f"test it with python -m unittest {test.name}\n"
            f"name it in a spec as ./{path.name}:{name}"
        )


def write_plugin(kind: str, name: str, folder: Path) -> tuple[Path, Path]:
    """Write the file of a plug-in and that of its test, and return their paths.

    Raises:
        UnknownName: There is nothing to start from for the kind.
        OutOfRange: The name cannot be that of a class.
        Contradiction: One of the files exists.
    """
    from recbias.runner.store import report_unwritable

    if kind not in NEW_KINDS:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, NEW_KINDS))
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        remedy = "write it like MyMetric: a capital, then letters and digits"
        raise OutOfRange(f"{name!r} cannot be the name of a class", remedy=remedy)
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if module in sys.stdlib_module_names:
        remedy = f"choose another name, such as My{name}"
        raise OutOfRange(f"{module}.py would hide a module of Python", remedy=remedy)
    sources = {f"{module}.py": f"{kind}.py.txt", f"test_{module}.py": f"{kind}_test.py.txt"}
    texts = {folder / file: NEW_PLUGINS / source for file, source in sources.items()}
    for path in texts:
        if path.exists():
            remedy = "choose another name, or move the file away"
            raise Contradiction(f"{path.name} exists already", remedy=remedy)
    with report_unwritable(folder):
        for path, source in texts.items():
            text = source.read_text(encoding="utf-8").format(Name=name, module=module)
            path.write_text(text, encoding="utf-8")
    plugin, test = texts
    return plugin, test


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    with report_errors():
        import json

        from recbias.config.schema import build_json_schema
        from recbias.registry import REGISTRIES

        print_text(json.dumps(build_json_schema(REGISTRIES), indent=1))
