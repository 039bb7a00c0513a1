"""``recbias init``, ``new`` and ``schema``: files to begin with."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.output import Part, command
from recbias.core.errors import Contradiction, OutOfRange, UnknownName, Unwritable
from recbias.core.text import suggest
from recbias.reports.wording import tabulate


@command
def init(
    name: Annotated[str | None, typer.Argument()] = None,
) -> Iterator[Part]:
    """Write a packaged spec and its tables into this folder, or list all.

    A file that exists is never overwritten.

    Args:
        name: quickstart, audit, prompts, logs, probe, papers/...
    """
    from recbias.config.source import list_spec_files, list_specs, resolve_spec, summarize_spec
    from recbias.runner.store import report_unwritable

    if name is None:
        columns = {"name": lambda row: row[0], "description": lambda row: summarize_spec(row[1])}
        yield tabulate("", list_specs().items(), columns)
        yield "next: recbias init NAME"
        return
    spec = resolve_spec(name.removesuffix(".yaml"))
    files = list_spec_files(spec)
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
        yield f"wrote {target}" if target in missing else f"unchanged {target}: it was here"
    yield f"next: recbias {'probe' if spec == 'probe' else 'run'} {spec}"


_NEW_PLUGINS = Path(__file__).parent / "new_plugins"
"""The folder of the texts that ``recbias new`` starts from."""

_NEW_KINDS = ("metric", "model", "detector", "dataset")


@command
def new(
    kind: str,
    name: str,
) -> Iterator[str]:
    """Write a plug-in of one's own with its test into this folder.

    Args:
        kind: metric, model, detector or dataset.
        name: The name of the class, as in MyMetric.
    """
    from recbias.runner.store import report_unwritable

    if kind not in _NEW_KINDS:
        raise UnknownName(f"no kind is called {kind!r}", remedy=suggest(kind, _NEW_KINDS))
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        remedy = "write it like MyMetric: a capital, then letters and digits"
        raise OutOfRange(f"{name!r} cannot be the name of a class", remedy=remedy)
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if module in sys.stdlib_module_names:
        remedy = f"choose another name, such as My{name}"
        raise OutOfRange(f"{module}.py would hide a module of Python", remedy=remedy)
    sources = {f"{module}.py": f"{kind}.py.txt", f"test_{module}.py": f"{kind}_test.py.txt"}
    for file in sources:
        if Path(file).exists():
            remedy = "choose another name, or move the file away"
            raise Contradiction(f"{file} exists already", remedy=remedy)
    with report_unwritable(Path()):
        for file, source in sources.items():
            text = (_NEW_PLUGINS / source).read_text(encoding="utf-8")
            Path(file).write_text(text.format(Name=name, module=module), encoding="utf-8")
    yield f"wrote {module}.py and test_{module}.py"
    yield f"test it with python -m unittest test_{module}.py"
    yield f"name it in a spec as ./{module}.py:{name}"


@command
def schema() -> Iterator[str]:
    """Print the JSON Schema of experiment files, for editors."""
    from recbias.config.schema import build_json_schema
    from recbias.registry import REGISTRIES

    yield json.dumps(build_json_schema(REGISTRIES), indent=1)
