"""Where the files of a published dataset lie below the data folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recbias.core.errors import MissingFile


def find_folder(name: str, data: Path, *, holds: str, inner: str = "") -> Path:
    """Return the folder of a dataset: ``<data>/<name>``, or as its own archive unpacks.

    Args:
        name: The published name.
        data: The folder of datasets.
        holds: A file that shows which folder it is.
        inner: The folder inside the publisher's archive.
    """
    places = [data / name]
    if inner:
        places += [data / name / inner, data / inner]
    found = [each for each in places if (each / holds).is_file()]
    return found[0] if found else places[0]


def present(paths: Sequence[Path], *, fetch: str) -> list[Path]:
    """Return the paths, all of which must be there.

    Args:
        paths: The files of a dataset.
        fetch: The name that ``recbias data fetch`` takes.
        data: The folder of datasets.

    Raises:
        MissingFile: One is not, with the command that fetches it.
    """
    for path in paths:
        if not path.is_file():
            remedy = f"recbias data fetch {fetch}, or give --data with the folder that has it"
            raise MissingFile(
                f"{fetch} lacks the file {path.name}", where=str(path), remedy=remedy
            )
    return list(paths)
