"""Fields whose values have the types that they are declared with: whoever comes from the command line has them anyway,
a Python caller need not."""

from __future__ import annotations

import math
import os
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Protocol, Union, get_args, get_origin, get_type_hints

from dryfly.base.errors import UserError


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


_NAMES: dict[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    type(None): "None",
}


def check_fields(instance: _Dataclass) -> None:
    """Makes lists tuples where a tuple is declared, and paths text.

    Raises UserError naming the field, its value and what is accepted.
    """
    owner = type(instance)
    hints = _hints(owner)
    for each in fields(instance):
        value = getattr(instance, each.name)
        kept = _as_declared(value, hints[each.name])
        if not _fits(kept, hints[each.name]):
            accepted = _described(hints[each.name])
            raise UserError(f"{owner.__name__}: {each.name}={value!r}: accepted is {accepted}")
        if kept is not value:
            object.__setattr__(instance, each.name, kept)


@cache
def _hints(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _as_declared(value: object, hint: Any) -> object:
    if isinstance(value, os.PathLike) and str in _parts(hint):
        return os.fspath(value)
    if get_origin(hint) is not tuple or isinstance(value, str) or not isinstance(value, Sequence):
        return value
    item = get_args(hint)[0]
    return tuple(tuple(part) if get_origin(item) is tuple and isinstance(part, list) else part for part in value)


def _fits(value: object, hint: Any) -> bool:
    if len(parts := _parts(hint)) > 1:
        return any(_fits(value, part) for part in parts)
    if get_origin(hint) is tuple:
        items = get_args(hint)
        if not isinstance(value, tuple):
            return False
        if len(items) == 2 and items[1] is Ellipsis:
            return all(_fits(part, items[0]) for part in value)
        return len(value) == len(items) and all(map(_fits, value, items))
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str) and "\0" not in value
    return isinstance(value, hint)


def _described(hint: Any) -> str:
    if len(parts := _parts(hint)) > 1:
        return " or ".join(_described(part) for part in parts)
    if get_origin(hint) is tuple:
        items = get_args(hint)
        if len(items) == 2 and items[1] is Ellipsis:
            return f"a tuple of {_described(items[0])} each"
        return "(" + ", ".join(map(_described, items)) + ")"
    if get_origin(hint) is Mapping:
        return "a mapping"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))
