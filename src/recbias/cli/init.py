"""``recbias init``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.printing import print_line, report_errors


def init(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="quickstart, audit, prompts, vectors, papers/..."),
    ] = None,
) -> None:
    """Write a packaged spec and its tables into the current folder, to change them; or list all.

    A file that exists is never overwritten.
    """
    with report_errors():
        from recbias.cli.catalogue import list_entries
        from recbias.cli.grids import print_rows
        from recbias.config.packaged_specs import list_spec_files, resolve_spec

        if name is None:
            print_rows(("name", "description"), list_entries("specs"))
            print_line("next: recbias init NAME")
            return
        spec = resolve_spec(name.removesuffix(".yaml"))
        write_files(list_spec_files(spec))
        print_line(f"next: recbias run {spec}")


def write_files(files: Mapping[Path, Path]) -> None:
    """Copy files to new paths, all or none; those that are there with the same content stay.

    Args:
        files: The file to copy, by its new path.

    Raises:
        Unwritable: A path has another content, or cannot be written.
    """
    from recbias.runner.storage.store import report_unwritable

    with report_unwritable(Path()):
        missing = [target for target in files if not target.exists()]
        for target in files:
            _refuse_other_content(target, files[target])
        for target in missing:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                stream.write(files[target].read_bytes())
    for target in files:
        print_line(f"wrote {target}" if target in missing else f"unchanged {target}: it was here")


def _refuse_other_content(target: Path, source: Path) -> None:
    """Raise Unwritable if another file is at a path, or if a folder of the path is a file."""
    from recbias.core.errors import Unwritable

    remedy = "move it away, or run recbias init in another folder"
    for folder in target.parents:
        if folder.exists() and not folder.is_dir():
            message = f"is a file, but {target.name} belongs into a folder of this name"
            raise Unwritable(message, where=str(folder), remedy=remedy)
    is_same = target.is_file() and target.read_bytes() == source.read_bytes()
    if target.exists() and not is_same:
        raise Unwritable("exists, with other content", where=str(target), remedy=remedy)
