"""The Python that has RecBole: this one, or another that the user names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recbias.core.errors import MissingExtra, MissingFile
from recbias.core.packages import describe_missing, is_installed
from recbias.core.printable import make_printable

VARIABLE = "RECBIAS_RECBOLE_PYTHON"
"""The environment variable that names the Python with RecBole."""

PACKAGES = ("recbole", "torch", "numpy", "scipy", "pandas")
"""The packages whose versions change what RecBole computes."""

SECONDS = 60
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
        metadata: The files with the versions of ``PACKAGES``.
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
        return inspect_interpreter(sys.executable) if is_installed("recbole") else None
    path = shutil.which(str(Path(named).expanduser()))
    if path is None:
        raise _report_unusable(f"no program {make_printable(named)!r}")
    return inspect_interpreter(path)


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
def inspect_interpreter(path: str) -> Interpreter:
    """Return a Python with the files that hold the versions of its packages."""
    try:
        process = subprocess.run(  # noqa: S603  the user names the program
            [path, "-c", _PROBE, *PACKAGES],
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
            env=clean_environment(),
        )
        metadata = json.loads(process.stdout)
        files = {name: metadata[name] for name in PACKAGES if metadata[name] is not None}
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
