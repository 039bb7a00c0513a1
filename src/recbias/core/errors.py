"""The errors of the package; each has a location, a message and a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar


class RecbiasError(Exception):
    """The base class of all errors.

    Args:
        message: What is wrong, as a sentence without a full stop.
        where: The location: a file with line and column, or a key of the spec. May be empty.
        remedy: What to do, with the nearest valid name if there is one. May be empty.
    """

    default_remedy: ClassVar[str] = ""
    """The remedy of an error that is raised without one."""

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy or self.default_remedy

    def __str__(self) -> str:
        """Return ``where: message``."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def lines(self) -> list[str]:
        """Return the error as the command line prints it: ``error:`` and ``help:``."""
        help_lines = [f"help: {self.remedy}"] if self.remedy else []
        return [f"error: {self}", *help_lines]


class UserError(RecbiasError):
    """The user's input is at fault; shown without a traceback, exit code 2."""

    def locate_at(self, setting: str) -> UserError:
        """Return the error at a setting of the spec; its own place stands in the message."""
        return type(self)(str(self), where=setting, remedy=self.remedy)

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in place of the traceback: the lines of the command."""
        return self.lines()


@contextmanager
def at_setting(setting: str) -> Iterator[None]:
    """Let the errors of a user's input in the block be about a setting of the spec."""
    try:
        yield
    except UserError as error:
        raise error.locate_at(setting) from error


class ConfigError(UserError):
    """The experiment file is at fault."""


class UnknownKey(ConfigError):
    """The experiment file has an unknown key."""


class UnknownName(ConfigError):
    """No plug-in is registered under the name."""


class WrongType(ConfigError):
    """A value does not have the type of its setting."""


class OutOfRange(ConfigError):
    """A value is outside the range of its setting."""


class TooLittleMemory(OutOfRange):
    """A setting needs more memory than the device has free."""


class Contradiction(ConfigError):
    """Two settings exclude each other."""


class DuplicateKey(ConfigError):
    """A mapping has the same key twice."""


class BadYaml(ConfigError):
    """A file is not YAML, or not a plain mapping."""

    default_remedy = "write plain mappings, lists and values, as the files in configs/ do"


class DataError(UserError):
    """A data file is at fault."""


class MissingFile(DataError):
    """A file does not exist or cannot be read."""


class MalformedLine(DataError):
    """A line does not have the layout of its file."""

    default_remedy = "correct this line of the file"


class AmbiguousLayout(DataError):
    """A file can be read in two ways; the remedy names the setting that decides."""


class DigestMismatch(DataError):
    """The checksum of a file is not the published one."""


class ChangedFile(DataError):
    """A file has changed since the run was planned."""

    default_remedy = "run again, and do not change the file before the run has ended"


class NothingLeft(DataError):
    """A filter, split or condition leaves no rows."""


class Leakage(DataError):
    """A test interaction is also a training interaction."""


class UnknownIdentifier(DataError):
    """The dataset does not have the user, item or query."""


class UnknownColumn(DataError):
    """A table does not have the column."""


class Unwritable(DataError):
    """A folder cannot be written: read-only, full, or not a folder."""


class DownloadFailed(DataError):
    """The publisher's server did not deliver the file."""


class PluginError(UserError):
    """A plug-in is at fault, or cannot do what the experiment needs."""


class MissingExtra(PluginError):
    """The package of a plug-in is not installed."""


class MissingEvidence(PluginError):
    """A metric needs evidence that the experiment does not provide."""


class BrokenContract(PluginError):
    """A plug-in violates the contract of its kind."""

    default_remedy = "correct the lists, vectors or code that the message names"


class ReportError(UserError):
    """A stored run cannot be reported."""


class MissingRun(ReportError):
    """A run folder does not exist or does not hold a run."""


class MixedRuns(ReportError):
    """Runs cannot be compared because their units or cutoffs differ."""


class ServiceError(UserError):
    """A language model service does not answer; replies that arrived are stored."""

    default_remedy = "run again: stored replies are used, and only missing ones are requested"


class RequestRefused(ServiceError):
    """The service refuses all requests: its key, quota, model or parameters are at fault."""


class MissingReplies(ServiceError):
    """Some requests have no reply."""


class BudgetSpent(ServiceError):
    """The budget does not allow the requests that remain."""


class Faults(UserError):
    """Several errors at once, each once."""

    most_lines: ClassVar[int] = 25
    """The largest number of errors that are shown."""

    def __init__(self, faults: Sequence[UserError]) -> None:
        each = [one for fault in faults for one in getattr(fault, "faults", (fault,))]
        self.faults: tuple[UserError, ...] = tuple(
            {(str(fault), fault.remedy): fault for fault in each}.values()
        )
        super().__init__("; ".join(str(fault) for fault in self.faults))

    def locate_at(self, setting: str) -> Faults:
        """Return all errors at a setting of the spec."""
        return Faults([fault.locate_at(setting) for fault in self.faults])

    def lines(self) -> list[str]:
        """Return the lines of the first errors, in order, and the number of the others."""
        lines = [line for fault in self.faults[: self.most_lines] for line in fault.lines()]
        if (n_more := len(self.faults) - self.most_lines) > 0:
            lines.append(
                f"error: {n_more:,} more error{'s' * (n_more > 1)} of this kind or others"
            )
            lines.append("help: correct these first; --json lists all of them")
        return lines


class StageError(RecbiasError):
    """A stage failed, and the user's input is not at fault; the traceback is shown above it."""

    def __init__(self, message: str, *, traceback: str = "", remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.traceback = traceback

    def lines(self) -> list[str]:
        """Return the traceback, indented, then the error with its remedy."""
        trace = [f"  {line}" for line in self.traceback.splitlines()]
        return [*trace, *super().lines()]


class UnalignedScores(RecbiasError):
    """Two systems were measured on different units."""


CODE_FAULTS = (Exception, SystemExit)
"""What the code of others may raise: any exception, or an exit."""


def describe_exception(error: BaseException) -> str:
    """Return the type and the message of an exception.

    >>> describe_exception(KeyError("x")), describe_exception(StopIteration())
    ("KeyError: 'x'", 'StopIteration')
    """
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
