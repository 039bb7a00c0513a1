"""What can go wrong, one class each.

::

    RecbiasError
    ├── UserError                  the user's input is at fault: no traceback, exit code 2
    │   ├── ConfigError            UnknownKey · UnknownName · WrongType · OutOfRange
    │   │                          Contradiction · DuplicateKey · BadYaml · TooLittleMemory
    │   ├── DataError              MissingFile · MalformedLine · DigestMismatch · NothingLeft
    │   │                          Leakage · UnknownIdentifier · UnknownColumn · Unwritable
    │   │                          DownloadFailed · ChangedFile
    │   ├── PluginError            MissingExtra · MissingEvidence · BrokenContract
    │   ├── ReportError            MissingRun · MixedRuns
    │   └── Faults                 several of the above at once
    ├── StageError                 a stage of a run failed for a reason that is not the user's
    └── MeasurementError           UnalignedScores · TooFewUnits

Every error says **where**, **what was found** and **what would do**.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class RecbiasError(Exception):
    """The root of the tree.

    Args:
        found: What was found, as a sentence without a full stop.
        where: The place: a file with line and column, or a key of the spec. May be empty.
        remedy: What would do, with the nearest valid name where there is one. May be empty.
    """

    usual: ClassVar[str] = ""
    """What would do where an error does not say it."""

    def __init__(self, found: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(found)
        self.message = found
        self.where = where
        self.remedy = remedy or self.usual

    def __str__(self) -> str:
        """Return ``where: found``."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def lines(self) -> list[str]:
        """Return the error as the command line prints it: ``error:`` and ``help:``."""
        shown = [f"error: {self}"]
        if self.remedy:
            shown.append(f"help: {self.remedy}")
        return shown


class UserError(RecbiasError):
    """The user's input is at fault; shown without a traceback."""


class ConfigError(UserError):
    """The experiment file is at fault."""


class UnknownKey(ConfigError):
    """A key that nothing reads."""


class UnknownName(ConfigError):
    """A plug-in that is not registered."""


class WrongType(ConfigError):
    """A value of another type than its setting has."""


class OutOfRange(ConfigError):
    """A value outside the range of its setting."""


class TooLittleMemory(OutOfRange):
    """A setting that asks for more memory than the device has free just now."""


class Contradiction(ConfigError):
    """Two settings that cannot both hold."""


class DuplicateKey(ConfigError):
    """A key written twice in one mapping."""


class BadYaml(ConfigError):
    """A file that is not YAML, or YAML that is not a plain mapping."""

    usual = "write plain mappings, lists and values, as the files in configs/ do"


class DataError(UserError):
    """A data file is at fault."""


class MissingFile(DataError):
    """A file that is not there."""


class MalformedLine(DataError):
    """A line that does not have the layout of its file."""

    usual = "mend that place of the file"


class DigestMismatch(DataError):
    """A file whose checksum is not the published one."""


class ChangedFile(DataError):
    """A file that no longer holds what it held when the run was planned."""

    usual = "run again, and leave the file as it is until the run has ended"


class NothingLeft(DataError):
    """A filter or split that leaves no interaction."""


class Leakage(DataError):
    """A test interaction that is also a training interaction."""


class UnknownIdentifier(DataError):
    """A user, item or query that the dataset does not hold."""


class UnknownColumn(DataError):
    """An attribute that a table does not have."""


class Unwritable(DataError):
    """A folder that cannot be written: read-only, full, or not a folder."""


class DownloadFailed(DataError):
    """A publisher's site that did not give the file."""


class PluginError(UserError):
    """A plug-in is at fault, or is asked for what it cannot do."""


class MissingExtra(PluginError):
    """A plug-in whose package is not installed."""


class MissingEvidence(PluginError):
    """A metric that needs what the experiment does not make."""


class BrokenContract(PluginError):
    """A plug-in whose output is not what its kind promises."""

    usual = "mend the lists, vectors or code that it names"


class ReportError(UserError):
    """A stored run cannot be reported."""


class MissingRun(ReportError):
    """A run folder that is not there or is not one."""


class MixedRuns(ReportError):
    """Runs that cannot be compared: other units, other cutoffs."""


class Faults(UserError):
    """Several faults found at once."""

    def __init__(self, faults: Sequence[UserError]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)

    def lines(self) -> list[str]:
        """Return the lines of all faults, in order."""
        return [line for fault in self.faults for line in fault.lines()]


class StageError(RecbiasError):
    """A stage failed.

    Args:
        found: What was found.
        traceback: Where it happened; shown above the error.
    """

    def __init__(self, found: str, *, traceback: str = "") -> None:
        super().__init__(found)
        self.traceback = traceback

    def lines(self) -> list[str]:
        """Return the traceback, indented, then the error."""
        trace = [f"  {line}" for line in self.traceback.splitlines()]
        return [*trace, *super().lines()]


class MeasurementError(RecbiasError):
    """A figure cannot be worked out as asked."""


class UnalignedScores(MeasurementError):
    """Two systems were measured on different units."""


class TooFewUnits(MeasurementError):
    """A test has too few units to be made."""
