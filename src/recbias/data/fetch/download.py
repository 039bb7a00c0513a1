"""Fetching datasets from their publishers: once, whole, and checked."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.core.stage_context import ProgressListener, report_progress
from recbias.core.suggestions import normalize_name, suggest
from recbias.data.datasets.dataset_folder import find_folder
from recbias.data.fetch.archives import inner_folder, unpack
from recbias.data.fetch.transfer import MOST_BYTES, Patience, small_text, transfer, writing

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a dataset is fetched from, and under which terms.

    Args:
        name: Its published name.
        base: The publisher's folder of files.
        files: The files in it: one archive, or files that are kept as they are.
        digest: ``md5`` where ``<file>.md5`` lies beside each file, or the SHA-256 of each file.
        inner: The folder in the archive; blank for its only folder.
        folder: The folder below the data folder; blank for the name.
        holds: Files that must be there afterwards.
        counts: How much is in it.
        licence: Its terms, in our words.
        citation: What to cite.
        manual: What to do where the publisher wants its terms agreed to first.
        most_mb: How long one of its files may be, in MB; 0 for the ceiling of every file.
    """

    name: str
    licence: str
    citation: str
    files: tuple[str, ...]
    base: str = ""
    digest: str | Mapping[str, str] = ""
    inner: str = ""
    folder: str = ""
    holds: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    manual: str = ""
    most_mb: int = 0

    @property
    def most_bytes(self) -> int:
        """How long one of its files may be."""
        return self.most_mb * 10**6 or MOST_BYTES

    def terms(self) -> str:
        """Return the licence and what to cite, as shown before anything is fetched."""
        return f"{self.licence}\nPlease cite: {self.citation}"


def read_sources(path: Path | None = None) -> dict[str, Source]:
    """Return every dataset that can be fetched, by name.

    Args:
        path: A file of sources; by default the one in the package.
    """
    import yaml

    text = (path or files("recbias.data.fetch").joinpath("sources.yaml")).read_text(
        encoding="utf-8"
    )
    found: Mapping[str, Any] = yaml.safe_load(text)
    return {
        name: _source(name, dict(entry), found["terms"])
        for name, entry in found["datasets"].items()
    }


def source_of(name: str, sources: Path | None = None) -> Source:
    """Return where a dataset is fetched from; its name is matched as names are.

    Raises:
        UnknownName: There is no such dataset.
    """
    known = read_sources(sources)
    by_plain = {normalize_name(each): each for each in known}
    if normalize_name(name) not in by_plain:
        found = f"no dataset is called {name!r}"
        raise UnknownName(found, remedy=suggest(name, known))
    return known[by_plain[normalize_name(name)]]


def fetch(
    name: str,
    data: Path,
    *,
    sources: Path | None = None,
    progress: ProgressListener = report_progress,
    patience: Patience | None = None,
) -> Path:
    """Fetch a dataset and return its folder; nothing is done where it is there already.

    What was fetched before an interruption is kept in ``<data>/.fetching`` and continued. The
    dataset appears in its folder only when it is whole and its checksum is the published one.

    Args:
        name: The published name.
        data: The folder of datasets; it is made where it is not there.
        sources: A file of sources; by default the one in the package.
        progress: Is told how many bytes of how many have come.
        patience: How often a transfer is tried.

    Raises:
        UnknownName: There is no such dataset.
        DownloadFailed: The publisher's server does not give it, or it is not what it should be;
            or the publisher wants its terms agreed to first.
        DigestMismatch: A file's checksum is not the published one.
        Unwritable: The data folder cannot be written.
    """
    source = source_of(name, sources)
    folder = find_folder(source.folder, data, holds=source.holds[0], inner=source.inner)
    if not _lacking(folder, source):
        return folder
    is_archive = bool(source.files) and source.files[0].endswith(ARCHIVES)
    _refuse(source, folder, is_archive=is_archive)
    with writing(data), _alone(data / ".fetching" / source.name) as work:
        names = source.files if is_archive else _lacking(folder, source)
        fetched = [_checked(each, source, work, progress, patience) for each in names]
        if is_archive:
            _put_archive(fetched[0], folder, source)
        else:
            folder.mkdir(exist_ok=True)
            for each in fetched:
                each.replace(folder / each.name)
        shutil.rmtree(work)
    with suppress(OSError):  # another dataset may be on its way
        work.parent.rmdir()
    return folder


def _refuse(source: Source, folder: Path, *, is_archive: bool) -> None:
    """Refuse to fetch what its publisher gives by hand only, or to unpack over other files."""
    if source.manual:
        found = f"{source.name} cannot be fetched for you. {source.manual}"
        remedy = f"put {' and '.join(source.holds)} (also with .gz) into {folder}"
        raise DownloadFailed(found, remedy=remedy)
    if is_archive and folder.is_dir() and any(folder.iterdir()):
        found = f"is there, but lacks {', '.join(_lacking(folder, source))}"
        raise Unwritable(found, where=str(folder), remedy="move it away, then fetch again")


def _source(name: str, entry: dict[str, Any], terms: Mapping[str, Mapping[str, str]]) -> Source:
    names = tuple(entry.pop("files"))
    entry["holds"] = tuple(entry.get("holds", names))
    entry.setdefault("folder", name)
    entry |= terms[entry.pop("terms")]
    return Source(name=name, files=names, **entry)


def _lacking(folder: Path, source: Source) -> list[str]:
    """Return the files that are not in the folder, packed or not."""
    return [
        name
        for name in source.holds
        if not (folder / name).is_file() and not (folder / f"{name}.gz").is_file()
    ]


@contextmanager
def _alone(work: Path) -> Iterator[Path]:
    """Make the folder for the parts of a dataset, and hold it against other processes."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                found = "is being fetched by another process"
                remedy = "wait until that has finished"
                raise DownloadFailed(found, where=str(work), remedy=remedy) from error
        yield work


def _checked(
    name: str, source: Source, work: Path, progress: ProgressListener, patience: Patience | None
) -> Path:
    """Return a fetched file whose checksum is right; a file with a wrong one is removed."""
    target, url = work / name, source.base + name
    kind, digest = _published(name, source, patience)
    if not target.is_file():
        transfer(url, target, progress=progress, patience=patience, most_bytes=source.most_bytes)
    if not kind:
        return target
    with target.open("rb") as stream:
        found = hashlib.file_digest(stream, kind).hexdigest()
    if found != digest:
        target.unlink()
        message = f"the {kind} is {found}, the published one {digest}"
        remedy = "fetch it again; if that does not help, the publisher's file is damaged"
        raise DigestMismatch(message, where=url, remedy=remedy)
    return target


def _published(name: str, source: Source, patience: Patience | None) -> tuple[str, str]:
    """Return the kind of a file's published checksum and its value; blank where there is none."""
    if isinstance(source.digest, Mapping):
        return ("sha256", source.digest[name].lower()) if name in source.digest else ("", "")
    if not source.digest:
        return "", ""
    url = f"{source.base}{name}.md5"
    found = re.search(r"\b[0-9a-fA-F]{32}\b", small_text(url, patience=patience))
    if not found:
        raise DownloadFailed("holds no md5", where=url, remedy="see the publisher's site")
    return "md5", found[0].lower()


def _put_archive(archive: Path, folder: Path, source: Source) -> None:
    """Unpack beside the folder, then move into place in one step."""
    unpacked = archive.with_name("unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    try:
        _unpacked(archive, unpacked, source).rename(folder)
    except (DownloadFailed, OSError) as error:
        shutil.rmtree(unpacked)
        if isinstance(error, DownloadFailed):
            archive.unlink()
        raise


def _unpacked(archive: Path, into: Path, source: Source) -> Path:
    unpack(archive, into)
    inner = inner_folder(into, source.inner)
    lacking = _lacking(inner, source)
    if lacking:
        found = f"the archive lacks {', '.join(lacking)}"
        raise DownloadFailed(found, where=source.base + archive.name)
    return inner
