"""Small Excel files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_excel(path: Path, rows: Sequence[Sequence[str | float | None]]) -> Path:
    """Write a workbook of one sheet, and return its path."""
    sheet = "".join(
        f'<row r="{number}">{"".join(map(_format_cell, row))}</row>'
        for number, row in enumerate(rows, start=1)
    )
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{PACKAGE}/content-types">'
            '<Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/a.xml" ContentType="{TYPE}.worksheet+xml"/>'
            "</Types>"
        ),
        "_rels/.rels": _relate("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
            '<sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": _relate("worksheet", "worksheets/a.xml"),
        "xl/worksheets/a.xml": (
            f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>'
        ),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def _relate(kind: str, target: str) -> str:
    part = f'<Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{part}</Relationships>'


def _format_cell(cell: str | float | None) -> str:
    if cell is None:
        return "<c/>"
    if isinstance(cell, str):
        return f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    return f"<c><v>{cell!r}</v></c>"
