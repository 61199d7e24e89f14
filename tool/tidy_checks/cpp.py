"""Enough of C++, in the style of this repository, to count what a class and a function have.

No compiler takes part: comments, strings and preprocessor lines are blanked, then braces are followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:[^\n\\]|\\.)*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_CLASS = re.compile(
    r"\b(class|struct)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)?(?:[A-Z][A-Z_]+\s+)?([A-Za-z_][\w:]*)\s*(?:final\s*)?(?::(?!:)[^{;]*)?\{"
)
_NAMESPACE = re.compile(r"\b(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{|\bextern\s*\{|\bextern\s+[^\w;]*\{")
_NO_MEMBER = re.compile(
    r"^(?:using|friend|typedef|static_assert|enum|class|struct|union|template\s*<[^>]*>\s*(?:class|struct|using|friend))\b"
)
_LABEL = re.compile(r"^(?:(?:public|protected|private)\s*:\s*)+")
_QUALIFIED = re.compile(r"(?:^|[\s*&>])((?:\w+::)*\w+)::(~?\w+|operator\s*[^\s(]+|operator\s*\(\s*\))\s*\($")


@dataclass(frozen=True, kw_only=True)
class Class:
    name: str
    line: int
    is_data: bool  # a struct that hides nothing
    methods: int
    fields: int


@dataclass(frozen=True, kw_only=True)
class Function:
    name: str
    line: int
    lines: int


def blanked(text: str) -> str:
    """The code without comments, strings and directives; every line keeps its number."""

    def blank(found: re.Match[str]) -> str:
        return "".join("\n" if character == "\n" else " " for character in found[0])

    return _BLANK.sub(blank, text)


def closing(code: str, at: int) -> int:
    """The place of the brace that closes the one at `at`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(code) - 1


def classes(text: str) -> list[Class]:
    """Every class and struct that is defined in the text, nested ones as well."""
    code = blanked(text)
    found_classes = []
    for found in _CLASS.finditer(code):
        if re.search(r"\benum\s+$", code[: found.start()]):
            continue
        begin = found.end() - 1
        body = code[begin + 1 : closing(code, begin)]
        methods, fields = _count(body)
        is_data = found[1] == "struct" and not re.search(r"^\s*private\s*:", body, re.MULTILINE)
        line = code.count("\n", 0, found.start()) + 1
        found_classes.append(Class(name=found[2], line=line, is_data=is_data, methods=methods, fields=fields))
    return found_classes


def _count(body: str) -> tuple[int, int]:
    methods = fields = 0
    for member in members(body):
        head = _LABEL.sub("", " ".join(member.split()))
        if not head or _NO_MEMBER.match(head):
            continue
        plain = _without_angles(re.sub(r"\[\[[^\]]*\]\]|alignas\([^)]*\)", "", head))
        before_value = re.split(r"(?<![=!<>])=(?!=)|\{", plain, maxsplit=1)[0]
        if "operator" in head or ("(" in before_value and "(*" not in before_value):
            if not re.search(r"=\s*(?:delete|default)\s*;?$", head):
                methods += 1
        elif not re.match(r"(?:inline\s+)?(?:static\s+)?(?:inline\s+)?constexpr\b|static\s+const\b", plain):
            fields += 1 + _without_parentheses(plain).count(",")
    return methods, fields


def members(body: str) -> Iterator[str]:
    """The declarations of a class, without the bodies of functions and of nested classes."""
    start = at = 0
    kept = ""
    while at < len(body):
        character = body[at]
        if character == ";":
            yield kept + body[start : at + 1]
            kept, start = "", at + 1
        elif character == "(":
            at = _closing_parenthesis(body, at)
        elif character == "{":
            end = closing(body, at)
            head = (kept + body[start:at]).rstrip()
            if _is_function_body(head):
                yield head
                kept, start = "", end + 1
                if body[start : start + 1] == ";":
                    start += 1
            else:
                kept, start = kept + body[start:at] + "{}", end + 1
            at = end
        at += 1


def _is_function_body(head: str) -> bool:
    plain = _without_angles(head)
    if "(" not in plain or re.search(r"(?<![=!<>])=(?!=)[^()]*$", plain):
        return False
    if re.search(r"\)\s*(?:const|noexcept|override|final|\s|->\s*[\w:&*<>\s]+)*$", plain):
        return True
    return plain.rstrip().endswith("}")  # the last of a constructor's initialisers


def _closing_parenthesis(code: str, at: int) -> int:
    depth = 0
    for found in re.compile(r"[()]").finditer(code, at):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.start()
    return len(code) - 1


def _without_angles(text: str) -> str:
    """Without the arguments of templates, innermost first."""
    while True:
        shorter = re.sub(r"(?<=[\w>])\s*<[^<>;]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def _without_parentheses(text: str) -> str:
    while True:
        shorter = re.sub(r"\([^()]*\)", "", text)
        if shorter == text:
            return text
        text = shorter


def functions(text: str) -> list[Function]:
    """The functions that a .cpp file defines at the level of its namespaces, with their classes' names."""
    code = blanked(text)
    return list(_functions(code, 0, len(code)))


def _functions(code: str, at: int, end: int) -> Iterator[Function]:
    start = at
    while at < end:
        character = code[at]
        if character == ";":
            start = at + 1
        elif character == "(":
            at = _closing_parenthesis(code, at)
        elif character == "{":
            close = closing(code, at)
            head = code[start:at]
            if _NAMESPACE.search(head + "{"):
                yield from _functions(code, at + 1, close)
            elif _is_function_body(head.rstrip()):
                first = at - len(head.lstrip())
                line = code.count("\n", 0, first) + 1
                lines = code.count("\n", first, close) + 1
                yield Function(name=_name_of(head), line=line, lines=lines)
            elif not re.search(r"\b(?:class|struct|union|enum)\b[^()=]*$", head):
                # A value in braces: what follows belongs to the same declaration.
                at = close + 1
                continue
            start = close + 1
            at = close
        at += 1


def _name_of(head: str) -> str:
    """`Class::name`, or `name` of a function without a class."""
    plain = _without_angles(" ".join(head.split()))
    found = re.search(
        r"((?:[A-Za-z_]\w*::)*(?:~?[A-Za-z_]\w*|operator\s*(?:\(\s*\)|[^\s\w(]+|[\w:&*\s]+?)))\s*\(", plain
    )
    return found[1] if found else plain[:40]
