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


def test_a_table_in_a_table_of_a_list_stays_with_it() -> None:
    content = {"a": [{"b": {"c": 1}, "d": 2}, {"d": 3}], "e": {"f": {"g": [1, 2]}}}
    assert tomllib.loads(toml.text(content)) == content


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="None is no value of TOML"):
        toml.text({"a": None})
