"""What tool/tidy.py looks at: a module for each check, and their order here.

A check is a function of the tree and the rules (tool/tidy.toml) that returns a sentence for each finding.
"""

from collections.abc import Callable

from tidy_checks import (
    circles,
    citations,
    classes,
    fixtures,
    functions,
    generated,
    imports,
    includes,
    ratchet,
    symbols,
    words,
)
from tidy_checks.tree import Rules, Tree

CHECKS: tuple[Callable[[Tree, Rules], list[str]], ...] = (
    includes.check,
    fixtures.check,
    imports.check,
    circles.check,
    classes.check,
    functions.check,
    citations.check,
    words.check,
    symbols.check,
    generated.check,
)

__all__ = ["CHECKS", "Rules", "Tree", "ratchet"]
