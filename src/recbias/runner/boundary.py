"""The one place where any exception is caught: the edge of a stage."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from recbias.core.errors import RecbiasError, Unwritable, UserError
from recbias.core.records import Failure


def attempt(work: Callable[[], Any]) -> tuple[Any, Failure | None]:
    """Return what the work returns, or why it failed.

    A disk that cannot be written is no stage's own fault and is raised: nothing that follows could
    be kept.
    """
    try:
        return work(), None
    except Unwritable:
        raise
    except UserError as error:
        return None, Failure(str(error), error.remedy, user=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001  no model takes others along
        message = str(error) if isinstance(error, RecbiasError) else _worded(error)
        return None, Failure(message, "", traceback=traceback.format_exc())


def _worded(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
