"""Reads a file of TOML, and writes TOML, for content that came as a dict and is needed as a file, and back."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError

_BEGINS = re.compile(r"\s*[\w.\"'-]+\s*=")


def read(path: str | Path, shown: str, *, accepted: str = "") -> dict[str, object]:
    """Raises UserError, whose sentence begins with `shown`, as the user has named the file."""
    content = ""
    try:
        content = Path(path).read_text(encoding="utf-8")
        return tomllib.loads(content)
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, or a number of more than 4,300 digits
        raise UserError(f"{shown}: not valid TOML: {error}{_unclosed(content, str(error))}") from None
    except OSError as error:
        what = f"; accepted is {accepted}" if accepted else ""
        raise UserError(f"{shown} cannot be read: {error.strerror}{what}") from None


def _unclosed(content: str, error: str) -> str:
    """The reader notices at the end of the file that a bracket or a quote is open: in which line it may be."""
    if "end of document" not in error:
        return ""
    begun = [(number, line) for number, line in enumerate(content.splitlines(), 1) if _BEGINS.match(line)]
    for number, line in begun:
        if any(line.count(opens) > line.count(closes) for opens, closes in ("[]", "{}")):
            return f"; line {number}, `{line.strip()}`, opens a bracket that is not closed"
    return f"; the last value begins in line {begun[-1][0]}, `{begun[-1][1].strip()}`" if begun else ""


def text(content: Mapping[str, object]) -> str:
    """What tomllib reads back as the same: texts, numbers, truth values, and lists and tables of these."""
    return "".join(f"{line}\n" for line in _lines(content, ()))


def content_of(written: str) -> dict[str, Any]:
    """What tomllib has of it, where `text` wrote it in a twentieth of the time: each key and value is JSON's then.
    Raises ValueError as tomllib does."""
    try:
        return _as_json(written)
    except (ValueError, TypeError, AttributeError):  # lists of tables, or lines by hand, or damaged
        return tomllib.loads(written)


def _as_json(written: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    rows: list[str] = []
    path: list[str] = []
    begun: set[str] = set()

    def end_of_table() -> None:
        table = content
        for key in path:
            table = table.setdefault(key, {})
        values = json.loads("{" + ",".join(rows) + "}")
        if len(values) != len(rows) or table.keys() & values.keys():
            raise ValueError("a key twice")
        table.update(values)
        rows.clear()

    for line in written.split("\n"):
        if line.startswith("["):
            end_of_table()
            path = json.loads(line.replace('"."', '","'))
            if line in begun:
                raise ValueError("a table twice")
            begun.add(line)
        elif line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            rows.append(f"{key}:{value}")
    end_of_table()
    return content


def _lines(table: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    inner: list[tuple[str, Mapping[str, object], bool]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner.append((key, value, False))
        elif isinstance(value, Sequence) and value and all(isinstance(item, Mapping) for item in value):
            inner += [(key, item, True) for item in value]
        else:
            yield f"{_quoted(key)} = {_value(value)}"
    for key, value, listed in inner:
        name = ".".join(map(_quoted, (*path, key)))
        yield f"[[{name}]]" if listed else f"[{name}]"
        yield from _lines(value, (*path, key))


def _value(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"{value!r} is no value of TOML")


def _quoted(value: str) -> str:
    """JSON's text is TOML's, but for one character; its pairs of surrogates are not."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
