"""Finding runs, and the formats of reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recbias.core.errors import MissingRun, UnknownName
from recbias.core.input_files import has_file
from recbias.core.paths import local_path
from recbias.core.suggestions import suggest


def find_run(run: str, out: Path) -> Path:
    """Return the folder of a run: as given, else the latest run of the experiment of that name.

    Raises:
        MissingRun: There is neither.
    """
    given, out = local_path(run), local_path(out)
    for folder in (given, out / run / "latest", given / "latest"):
        if has_file(folder / "manifest.json"):
            return folder.resolve()
    known = sorted(each.parent.name for each in out.glob("*/latest"))
    found = f"{run!r} is neither a run folder nor an experiment with a finished run in {out}"
    raise MissingRun(found, remedy=suggest(given.name or run, known))


def chosen_formats(text: str, known: Sequence[str]) -> list[str]:
    """Return the formats named in ``md,html``.

    Raises:
        UnknownName: One of them is not a format.
    """
    names = [each.strip() for each in text.split(",") if each.strip()]
    for name in names:
        if name not in known:
            found = f"no format is called {name!r}"
            raise UnknownName(found, where="--format", remedy=suggest(name, known))
    return names
