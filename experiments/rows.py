"""Tables of one kind of row, a dataclass of text, numbers and flags, as CSV; floats have six digits."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from sfr_theory.errors import InputError
from sfr_theory.reading import known_content, read_text

Row = TypeVar("Row")
READERS: dict[Any, Callable[[str], Any]] = {
    "int": int, "float": float, "str": str, "bool": lambda text: text == "True",
}  # fmt: skip


def to_csv(kind: type[Any], rows: Iterable[Any]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(kind)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(row).items()})
    return text.getvalue().encode()


def read(kind: type[Row], path: Path, command: str) -> list[Row]:
    """The rows of a table that a command wrote; none if there is no such file."""
    if not path.exists():
        return []
    columns = {field.name: READERS[field.type] for field in fields(kind)}  # type: ignore[arg-type]
    with known_content(path, command):
        lines = csv.DictReader(io.StringIO(read_text(path), newline=""))
        if lines.fieldnames != list(columns):
            raise InputError(f"{path} is another table: the columns of {command} are {', '.join(columns)}")
        return [kind(**{name: column(line[name]) for name, column in columns.items()}) for line in lines]
