"""``recbias convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.printing import print_line, report_errors


def convert(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model of transformers.")],
    to: Annotated[
        Path | None, typer.Option(help="The new folder.", show_default="FOLDER-safetensors")
    ] = None,
) -> None:
    """Write a language model with its weights as safetensors, which hold no code.

    The weights (pytorch_model.bin) are read without running code; a file that holds any is
    refused. FOLDER stays as it is.
    """
    with report_errors():
        from recbias.core.input_files import to_local_path
        from recbias.core.packages import require_packages
        from recbias.core.stage_context import collect_warnings
        from recbias.language.weight_conversion import convert_weights

        require_packages("recbias convert", "torch", "transformers", "tokenizers")
        source = to_local_path(folder)
        named = source if source.name not in {"", ".."} else source.resolve()
        target = named.parent / f"{named.name}-safetensors" if to is None else to
        with collect_warnings() as warnings:
            conversion = convert_weights(source, to_local_path(target))
        for warning in warnings:
            print_line(f"warning: {warning}", to_stderr=True)
        print_line(f"{conversion.architecture}, {conversion.n_parameters:,} parameters")
        print_line(f"wrote {target}", longest=None)
