"""What `dryfly compare --iterations` says of repetitions."""

from __future__ import annotations

import pytest

from dryfly.apps import benchmarks
from dryfly.study.iterations import Spread


def test_every_repetition_is_read_from_behind_its_row() -> None:
    output = "# Size\n8   2.50\n# each 8 2.000000 3.000000\n16  4.00\n# each 16 4.000000 4.000000\n"
    assert benchmarks.read_each(output) == {8: [2.0, 3.0], 16: [4.0, 4.0]}
    assert benchmarks.read(output) == {8: 2.5, 16: 4.0}


def test_what_stands_out_is_beyond_the_fences_and_five_percent() -> None:
    spread = Spread.of([2.0, 2.01, 2.0, 2.02, 9.0, 2.01])
    assert spread.outliers == ((5, 9.0),)
    assert spread.share == pytest.approx(7.0 / 2.01)
    assert spread.text() == "2..9 (348.3%); number 5: 9"
    # All but one alike: the fences are where they are, but 2 % does not stand out.
    assert Spread.of([2.0, 2.0, 2.0, 2.0, 2.04]).outliers == ()


def test_few_repetitions_have_no_outliers() -> None:
    assert Spread.of([1.0, 50.0, 1.0]).outliers == ()
    assert Spread.of([3.0]).text() == "3..3 (0.0%)"
    assert Spread.of([0.0, 0.0]).share == 0.0
