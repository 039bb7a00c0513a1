"""A call of RecBole: files are written for a process of its own, which answers by files."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import BrokenContract, PluginError
from recbias.core.printable import make_printable
from recbias.core.stage_context import get_context, report_progress
from recbias.models.recbole.interpreter import Interpreter, clean_environment
from recbias.models.recbole.worker import main, requests, settings, stored_state, training

MODULES: tuple[ModuleType, ...] = (main, requests, settings, stored_state, training)
"""The modules that are copied to the folder of the exchange."""

OUTPUT = "output.txt"
"""What the process prints."""

POLL_SECONDS = 0.1  # Time between two looks at the progress
TAIL_BYTES = 4096  # How much of the output is searched for its last line
LONGEST_LINE = 300  # Number of characters of it that are shown


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
            for module in MODULES:
                _copy_module(module, folder)
            (folder / requests.REQUEST).write_text(json.dumps(self.request), encoding="utf-8")
            for name, arrays in self.inputs.items():
                np.savez(folder / name, **dict[str, Any](arrays))
            self._wait(folder, interpreter)
            return self._read_result(folder)

    def _wait(self, folder: Path, interpreter: Interpreter) -> None:
        """Run the process until it ends; end it if it takes too long, or if this one is ended."""
        deadline = time.monotonic() + self.timeout
        command = [interpreter.path, "-m", main.__name__]
        with (folder / OUTPUT).open("wb") as output:
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
                        process.wait(POLL_SECONDS)
                    self._report_progress(folder)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            raise self._report_failure(folder, process.returncode)

    def _report_progress(self, folder: Path) -> None:
        path = folder / requests.PROGRESS
        if self.epochs and path.exists():
            completed = min(path.read_bytes().count(b"\n"), self.epochs)
            report_progress(f"{self.name} epochs", completed, self.epochs)

    def _report_timeout(self) -> PluginError:
        message = f"{self.name} was ended after {self.timeout:g} s, its timeout"
        return PluginError(message, where="timeout", remedy="raise timeout, or lower epochs")

    def _report_failure(self, folder: Path, code: int) -> PluginError:
        """Return the error of a process that failed: what it wrote, or how it died."""
        fields = _read_texts(folder / requests.ERROR)
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
        last = _read_last_line(folder / OUTPUT)
        message = f"the process of {self.name} ended with {how}"
        return PluginError(f"{message}: {last}" if last else message, remedy=remedy)

    def _read_result(self, folder: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
        facts = _read_texts(folder / requests.FACTS)
        arrays = _read_arrays(folder / self.result)
        if arrays is None or facts is None:
            name = self.result if arrays is None else requests.FACTS
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
        if (folder / OUTPUT).exists():
            (folder / OUTPUT).replace(_name_output(folder))
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name_output(folder: Path) -> Path:
    """Return where the output of a failed call is kept."""
    return folder.with_suffix(".txt")


def _copy_module(module: ModuleType, folder: Path) -> None:
    """Copy a module below a folder, in packages that hold nothing else."""
    *packages, name = module.__name__.split(".")
    for package in packages:
        folder /= package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    shutil.copyfile(str(module.__file__), folder / f"{name}.py")


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
        stream.seek(max(stream.tell() - TAIL_BYTES, 0))
        lines = stream.read().decode("utf-8", "replace").split("\n")
    return next((_shorten(line) for line in reversed(lines) if line.strip()), "")


def _shorten(text: str) -> str:
    """Return a text of another program on one line."""
    line = make_printable(" ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."
