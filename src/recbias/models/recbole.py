"""The Python that has RecBole: this one, or another that the user names.

A call of RecBole: files are written for a process of its own, which answers by files.
Adapter of RecBole: training rows to its process, and the lists that come back.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.context import get_context, record_fact, report_progress
from recbias.core.dataset import AnyArray, Codes, Interactions, TrainingData
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingExtra,
    MissingFile,
    OutOfRange,
    PluginError,
)
from recbias.core.evidence import RankedLists
from recbias.core.packages import describe_missing, is_installed
from recbias.core.plugins import EXECUTION, Output, State
from recbias.core.queries import Queries
from recbias.core.text import make_printable
from recbias.models import recbole_worker
from recbias.models.ranking import rank_users_with_history
from recbias.models.recbole_worker import LISTS, QUERIES, ROWS, STATE

VARIABLE = "RECBIAS_RECBOLE_PYTHON"
"""The environment variable that names the Python with RecBole."""

_PACKAGES = ("recbole", "torch", "numpy", "scipy", "pandas")
"""The packages whose versions change what RecBole computes."""

_SECONDS = 60
"""The longest time in which a Python says which packages it has."""

_PROBE = """\
import json, sys
from importlib.metadata import PackageNotFoundError, distribution

def find_metadata(name):
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name == "METADATA"), None)

print(json.dumps({name: find_metadata(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python with RecBole.

    Args:
        path: The executable.
        metadata: The files with the versions of ``_PACKAGES``.
    """

    path: str
    metadata: tuple[Path, ...]


def find_interpreter() -> Interpreter | None:
    """Return the Python with RecBole; None if it is not installed and no Python is named.

    Raises:
        MissingFile: The Python that is named does not exist, or does not run.
        MissingExtra: It has no RecBole.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return _inspect_interpreter(sys.executable) if is_installed("recbole") else None
    path = shutil.which(str(Path(named).expanduser()))
    if path is None:
        raise _report_unusable(f"no program {make_printable(named)!r}")
    return _inspect_interpreter(path)


def require_interpreter(user: str) -> Interpreter:
    """Return the Python with RecBole.

    Raises:
        MissingExtra: RecBole is not installed, and no Python is named.
    """
    interpreter = find_interpreter()
    if interpreter is None:
        message, remedy = describe_missing([user], ["recbole"])
        raise MissingExtra(message, remedy=remedy)
    return interpreter


def clean_environment() -> dict[str, str]:
    """Return the environment of a process of another Python: without settings of this one."""
    names = [name for name in os.environ if not name.startswith("PYTHON")]
    return {name: os.environ[name] for name in names} | {"PYTHONIOENCODING": "utf-8"}


@lru_cache(maxsize=8)
def _inspect_interpreter(path: str) -> Interpreter:
    """Return a Python with the files that hold the versions of its packages."""
    try:
        process = subprocess.run(  # noqa: S603  the user names the program
            [path, "-c", _PROBE, *_PACKAGES],
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS,
            env=clean_environment(),
        )
        metadata = json.loads(process.stdout)
        files = {name: metadata[name] for name in _PACKAGES if metadata[name] is not None}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise _report_unusable(f"{make_printable(path)!r} does not run as a Python") from error
    if "recbole" not in files:
        message = f"{make_printable(path)!r} has no package recbole"
        remedy = f"{path} -m pip install recbole 'pandas<3'"
        raise MissingExtra(message, where=VARIABLE, remedy=remedy)
    return Interpreter(path, tuple(map(Path, files.values())))


def _report_unusable(message: str) -> MissingFile:
    remedy = f"set {VARIABLE} to a Python that has recbole: /path/to/venv/bin/python"
    return MissingFile(message, where=VARIABLE, remedy=remedy)


_OUTPUT = "output.txt"
"""What the process prints."""

_POLL_SECONDS = 0.1  # Time between two looks at the progress
_TAIL_BYTES = 4096  # How much of the output is searched for its last line
_LONGEST_LINE = 300  # Number of characters of it that are shown


@dataclass(frozen=True)
class Call:
    """A call of RecBole.

    Args:
        name: The model, for messages: ``recbole/BPR``.
        request: The request as JSON.
        inputs: The arrays of each file that is written.
        result: The file of arrays that the process writes.
        epochs: The number of epochs whose progress is reported; 0 for none.
        timeout: Seconds after which the process is ended.
    """

    name: str
    request: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, AnyArray]]
    result: str
    epochs: int
    timeout: float

    def run(self, interpreter: Interpreter) -> tuple[dict[str, AnyArray], dict[str, str]]:
        """Return the arrays of the result, and the versions that computed them.

        Raises:
            PluginError: The process failed, died, or took too long.
            BrokenContract: Its files cannot be read.
        """
        with _create_folder() as folder:
            shutil.copy(str(recbole_worker.__file__), folder)
            (folder / recbole_worker.REQUEST).write_text(
                json.dumps(self.request), encoding="utf-8"
            )
            for name, arrays in self.inputs.items():
                np.savez(folder / name, **dict[str, Any](arrays))
            self._wait(folder, interpreter)
            return self._read_result(folder)

    def _wait(self, folder: Path, interpreter: Interpreter) -> None:
        """Run the process until it ends; end it if it takes too long, or if this one is ended."""
        deadline = time.monotonic() + self.timeout
        command = [interpreter.path, Path(str(recbole_worker.__file__)).name]
        with (folder / _OUTPUT).open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  the user names the program
                command,
                cwd=folder,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                while process.poll() is None:
                    if time.monotonic() > deadline:
                        raise self._report_timeout()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_SECONDS)
                    self._report_progress(folder)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            raise self._report_failure(folder, process.returncode)

    def _report_progress(self, folder: Path) -> None:
        path = folder / recbole_worker.PROGRESS
        if self.epochs and path.exists():
            completed = min(path.read_bytes().count(b"\n"), self.epochs)
            report_progress(f"{self.name} epochs", completed, self.epochs)

    def _report_timeout(self) -> PluginError:
        message = f"{self.name} was ended after {self.timeout:g} s, its timeout"
        return PluginError(message, where="timeout", remedy="raise timeout, or lower epochs")

    def _report_failure(self, folder: Path, code: int) -> PluginError:
        """Return the error of a process that failed: what it wrote, or how it died."""
        fields = _read_texts(folder / recbole_worker.ERROR)
        remedy = f"its output is in {_name_output(folder)}"
        if fields and fields.get("message"):
            is_refusal = bool(fields.get("remedy"))
            message = _shorten(fields["message"])
            return PluginError(
                message if is_refusal else f"{self.name} failed in RecBole: {message}",
                where=_shorten(fields.get("where", "")),
                remedy=_shorten(fields["remedy"]) if is_refusal else remedy,
            )
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = _read_last_line(folder / _OUTPUT)
        message = f"the process of {self.name} ended with {how}"
        return PluginError(f"{message}: {last}" if last else message, remedy=remedy)

    def _read_result(self, folder: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
        facts = _read_texts(folder / recbole_worker.FACTS)
        arrays = _read_arrays(folder / self.result)
        if arrays is None or facts is None:
            name = self.result if arrays is None else recbole_worker.FACTS
            message = f"the process of {self.name} left no {name} that can be read"
            raise BrokenContract(message, remedy=f"its output is in {_name_output(folder)}")
        return arrays, facts


@contextmanager
def _create_folder() -> Iterator[Path]:
    """Yield a new folder of the stage, which is removed; after an error its output is kept."""
    scratch = get_context().scratch_folder
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="recbole-", dir=scratch)).absolute()
    try:
        yield folder
    except PluginError:
        if (folder / _OUTPUT).exists():
            (folder / _OUTPUT).replace(_name_output(folder))
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name_output(folder: Path) -> Path:
    """Return where the output of a failed call is kept."""
    return folder.with_suffix(".txt")


def _read_arrays(path: Path) -> dict[str, AnyArray] | None:
    """Return the arrays of a file, None if it is damaged or absent."""
    if not zipfile.is_zipfile(path):  # numpy would read a single array, or a pickle
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None


def _read_texts(path: Path) -> dict[str, str] | None:
    """Return a mapping of text in JSON, None if the file is damaged or absent."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(fields, dict):
        return None
    return {str(key): str(value) for key, value in fields.items()}


def _read_last_line(path: Path) -> str:
    """Return the last line of the output that is not blank."""
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(stream.tell() - _TAIL_BYTES, 0))
        lines = stream.read().decode("utf-8", "replace").split("\n")
    return next((_shorten(line) for line in reversed(lines) if line.strip()), "")


def _shorten(text: str) -> str:
    """Return a text of another program on one line."""
    line = make_printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."


_WORD = re.compile(r"[\w.+-]*", re.ASCII)

SEED = "seed"
"""The name of the seed among the arrays of a learned state."""


@dataclass(frozen=True, kw_only=True)
class RecBole:
    """Train a general or sequential model of RecBole, in a process of its own.

    ``recbole/BPR`` is ``{name: recbole, model: BPR}``; the name after the slash is RecBole's. The
    process trains on the training rows for the given number of epochs, without early stopping:
    validation and test rows are not given to it. To recommend, another process takes the stored
    parameters and ranks the items that have a training row and that the user does not have. A user
    without training rows has an empty list. The processes use one thread, a seed of the run, and a
    CPU unless ``config: {use_gpu: true}``.

    RecBole needs old versions of some packages. It may be installed for another Python, which
    ``RECBIAS_RECBOLE_PYTHON`` names: ``/path/to/venv/bin/python``. The versions of RecBole and of
    what it computes with are part of the address of a result.

    Sequential models read the items of a user in the order of time; rows with equal times are in
    the order of the file. Of a general model, a repeated pair counts once. Models that need the
    attributes of users or items are refused.

    Args:
        model: The name of the model in RecBole: ``BPR``, ``LightGCN``, ``SASRec``.
        epochs: Number of passes over the training rows.
        embedding_size: Size of the vectors, by whichever name the model has for it; null for the
            default of RecBole.
        config: Other settings of the training and of the model by RecBole's names:
            ``{learning_rate: 0.002, train_batch_size: 4096}``.
        timeout: Seconds after which a process is ended.

    Raises:
        PluginError: RecBole has no such model or setting, or the process fails or takes too long.
        MissingExtra: RecBole is not installed.
        MissingFile: The Python that is named does not exist.
        Contradiction: A setting is given twice.
        OutOfRange: A text in ``config`` is not a word: RecBole would run it as code.

    Source:
        Zhao et al., "RecBole: Towards a Unified, Comprehensive and Efficient Framework for
        Recommendation Algorithms", CIKM 2021.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    after_fit: ClassVar[frozenset[str]] = frozenset({"timeout"})

    model: str
    epochs: Annotated[int, Gt(0)] = 50
    embedding_size: Annotated[int, Gt(0)] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    timeout: Annotated[float, Gt(0), EXECUTION] = 86_400

    def __post_init__(self) -> None:
        for key, value in {"model": self.model, **self.config}.items():
            if isinstance(value, str) and not _WORD.fullmatch(value):
                message = f"{key} must be a word of letters, digits, '.', '_', '+' and '-'"
                where = "model" if key == "model" else "config"
                raise OutOfRange(message, where=where, remedy=f"correct {key}")
        for name in ("epochs", "embedding_size"):
            if name in self.config and getattr(self, name) is not None:
                message = f"{name} is given both in config and as a setting"
                raise Contradiction(message, where="config", remedy=f"remove {name} from config")

    def libraries_now(self) -> tuple[str, ...]:
        """Return RecBole if it must be installed for this Python, because no other is named."""
        return () if find_interpreter() else ("recbole",)

    def model_files(self) -> Sequence[Path]:
        """Return the files with the versions of RecBole and of what it computes with."""
        interpreter = find_interpreter()
        return interpreter.metadata if interpreter else ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedRecBole:
        """Train in a process, and return the parameters that it wrote."""
        seed = np.array(rng.integers(2**31))
        inputs = {ROWS: order_rows(data.train)}
        state = self.call("fit", data, int(seed), inputs, STATE, epochs=self.epochs)
        return _FittedRecBole(self, {**state, SEED: seed})

    def restore(self, state: State) -> _FittedRecBole:
        """Return the fitted recommender of a stored state."""
        return _FittedRecBole(self, state)

    def call(  # noqa: PLR0913
        self,
        task: str,
        data: TrainingData,
        seed: int,
        inputs: Mapping[str, Mapping[str, AnyArray]],
        result: str,
        *,
        k: int = 0,
        epochs: int = 0,
    ) -> dict[str, AnyArray]:
        """Return the arrays that a process wrote; the versions that it used become facts.

        Args:
            task: ``fit`` or ``rank``.
            data: The training data.
            seed: The seed of RecBole.
            inputs: The arrays of each file that the process reads.
            result: The file that it writes.
            k: Length of a list.
            epochs: The number of epochs whose progress is reported.
        """
        name = f"recbole/{self.model}"
        request = {
            "task": task,
            "model": self.model,
            "epochs": self.epochs,
            "embedding_size": self.embedding_size,
            "config": self.config,
            "seed": seed,
            "has_times": data.train.times is not None,
            "k": k,
        }
        process = Call(name, request, inputs, result, epochs, self.timeout)
        arrays, facts = process.run(require_interpreter(name))
        for fact, version in facts.items():
            record_fact(fact, version)
        return arrays


@dataclass(frozen=True, eq=False)
class _FittedRecBole:
    """A trained model of RecBole: its parameters, from which a process ranks.

    Args:
        settings: The model and its settings.
        arrays: The parameters by name, and the seed.
    """

    settings: RecBole
    arrays: State

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        return rank_users_with_history(lambda users: self._rank(users, k, data), queries, k, data)

    def _rank(self, users: Codes, k: int, data: TrainingData) -> RankedLists:
        """Return the lists of users with training rows, ``(b, k)``."""
        if not users.size:
            return RankedLists(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
        parameters = {name: array for name, array in self.arrays.items() if name != SEED}
        distinct, rows = np.unique(users, return_inverse=True)
        inputs = {
            ROWS: order_rows(data.train),
            STATE: parameters,
            QUERIES: {"users": distinct.astype(np.int64)},
        }
        lists = self.settings.call("rank", data, int(self.arrays[SEED]), inputs, LISTS, k=k)
        items, scores = lists.get("items"), lists.get("scores")
        if items is None or scores is None or not _are_lists(items, scores, distinct.size, k):
            name = f"recbole/{self.settings.model}"
            message = f"the process of {name} returned no lists of {k} for {distinct.size:,} users"
            raise BrokenContract(message, remedy="use the RecBole of the package index")
        return RankedLists(items[rows].astype(np.int32), scores[rows].astype(np.float32))


def order_rows(train: Interactions) -> dict[str, AnyArray]:
    """Return the training rows by user and time, with the place of each in its user's history."""
    keys = (train.users,) if train.times is None else (train.times, train.users)
    order = np.lexsort(keys)
    users = train.users[order].astype(np.int64)
    starts = np.cumsum(train.user_counts()) - train.user_counts()
    ranks = np.arange(users.size) - starts[users]
    return {"users": users, "items": train.items[order].astype(np.int64), "ranks": ranks}


def _are_lists(items: AnyArray, scores: AnyArray, n: int, k: int) -> bool:
    """Return whether arrays have the form of lists: whole numbers, and as many numbers."""
    kinds = (items.dtype.kind, scores.dtype.kind)
    return items.shape == scores.shape == (n, k) and kinds == ("i", "f")
