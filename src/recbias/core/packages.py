"""The extras of recbias, such as ``recbias[torch]``, and the packages that each one installs."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations

from recbias.core.errors import MissingExtra
from recbias.core.plugins import ReordersCandidates

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "text": (
        *("accelerate", "gguf", "rouge-score", "sacrebleu"),
        *("safetensors", "tokenizers", "torch", "transformers"),
    ),
    "libraries": ("implicit", "lenskit", "torch"),
    "llm": ("anthropic", "openai", "rapidfuzz"),
    "tune": ("optuna",),
    "ray": ("ray",),
    "excel": ("python-calamine",),
    "figures": ("vl-convert-python",),
    "track": ("alembic", "mlflow-skinny", "sqlalchemy", "wandb"),
}
"""The packages of each extra, as in pyproject.toml."""

CONVERTER = "vl-convert-python"
"""The package that converts figures to PDF and PNG."""

TRACKERS: Mapping[str, str] = {"mlflow": "mlflow-skinny", "wandb": "wandb"}
"""The package of each tracker of experiments."""

_MODULES = {
    "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
    "mlflow-skinny": "mlflow",
}
"""The modules that are not called as the package that installs them."""


def list_libraries(plugin: object) -> tuple[str, ...]:
    """Return the packages that a plug-in, or its class, declares; those of its candidates, too."""
    static = tuple[str, ...](getattr(plugin, "libraries", ()))
    if isinstance(plugin, type):
        return static
    if hasattr(plugin, "libraries_now"):
        static = (*static, *plugin.libraries_now())
    if isinstance(plugin, ReordersCandidates):
        static = (*static, *list_libraries(plugin.candidates.model))
    return static


def is_installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        module = _MODULES.get(package, package.replace("-", "_"))
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: a module without a specification
        return False


def list_missing(packages: Iterable[str]) -> list[str]:
    """Return the packages that are not installed, sorted."""
    return sorted(package for package in set(packages) if not is_installed(package))


def find_extras(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the fewest extras that install those of the packages that an extra installs.

    >>> find_extras(["numpy"]), find_extras(["torch", "numpy"]), find_extras(["torch", "optuna"])
    ((), ('torch',), ('torch', 'tune'))
    """
    wanted = set(packages) & set(chain(*EXTRAS.values()))
    selections: Iterator[tuple[str, ...]] = chain.from_iterable(
        combinations(EXTRAS, size) for size in range(len(EXTRAS) + 1)
    )
    return next(
        names for names in selections if wanted <= {p for name in names for p in EXTRAS[name]}
    )


def suggest_install(packages: Collection[str]) -> str:
    """Return the command that installs packages: by extras where they have them.

    >>> suggest_install(["lenskit", "torch"])
    "in the clone: pip install '.[libraries]'"
    >>> suggest_install(["surprise"])
    'pip install surprise'
    """
    extras = find_extras(package.replace("_", "-") for package in packages)
    covered = {package for extra in extras for package in EXTRAS[extra]}
    words = [f"'.[{','.join(extras)}]'"] if extras else []
    words += sorted(name for name in packages if name.replace("_", "-") not in covered)
    return " ".join([*(["in the clone:"] if extras else []), "pip install", *words])


def describe_missing(users: Sequence[str], packages: Collection[str]) -> tuple[str, str]:
    """Return what is missing for the users of packages, and the command that installs it.

    >>> describe_missing(["EncoderX"], ["torch", "transformers"])[0]
    "EncoderX needs the packages 'torch' and 'transformers', which are not installed"
    >>> describe_missing(["A", "B", "C"], ["torch"])[0]
    "A, B and C need the package 'torch', which is not installed"
    >>> describe_missing(["A"], ["torch"])[1]
    "in the clone: pip install '.[torch]'"
    """
    names = " and ".join(repr(package) for package in packages)
    nouns = ("package", "is") if len(packages) == 1 else ("packages", "are")
    listed = " and ".join(filter(None, [", ".join(users[:-1]), users[-1]]))
    subject = f"{listed} {'needs' if len(users) == 1 else 'need'}"
    message = f"{subject} the {nouns[0]} {names}, which {nouns[1]} not installed"
    return message, suggest_install(packages)


def require_packages(user: str, *packages: str, where: str = "") -> None:
    """Raise MissingExtra, with the command that installs them, unless packages are installed."""
    if missing := list_missing(packages):
        message, remedy = describe_missing([user], missing)
        raise MissingExtra(message, where=where, remedy=remedy)
