from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfly.base import toml

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_VALUES = st.one_of(_TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
_FLAT = st.dictionaries(_TEXT, st.one_of(_VALUES, st.lists(_VALUES, max_size=3)), max_size=3)
_CONTENT = st.dictionaries(_TEXT, st.one_of(_VALUES, _FLAT, st.lists(_FLAT, min_size=1, max_size=3)), max_size=4)


@given(_CONTENT)
def test_what_is_written_is_read_back(content: dict[str, object]) -> None:
    assert tomllib.loads(toml.text(content)) == content
    assert toml.content_of(toml.text(content)) == content


@given(_CONTENT, st.data())
def test_lines_that_go_or_come_twice_are_as_tomllib_has_them(content: dict[str, object], data: st.DataObject) -> None:
    lines = toml.text(content).split("\n")
    which = data.draw(st.integers(0, len(lines) - 1))
    damaged = "\n".join([*lines[:which], *data.draw(st.sampled_from([[], [lines[which]] * 2])), *lines[which + 1 :]])
    try:
        expected = tomllib.loads(damaged)
    except tomllib.TOMLDecodeError:
        with pytest.raises(tomllib.TOMLDecodeError):
            toml.content_of(damaged)
    else:
        assert toml.content_of(damaged) == expected


@pytest.mark.parametrize("written", ["a = 1\n", '"a" = 1 # one\n', '["a"]\n"b" = [\n  1,\n]\n', '"a" = 0x10\n', ""])
def test_what_is_written_by_hand_is_read_too(written: str) -> None:
    assert toml.content_of(written) == tomllib.loads(written)


def test_a_table_in_a_table_of_a_list_stays_with_it() -> None:
    content = {"a": [{"b": {"c": 1}, "d": 2}, {"d": 3}], "e": {"f": {"g": [1, 2]}}}
    assert tomllib.loads(toml.text(content)) == content


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="None is no value of TOML"):
        toml.text({"a": None})
