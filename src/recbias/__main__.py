"""Entry point of ``recbias`` and of ``python -m recbias``."""

from __future__ import annotations

import gc
import os
import sys

_PROGRAM = os.path.basename(sys.argv[0])  # noqa: PTH119  pathlib takes long to import
IS_PROGRAM = __name__ == "__main__" or _PROGRAM.startswith("recbias")
"""Whether this is the command, and not a module that another program imports."""

if IS_PROGRAM:  # until ``handle_signals``, whose imports take a tenth of a second
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    except KeyboardInterrupt:
        os._exit(130)

from contextlib import suppress  # noqa: E402

from recbias.core.machine.interrupts import (  # noqa: E402
    claim_line,
    get_exit_code,
    handle_signals,
)
from recbias.core.machine.memory import share_heap  # noqa: E402
from recbias.core.machine.process_state import open_standard_descriptors  # noqa: E402
from recbias.core.machine.shortage import SHORTAGES, is_shortage  # noqa: E402
from recbias.core.machine.sudden_end import announce_end, watch_for_sudden_end  # noqa: E402

_ALLOCATIONS_PER_COLLECTION = 50_000
"""Instead of 700: objects of imported modules are no garbage, and to visit them takes 0.1 s."""

_OUT_OF_MEMORY = b"error: out of memory\nhelp: allow more memory (ulimit -v unlimited)\n"


def main() -> None:
    """Run the command line; a signal that ends it has its handler before the slow imports."""
    open_standard_descriptors()
    watch_for_sudden_end()
    share_heap()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    try:
        with handle_signals():
            from recbias.cli.app import main as run_command

            run_command()
    except KeyboardInterrupt as error:
        _end(error)
    except SHORTAGES as error:  # memory also runs out while an error is reported
        if not is_shortage(error):
            raise
        _end_without_memory()
    finally:
        announce_end()


def _end_without_memory() -> None:
    """End with the lines of an error; exceptions beyond memory could be neither shown nor kept."""
    announce_end()
    os.write(2, _OUT_OF_MEMORY)
    os._exit(1)


def _end(error: KeyboardInterrupt) -> None:
    """Print the line of an interruption and exit; the streams may belong to a closed terminal."""
    with suppress(OSError, ValueError):
        if line := claim_line(error):
            sys.stderr.write(f"{line}\n")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(get_exit_code(error))


if __name__ == "__main__":
    main()
