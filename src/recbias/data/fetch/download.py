"""Download of datasets from their publishers, with checksums and in one atomic step."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.core.machine.operating_system import lock_file
from recbias.core.stage_context import ProgressListener, report_progress
from recbias.core.suggestions import normalize_name, suggest
from recbias.data.datasets.dataset_folder import find_folder
from recbias.data.fetch.archives import find_inner_folder, unpack
from recbias.data.fetch.retry_policy import RetryPolicy
from recbias.data.fetch.transfer import MAX_BYTES, fetch_text, transfer, wrap_write_errors

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, kw_only=True)
class Source:
    """The address and the terms of a published dataset.

    Args:
        name: The published name.
        base: The publisher's folder of files.
        files: The files in it: one archive, or files that are stored as they are.
        digest: ``md5`` if the publisher has a ``<file>.md5`` for each file, or the SHA-256 of each
            file.
        inner: The folder in the archive; empty for its only folder.
        folder: The folder below the data folder; empty for the name.
        holds: Files that the folder must contain.
        counts: The published numbers of users, items and interactions.
        licence: A summary of the terms.
        citation: The publication to cite.
        manual: Instructions if the publisher requires consent to its terms.
        most_mb: Maximum size of a file in MB; 0 for the maximum of every file.
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
    def max_bytes(self) -> int:
        """The maximum size of a file."""
        return self.most_mb * 10**6 or MAX_BYTES

    @property
    def is_archive(self) -> bool:
        """Whether the dataset is published as one archive."""
        return bool(self.files) and self.files[0].endswith(ARCHIVES)

    def terms(self) -> str:
        """Return the licence and the citation, as printed before a download."""
        return f"{self.licence}\nPlease cite: {self.citation}"

    def list_missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks, with or without ``.gz``."""
        return [
            name
            for name in self.holds
            if not any((folder / file).is_file() for file in (name, f"{name}.gz"))
        ]


def read_sources(path: Path | None = None) -> dict[str, Source]:
    """Read the sources of all datasets, by name; by default from the file in the package."""
    import yaml

    file = path or files("recbias.data.fetch").joinpath("sources.yaml")
    content: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    sources = {}
    for name, entry in content["datasets"].items():
        texts = {key: tuple(entry[key]) for key in ("files", "holds") if key in entry}
        defaults = {"name": name, "folder": name, "holds": texts["files"]}
        terms = content["terms"][entry.pop("terms")]
        sources[name] = Source(**(defaults | entry | texts | terms))
    return sources


def find_source(name: str, sources: Path | None = None) -> Source:
    """Return the source of a dataset, ignoring case and separators in the name.

    Raises:
        UnknownName: There is no such dataset.
    """
    known = read_sources(sources)
    by_normalized = {normalize_name(source_name): source for source_name, source in known.items()}
    if source := by_normalized.get(normalize_name(name)):
        return source
    raise UnknownName(f"no dataset is called {name!r}", remedy=suggest(name, known))


def fetch(
    name: str,
    data: Path,
    *,
    sources: Path | None = None,
    progress: ProgressListener = report_progress,
    policy: RetryPolicy | None = None,
) -> Path:
    """Download a dataset and return its folder; does nothing if the folder is complete.

    An interrupted download is kept in ``<data>/.fetching`` and resumed. The dataset is moved to
    its folder only when it is complete and its checksum is the published one.

    Args:
        name: The published name.
        data: The folder of datasets; it is created if it does not exist.
        sources: A file of sources; by default the one in the package.
        progress: Receives the number of downloaded bytes and the size.
        policy: When a transfer is retried.

    Raises:
        UnknownName: There is no such dataset.
        DownloadFailed: The server does not have the dataset or sends an invalid one, or the
            publisher requires consent to its terms.
        DigestMismatch: The checksum of a file is not the published one.
        Unwritable: The data folder cannot be written.
    """
    source = find_source(name, sources)
    folder = find_folder(source.folder, data, holds=source.holds[0], inner=source.inner)
    missing = source.list_missing(folder)
    if not missing:
        return folder
    _refuse(source, folder, missing)
    with wrap_write_errors(data), _lock(data / ".fetching" / source.name) as work:
        names = source.files if source.is_archive else source.list_missing(folder)
        paths = [_download(file, source, work, progress, policy) for file in names]
        if source.is_archive:
            _install_archive(paths[0], folder, source)
        else:
            folder.mkdir(exist_ok=True)
            for path in paths:
                path.replace(folder / path.name)
        shutil.rmtree(work)
    with suppress(OSError):  # another dataset may be in the same folder
        work.parent.rmdir()
    return folder


def _refuse(source: Source, folder: Path, missing: list[str]) -> None:
    """Refuse to download what requires consent, or to unpack over other files."""
    if source.manual:
        message = f"{source.name} cannot be downloaded automatically. {source.manual}"
        remedy = f"put {' and '.join(source.holds)} (also with .gz) into {folder}"
        raise DownloadFailed(message, remedy=remedy)
    if source.is_archive and folder.is_dir() and any(folder.iterdir()):
        message = f"exists, but lacks {', '.join(missing)}"
        raise Unwritable(message, where=str(folder), remedy="move it away, then fetch again")


@contextmanager
def _lock(work: Path) -> Iterator[Path]:
    """Create the folder of the download and lock it against other processes."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            lock_file(lock.fileno(), waits=False)
        except BlockingIOError as error:
            message = "is being downloaded by another process"
            remedy = "wait until that process has finished"
            raise DownloadFailed(message, where=str(work), remedy=remedy) from error
        yield work


def _download(
    name: str, source: Source, work: Path, progress: ProgressListener, policy: RetryPolicy | None
) -> Path:
    """Download a file and verify its checksum; a file with a wrong checksum is removed."""
    target, url = work / name, source.base + name
    algorithm, published = _find_checksum(name, source, policy)
    if not target.is_file():
        transfer(url, target, progress=progress, policy=policy, max_bytes=source.max_bytes)
    if not algorithm:
        return target
    with target.open("rb") as stream:
        checksum = hashlib.file_digest(stream, algorithm).hexdigest()
    if checksum != published:
        target.unlink()
        message = f"the {algorithm} is {checksum}, the published one {published}"
        remedy = "fetch it again; if that does not help, the publisher's file is damaged"
        raise DigestMismatch(message, where=url, remedy=remedy)
    return target


def _find_checksum(name: str, source: Source, policy: RetryPolicy | None) -> tuple[str, str]:
    """Return the algorithm and the published checksum of a file; empty if there is none."""
    if isinstance(source.digest, Mapping):
        return ("sha256", source.digest[name].lower()) if name in source.digest else ("", "")
    if not source.digest:
        return "", ""
    url = f"{source.base}{name}.md5"
    checksum = re.search(r"\b[0-9a-fA-F]{32}\b", fetch_text(url, policy=policy))
    if not checksum:
        raise DownloadFailed("contains no md5", where=url, remedy="see the publisher's site")
    return "md5", checksum[0].lower()


def _install_archive(archive: Path, folder: Path, source: Source) -> None:
    """Unpack an archive next to the folder, then move it there in one step."""
    unpacked = archive.with_name("unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    try:
        _unpack(archive, unpacked, source).rename(folder)
    except (DownloadFailed, OSError) as error:
        shutil.rmtree(unpacked)
        if isinstance(error, DownloadFailed):
            archive.unlink()
        raise


def _unpack(archive: Path, folder: Path, source: Source) -> Path:
    unpack(archive, folder)
    inner = find_inner_folder(folder, source.inner)
    if missing := source.list_missing(inner):
        message = f"the archive lacks {', '.join(missing)}"
        raise DownloadFailed(message, where=source.base + archive.name)
    return inner
