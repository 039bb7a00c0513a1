"""Content-addressed results, checkpoints and digests of files; a result is written atomically.

A result is written to a temporary folder and renamed to its address: readers find a complete
result or none. The file ``stage.json`` beside it (``records``) has the size and SHA-256 of each
file; a result that does not match it is removed and computed again.

A checkpoint is one ``.npz`` file under ``partial``, named for the address of the stage. It is
renamed from a temporary file, so that readers find a complete one; a damaged file is ignored.

Values of texts are appended by each writer to a file of its own, so that processes need no lock
and a line that a killed process left unfinished is the last of its file. All files of a detector
are read; a damaged line is skipped, and its text is evaluated again.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from recbias.core.context import Stored, warn
from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import ChangedFile, MissingFile, Unwritable
from recbias.core.files import (
    compute_digest,
    convert_read_errors,
    digest_file,
    open_input,
    read_version,
)
from recbias.core.machine import is_shortage, measure_peak_memory_mb
from recbias.runner.boundary import attempt
from recbias.runner.codecs import copy_files, load_value, save_value
from recbias.runner.plan import Stage

RECORD = "stage.json"
"""The file of a result with its record."""

_CHECKSUM = "sha256"
"""The key of ``stage.json`` with the checksum of the other keys."""

_ADDRESS = "address"
"""The key with the address of the result: a record of another result is none of this one."""


def seal_record(record: Mapping[str, Any]) -> str:
    """Return the text of a record with its checksum."""
    plain = json.loads(json.dumps(record, default=str))
    return json.dumps({**plain, _CHECKSUM: compute_digest(plain)}, ensure_ascii=False)


def unseal_record(text: str) -> dict[str, Any]:
    """Return the record in a text; ValueError if it does not match its checksum."""
    record = json.loads(text)
    if not isinstance(record, dict) or record.pop(_CHECKSUM, "") != compute_digest(record):
        raise ValueError(f"{RECORD} does not match its checksum")
    return record


def render_record(stored: Stored, address: str) -> str:
    """Return the text of ``stage.json``."""
    return seal_record({_ADDRESS: address, **asdict(stored)})


def parse_record(content: bytes, address: str) -> Stored | None:
    """Return the record in the content of the ``stage.json`` at an address.

    None if it is damaged or of another result, or names files in other folders: a store may come
    from somebody else.
    """
    try:
        record = unseal_record(content.decode("utf-8"))
        is_of_address = record.pop(_ADDRESS, None) == address
        stored = Stored(**{**record, "warnings": tuple(record["warnings"])})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    paths = [Path(name) for name in stored.files]
    is_inside = not any(path.is_absolute() or {"..", ""} & {*path.parts} for path in paths)
    return stored if is_of_address and is_inside else None


_REPLIES = "replies"
"""The folder of the replies of language models, beside the store: they are never evicted."""

VALUES = "values"
"""The folder of the values of texts, by which detectors label items."""

_TEMPORARY = "tmp"
"""The folder of what is being written."""

_LEFTOVER_SECONDS = 24 * 3600
"""The age from which a temporary folder is one that a killed process has left."""


@dataclass(frozen=True)
class Store:
    """A folder of results by address: ``results/store``."""

    is_remote: ClassVar[bool] = False  # Whether results are at a URL too, for other machines
    folder: Path

    @property
    def reply_folder(self) -> Path:
        """The folder of the replies of language models."""
        return self.folder.parent / _REPLIES

    def path(self, digest: str) -> Path:
        """Return the folder of the result at an address."""
        return self.folder / digest[:2] / digest

    def prepare(self) -> None:
        """Create the folder, and remove what killed processes have left in it.

        Raises:
            Unwritable: It cannot be created.
        """
        with report_unwritable(self.folder.parent):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.sweep()

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result, None if it is missing or damaged."""
        if not os.path.exists(f"{self.folder}/{digest[:2]}/{digest}"):  # noqa: PTH110  a path takes longer than the look at the disk
            return None
        try:
            with open_input(self.path(digest) / RECORD) as stream:
                return parse_record(stream.read(), digest)
        except (MissingFile, OSError):
            return None

    def is_damaged(self, digest: str) -> bool:
        """Return whether there is something at an address that is no complete result."""
        return self.path(digest).exists() and not self.has(digest)

    def has(self, digest: str) -> bool:
        """Return whether a complete result is stored: every file has its recorded size."""
        stored = self.record(digest)
        if stored is None:
            return False
        folder = self.path(digest)
        try:
            return all(
                (folder / name).stat().st_size == size for name, (size, _) in stored.files.items()
            )
        except OSError:
            return False

    def look_up(self, digests: Iterable[str]) -> None:
        """Ask for several results at once; a folder of this machine is asked when it is needed."""

    def look_again(self, digest: str) -> None:
        """Do not count on it that a result was absent; a folder of this machine is always read."""

    def touch(self, digest: str) -> None:
        """Mark a result as used now, which resets its age."""
        with suppress(OSError):
            os.utime(self.path(digest) / RECORD)

    def load(self, digest: str) -> Any:
        """Return a result; None, after a warning, if it is damaged, which removes it, or gone.

        An error that says that memory ran out is raised: the result may be intact.
        """
        stored, folder = self.record(digest), self.path(digest)
        if stored is None:
            return None
        remove, value = partial(self.remove, digest), None
        if self._is_intact(stored, folder):
            load = partial(load_value, folder)
            value, _ = attempt(load, on_lasting_failure=remove, passes_on=is_shortage)
        else:
            remove()
        if value is None:
            warn(describe_damage(stored.stage))
        return value

    def place(self, digest: str, folder: Path) -> Stored | None:
        """Put the files of a result into a folder; return its record, None if it is not whole."""
        stored, source = self.record(digest), self.path(digest)
        if stored is None or not self._is_intact(stored, source):
            return None
        try:
            copy_files(source, folder)
            (folder / RECORD).unlink()
        except FileNotFoundError:  # another process has replaced it
            return None
        self.touch(digest)
        return stored

    @staticmethod
    def _is_intact(stored: Stored, folder: Path) -> bool:
        try:
            return all(
                digest_file(folder / name) == checksum
                for name, (_, checksum) in stored.files.items()
            )
        except MissingFile:
            return False

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result and its record; unless ``replace``, a stored result stays.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        with report_unwritable(self.folder), self.temporary() as folder:
            (copy_files if stored.kind == "files" else save_value)(value, folder)
            files = {
                path.relative_to(folder).as_posix(): (path.stat().st_size, digest_file(path))
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            record = dataclasses.replace(stored, files=files)
            (folder / RECORD).write_text(render_record(record, digest), encoding="utf-8")
            target = self.path(digest)
            if target.exists() and (replace or not self.has(digest)):
                self.remove(digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.rename(target)
            except OSError as error:  # a result that another process stored there stays
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    def remove(self, digest: str) -> None:
        """Remove a result: it is renamed first, so that nobody reads an incomplete one."""
        self.remove_path(self.path(digest))

    def remove_path(self, path: Path) -> None:
        """Remove a file, a link or a folder by renaming it first; it may be absent."""
        with self.temporary() as folder, suppress(FileNotFoundError, NotADirectoryError):
            path.rename(folder / "old")

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Yield a new folder of this process, named so that no other has it; it is removed."""
        folder = self.folder / _TEMPORARY / f"{os.getpid()}-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the temporary folders that killed processes have left a day ago or longer."""
        for folder in (self.folder / _TEMPORARY).glob("*"):
            with suppress(FileNotFoundError):
                if folder.stat().st_mtime < time.time() - _LEFTOVER_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def __iter__(self) -> Iterator[tuple[str, Stored]]:
        """Yield the address and the record of every result."""
        for path in sorted(self.folder.glob(f"??/*/{RECORD}")):
            stored = self.record(path.parent.name)
            if stored is not None:
                yield path.parent.name, stored


def describe_damage(title: str) -> str:
    """Return the warning about a damaged result of a stage."""
    return f"the stored result of {title!r} was damaged and is computed again"


_FULL = "the disk is full", "free some space, or give another --out"
_REFUSED = "it cannot be written", "give a folder that you may write: --out DIR"
_FAULTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _REFUSED),
}


@contextmanager
def report_unwritable(folder: Path) -> Iterator[None]:
    """Turn an error of the file system into an error with a remedy.

    Raises:
        Unwritable: The folder is read-only, not a folder, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise
        other = f"it cannot be written: {error.strerror}", "give another --out"
        message, remedy = _FAULTS.get(error.errno or 0, other)
        names = [name for name in (error.filename, error.filename2) if name]
        lasting = [name for name in names if not Path(name).is_relative_to(folder / _TEMPORARY)]
        where = str([*lasting, *names, folder][0])  # of a renaming, not the temporary file
        raise Unwritable(message, where=where, remedy=remedy) from error


LARGE = 16 * 2**20
"""Bytes from which a digest is cached under the file's path and version."""

RECENT_SECONDS = 2.0
"""A digest is not cached so soon after a change: another one could have the same time."""

_DIGITS = 64
"""The length of a digest."""


@dataclass(frozen=True)
class Fingerprints:
    """The digests of input files for one plan: each file is looked at once."""

    store: Store
    planned: dict[Path, str] = field(default_factory=dict, compare=False)

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file's bytes, as they were at the first call."""
        if path not in self.planned:
            self.planned[path] = self._compute(path)
        return self.planned[path]

    def of_files(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the SHA-256 of the bytes of each file."""
        return {path: self.of(path) for path in paths}

    def _compute(self, path: Path) -> str:
        with convert_read_errors(path):
            status = path.stat()
        state = (*read_version(path), status.st_ctime_ns)
        is_recent = time.time() - status.st_ctime < RECENT_SECONDS
        if status.st_size < LARGE or is_recent:
            return digest_file(path)
        cache = self.store.folder / "files" / compute_digest([str(path.resolve()), *state])
        with suppress(OSError, ValueError):
            if len(known := cache.read_text("ascii")) == _DIGITS:
                return known
        digest = digest_file(path)
        if read_version(path) == state[:-1]:
            with suppress(OSError), self.store.temporary() as folder:
                (folder / cache.name).write_text(digest, "ascii")
                cache.parent.mkdir(parents=True, exist_ok=True)
                (folder / cache.name).replace(cache)
        return digest


@dataclass(eq=False)
class WatchedFiles:
    """Input files of a stage, watched from the moment that this object is made.

    Args:
        files: Their digests when the run was planned.
        store: The store of the run.
    """

    files: Mapping[Path, str]
    store: Store
    versions: Mapping[Path, tuple[int, ...]] = field(init=False, repr=False)
    _are_as_planned: bool = False

    def __post_init__(self) -> None:
        self.versions = {path: read_version(path) for path in self.files}

    def call(self, work: Callable[..., Any], *inputs: Any) -> Any:
        """Call a function that reads the files; return its result if they did not change.

        Raises:
            ChangedFile: A file was changed, replaced or removed.
        """
        value = work(*inputs)
        self.require_unchanged()
        return value

    def require_unchanged(self) -> None:
        """Check that the files are those of the plan, and were not written since they are watched.

        Raises:
            ChangedFile: A file was changed, replaced or removed.
        """
        current = Fingerprints(self.store)
        for path, planned in self.files.items():
            version = read_version(path)
            is_same = version != () and version == self.versions[path]
            if not is_same or not (self._are_as_planned or current.of(path) == planned):
                raise ChangedFile(f"{path} changed while the run was reading it")
        self._are_as_planned = True


_FOLDER = "partial"
"""The folder of checkpoints in a store."""

_SPENT = "runner.spent"
"""The array with the seconds and the peak memory up to a checkpoint."""


@dataclass
class StageCheckpoints:
    """The checkpoints of one stage, and the time and memory that earlier runs spent on it.

    A stage may train several models: each training loads its last checkpoint when it starts, and
    has a file of its own. If one cannot be written, a warning says so and the training continues.

    Args:
        earlier_seconds: The seconds that earlier runs spent up to the checkpoint that was resumed.
        peak: The peak memory then, in MB.
        inputs: The input files of the stage, watched from now on.
    """

    store: Store
    stage: Stage
    earlier_seconds: float = 0.0
    peak: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    _training: int = 0
    _is_unwritable: bool = False
    inputs: WatchedFiles = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = WatchedFiles(self.stage.files, self.store)

    @property
    def seconds(self) -> float:
        """The seconds that the stage took, in this run and before."""
        return self.earlier_seconds + time.perf_counter() - self.began

    @property
    def peak_memory_mb(self) -> float:
        """The peak memory of the stage, in this run and before."""
        return max(self.peak, measure_peak_memory_mb())

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint of the stage's next training, None if it has none.

        Raises:
            Unwritable: One is damaged and cannot be removed.
        """
        self._training += 1
        if not self._path.exists():
            return None
        arrays = read_arrays(self._path)
        if arrays is None or _SPENT not in arrays:
            self._remove(self._path)
            warn(f"the checkpoint of {self.stage.title!r} was damaged; the stage starts again")
            return None
        seconds, peak = arrays.pop(_SPENT)
        self.earlier_seconds = max(self.earlier_seconds, float(seconds))
        self.peak = max(self.peak, float(peak))
        return arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Replace the last checkpoint of the current training.

        Raises:
            ChangedFile: An input file of the stage has changed since the run was planned.
        """
        if self._is_unwritable:
            return
        self.inputs.require_unchanged()
        spent = np.array([self.seconds, self.peak_memory_mb])
        try:
            with report_unwritable(self.store.folder), self.store.temporary() as folder:
                path = folder / _FOLDER
                write_arrays({**arrays, _SPENT: spent}, path)
                self._path.parent.mkdir(exist_ok=True)
                path.replace(self._path)
        except Unwritable as error:
            self._is_unwritable = True
            warn(f"no more checkpoints of {self.stage.title!r} are written: {error}")

    def discard(self) -> None:
        """Remove every checkpoint of the stage.

        Raises:
            Unwritable: One cannot be removed.
        """
        for path in list_checkpoints(self.store, self.stage.digest):
            self._remove(path)

    def _remove(self, path: Path) -> None:
        with report_unwritable(self.store.folder):
            self.store.remove_path(path)

    @property
    def _path(self) -> Path:
        return self.store.folder / _FOLDER / f"{self.stage.digest}-{self._training}"


def list_checkpoints(store: Store, digest: str = "") -> list[Path]:
    """Return the checkpoint files of one address, or of all."""
    return sorted((store.folder / _FOLDER).glob(f"{digest}*"))


def write_arrays(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write named arrays, none of Python objects."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, AnyArray] | None:
    """Return the arrays of a file, None if it is damaged: a zip file has checksums."""

    def load() -> dict[str, AnyArray]:
        with open_input(path) as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    arrays: dict[str, AnyArray] | None = attempt(load, passes_on=is_shortage)[0]
    return arrays


_UNFINISHED = "unfinished"
"""The kind under which checkpoints of interrupted stages are counted."""

_DAMAGED = "damaged"
"""The kind under which results are counted that cannot be read."""

_Amounts: TypeAlias = dict[str, tuple[int, int]]
"""The number and the bytes of the results of each kind."""


def remove_unused(folder: Path, age: float, *, dry_run: bool) -> tuple[_Amounts, _Amounts]:
    """Remove every result that is older than ``age`` seconds; return what stays and what goes.

    The age of a result, and of a file that stages share, is the time since it was computed or last
    reused; that of a checkpoint is the time since it was written.

    Raises:
        Unwritable: The store cannot be read, or a result cannot be removed.
    """
    store = Store(folder)
    remaining: _Amounts = {}
    removed: _Amounts = {}
    now = time.time()
    with report_unwritable(folder):
        store.sweep()
        for kind, size, last_use, remove in _list_entries(store):
            is_old = now - last_use >= age
            amounts = removed if is_old else remaining
            count, total = amounts.get(kind, (0, 0))
            amounts[kind] = (count + 1, total + size)
            if is_old and not dry_run:
                remove()
    return remaining, removed


def measure_replies(store: Store) -> tuple[int, int]:
    """Return the number and the bytes of the stored replies of language models.

    Raises:
        MissingFile: A file of replies cannot be read.
    """
    n_replies = size = 0
    for path in store.reply_folder.glob("*.jsonl"):
        with open_input(path) as stream:
            n_replies += sum(1 for _ in stream)
        size += path.stat().st_size
    return n_replies, size


def remove_replies(store: Store) -> None:
    """Remove the stored replies of language models.

    Raises:
        Unwritable: They cannot be removed.
    """
    with report_unwritable(store.reply_folder):
        shutil.rmtree(store.reply_folder)


def _list_entries(store: Store) -> Iterator[tuple[str, int, float, Callable[[], None]]]:
    """Yield the kind, bytes, last use and removal of each result, checkpoint and shared file."""
    for path in store.folder.glob("??/*"):
        record = store.record(path.name)
        used, remove = path if record is None else path / RECORD, partial(store.remove_path, path)
        with suppress(FileNotFoundError):  # another process removed it
            kind = _DAMAGED if record is None else record.kind
            size = sum(file.stat().st_size for file in path.rglob("*"))
            yield kind, size, used.stat().st_mtime, remove
    files = [(_UNFINISHED, path) for path in list_checkpoints(store)]
    files += [(VALUES, path) for path in (store.folder / VALUES).glob("*")]
    for kind, path in files:
        with suppress(FileNotFoundError):
            status = path.stat()
            yield kind, status.st_size, status.st_mtime, partial(path.unlink, missing_ok=True)


_SUFFIX = ".values"
"""The extension of the files."""


@dataclass(frozen=True)
class TextValues:
    """The stored values of a detector.

    Args:
        folder: The folder of all detectors; it is created by the first values.
        run_id: A run that uses its own values only; blank for the others.
        detector: The digest of everything but the text that could change the values.
    """

    folder: Path
    run_id: str
    detector: str

    def find(self, digest: str) -> FloatArray | None:
        """Return the values of the text with a digest, None if there are none."""
        return self._values.get(digest)

    def append(self, digests: Sequence[str], values: FloatArray) -> None:
        """Store values of texts; they are on the disk when this returns.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        lines = b"".join(map(_format_line, digests, values))
        with report_unwritable(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as stream:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        self._values.update(zip(digests, values, strict=True))

    @cached_property
    def _file(self) -> Path:
        return self.folder / f"{self._prefix}-{uuid.uuid4().hex[:12]}{_SUFFIX}"

    @property
    def _prefix(self) -> str:
        return f"{self.detector}.{self.run_id}" if self.run_id else self.detector

    @cached_property
    def _values(self) -> dict[str, FloatArray]:
        values: dict[str, FloatArray] = {}
        n_damaged = 0
        for path in sorted(self.folder.glob(f"{self._prefix}-*{_SUFFIX}")):
            with suppress(OSError):  # used now, which resets its age
                os.utime(path)
            for entry in _read_lines(path):
                if entry is None:
                    n_damaged += 1
                else:
                    values.setdefault(*entry)
        if n_damaged:
            warn(f"{n_damaged:,} damaged line(s) of the stored labels are computed again")
        return values


def find_values(store: Store, run_id: str = "") -> Callable[[str], TextValues]:
    """Return a function from the digest of a detector to its stored values.

    Args:
        store: The store whose folder holds them.
        run_id: A run that uses its own values only; blank for the others.
    """
    return partial(TextValues, store.folder / VALUES, run_id)


def _format_line(digest: str, values: FloatArray) -> bytes:
    body = json.dumps([digest, values.tolist()]).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _read_lines(path: Path) -> Iterator[tuple[str, FloatArray] | None]:
    """Yield the digest and values of each line; None for a damaged one, or an unreadable file."""
    try:
        with open_input(path) as stream:
            yield from map(_parse_line, stream)
    except MissingFile:
        yield None


def _parse_line(line: bytes) -> tuple[str, FloatArray] | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        digest, values = json.loads(body)
        return str(digest), np.array(values, dtype=np.float64)
    except (ValueError, TypeError, RecursionError):
        return None
