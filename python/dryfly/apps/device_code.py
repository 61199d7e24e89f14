"""CUDA C++ and HIP C++ as C++ for the host: what no macro of include/dryfly/device.h can say.

It reads preprocessed text. A launch K<<<A>>>(B) becomes a call, each kernel is made known to the runtime behind its
definition, and `__shared__` becomes memory of the thread of the host that runs the block, whose threads all share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dryfly.base.errors import UserError

_WARP = "threads of a warp do not run at one instant here"
# What kernels may say on a GPU, and why not here.
_REFUSED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"__shfl(_\w+)?|__(ballot|any|all)(_sync)?|__activemask|__syncwarp|__match_(any|all)_sync|__reduce_\w+_sync"
         r"|__lanemask_\w+|warpSize|__lane_id", _WARP),
        (r"cooperative_groups|cudaLaunchCooperativeKernel|hipLaunchCooperativeKernel",
         "cooperative groups are not simulated"),
        (r"tex[123]D\w*|texCubemap\w*|surf[123]D(read|write)|cudaTextureObject_t|hipTextureObject_t"
         r"|cudaSurfaceObject_t", "textures and surfaces are not simulated"),
        (r"__half2?|__nv_bfloat162?|__hip_bfloat16", "numbers of 16 bits are not there"),
        (r"wmma|nvcuda|__pipeline_\w+|__cluster_dims__", "it needs a unit of the GPU that is not simulated"),
        (r"clock64|wall_clock64|__clock64|__nanosleep", "a kernel has no clock here"),
        (r"__managed__", "take the memory by cudaMallocManaged or hipMallocManaged"),
    )
)  # fmt: skip
_ANY_REFUSED = re.compile("|".join(pattern.pattern for pattern, _ in _REFUSED))

_MARKER = re.compile(r'^#(?:line)? (\d+) "((?:[^"\\]|\\.)*)"([ \d]*)$', re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<skipped>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<line>^\#[^\n]*)
    |(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    |(?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[\w.]|'\w|(?<=[eEpP])[+-])*)
    |(?P<sign><<<|::|->|.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_BEFORE_EXPRESSIONS = ("return", "else", "do")
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass
class _Edits:
    made: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        self.made.append((start, end, text))

    def applied(self, source: str) -> str:
        parts, at = [], 0
        for start, end, text in sorted(self.made, key=lambda each: each[:2]):
            parts += [source[at:start], text]
            at = end
        return "".join([*parts, source[at:]])


def rewritten(source: str, *, name: str, command: str, is_foreign: Callable[[str], bool] = lambda _: False) -> str:
    """`source`, preprocessed, as C++ for the host. `name`: of the file, where the text does not say another;
    `is_foreign`: of a file's name, whether it is one of the GPU runtime's headers, which are left as they are.

    Raises UserError with the place where it has what is not there.
    """
    scanner = _Scanner(source, name=name, command=command, is_foreign=is_foreign)
    return scanner.rewritten()


class _Scanner:
    def __init__(self, source: str, *, name: str, command: str, is_foreign: Callable[[str], bool]) -> None:
        self._source = source
        self._name = name
        self._command = command
        self._edits = _Edits()
        self._tokens = list(self._own_tokens(is_foreign))
        self._partner = _partners(self._tokens)
        self._templates: set[str] = set()
        self._registered = 0

    def rewritten(self) -> str:
        launches = []
        for index, token in enumerate(self._tokens):
            if token.kind == "line":
                if re.match(r"#\s*pragma\s+(no)?unroll\b", token.text):
                    self._edits.replace(token.start, token.end, "")
            elif token.text == "<<<":
                launches.append(index)
            elif token.kind == "word":
                self._word(index)
        for index in launches:
            self._launch(index)
        return self._edits.applied(self._source)

    def _own_tokens(self, is_foreign: Callable[[str], bool]) -> Iterator[_Token]:
        """Those of the program's files: the system's and the runtime's headers launch nothing."""
        at, own = 0, True
        for marker in [*_MARKER.finditer(self._source), None]:
            end = marker.start() if marker is not None else len(self._source)
            if own:
                for found in _TOKEN.finditer(self._source, at, end):
                    if found.lastgroup != "skipped" and found["skipped"] is None:
                        kind = next(name for name in ("line", "raw", "text", "word", "number", "sign") if found[name])
                        yield _Token(kind, found[0], found.start(), found.end())
            if marker is not None:
                at = marker.end()
                own = "3" not in marker[3].split() and not is_foreign(marker[2])

    def _fail(self, index: int, text: str) -> UserError:
        place = self._tokens[index].start
        name, line, begin = self._name, 1, 0
        for marker in _MARKER.finditer(self._source, 0, place):
            name, line, begin = marker[2] or name, int(marker[1]), marker.end() + 1
        return UserError(f"{self._command}: {name}:{line + self._source.count(chr(10), begin, place)}: {text}")

    def _text(self, index: int) -> str:
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _kind(self, index: int) -> str:
        return self._tokens[index].kind if 0 <= index < len(self._tokens) else ""

    def _word(self, index: int) -> None:
        token = self._tokens[index]
        if token.text == "__global__":
            self._kernel(index)
        elif token.text == "__shared__":
            self._shared(index)
        elif token.text == "__noinline__" and self._text(index - 1) not in ("(", ","):
            self._edits.replace(token.start, token.end, "__attribute__((noinline))")
        else:
            self._check(index)

    def _check(self, index: int) -> None:
        word = self._text(index)
        if self._text(index - 1) in (".", "->") or not _ANY_REFUSED.fullmatch(word):
            return
        reason = next(reason for pattern, reason in _REFUSED if pattern.fullmatch(word))
        raise self._fail(index, f"{word} cannot be compiled for this computer: {reason}")

    def _kernel(self, index: int) -> None:
        token = self._tokens[index]
        self._edits.replace(token.start, token.end, "")
        opening = index + 1
        while opening < len(self._tokens) and not (
            self._text(opening) == "("
            and self._tokens[opening - 1].kind == "word"
            and self._text(opening - 1) not in ("__attribute__", "alignas", "__launch_bounds__")
        ):
            if self._text(opening) in (";", "}"):
                raise self._fail(index, "__global__ is not followed by a function")
            opening = self._behind(opening)
        closing = self._partner.get(opening)
        if closing is None:
            raise self._fail(index, "__global__ is not followed by a function")
        name = self._text(opening - 1)
        if self._is_template(index):
            self._templates.add(name)
            return
        body = closing + 1
        while self._text(body) == "__attribute__" and body + 1 in self._partner:
            body = self._partner[body + 1] + 1
        if self._text(body) != "{" or body not in self._partner:
            return
        end = self._tokens[self._partner[body]].end
        # The types say which one it is of several of that name.
        types = self._without_values(opening, closing)
        self._edits.replace(
            end,
            end,
            f" static const ::dryfly_device::Registered __attribute__((unused)) dryfly_kernel_{self._registered}"
            f"(static_cast<void (*)({types})>({name}));",
        )
        self._registered += 1

    def _behind(self, index: int) -> int:
        return self._partner[index] + 1 if self._text(index) in _OPENING and index in self._partner else index + 1

    def _without_values(self, opening: int, closing: int) -> str:
        """Parameters without what they are where a call does not say it."""
        parts: list[str] = []
        index = opening + 1
        while index < closing:
            if self._text(index) == "=":
                depth = 0
                while index < closing and not (depth == 0 and self._text(index) == ","):
                    depth += {"<": 1, ">": -1}.get(self._text(index), 0)
                    index = self._behind(index)
                continue
            # Brackets of an inner kind, such as those of a pointer to a function, are parts as they stand.
            parts.append(self._text(index))
            index += 1
        return " ".join(part for part in parts if not part.startswith("#"))

    def _is_template(self, index: int) -> bool:
        """Whether the declaration that has `index` in it begins with template <...>."""
        at = index - 1
        while at >= 0 and self._text(at) not in (";", "{", "}"):
            if self._text(at) == ">":
                begin = self._angle_begin(at)
                if begin is not None and self._text(begin - 1) == "template":
                    return True
            at = self._partner[at] - 1 if self._text(at) in _CLOSING and at in self._partner else at - 1
        return False

    def _angle_begin(self, closing: int) -> int | None:
        """Where the < is whose > is at `closing`."""
        depth, at = 0, closing
        while at >= 0 and self._text(at) not in (";", "{", "}"):
            text = self._text(at)
            if text in _CLOSING and at in self._partner:
                at = self._partner[at] - 1
                continue
            depth += {">": 1, "<": -1}.get(text, 0)
            if depth == 0:
                return at
            at -= 1
        return None

    def _shared(self, index: int) -> None:
        token = self._tokens[index]
        begin = index
        while begin > 0 and self._text(begin - 1) not in (";", "{", "}", ":") and self._kind(begin - 1) != "line":
            begin -= 1
        end = index
        while end < len(self._tokens) and self._text(end) != ";":
            end = self._behind(end)
        words = [self._text(at) for at in range(begin, end)]
        if "extern" not in words:
            self._edits.replace(token.start, token.end, "__thread" if "static" in words else "static __thread")
            return
        if not self._is_inside_function(index):
            raise self._fail(index, "extern __shared__ outside of a kernel cannot be compiled: say it in the kernel")
        kept = self._without_attributes(begin, end)
        if len(kept) < 4 or kept[-2:] != ["[", "]"]:
            raise self._fail(index, "extern __shared__ is an array without a length: accepted is TYPE NAME[]")
        kind, name = " ".join(kept[:-3]), kept[-3]
        start = self._tokens[begin].start
        self._edits.replace(
            start,
            self._tokens[end].start,
            f"{kind}* const {name} = static_cast<{kind}*>(::dryfly_device::shared_memory())",
        )

    def _without_attributes(self, begin: int, end: int) -> list[str]:
        kept, at = [], begin
        while at < end:
            text = self._text(at)
            if text in ("__attribute__", "alignas"):
                at = self._behind(at + 1)
                continue
            if text not in ("extern", "__shared__"):
                kept.append(text)
            at += 1
        return kept

    def _is_inside_function(self, index: int) -> bool:
        opened = [at for at, end in self._partner.items() if at < index < end and self._text(at) == "{"]
        return any(self._text(at - 1) in (")", "const", "noexcept", "else", "do") for at in opened)

    def _launch(self, index: int) -> None:
        end = self._launch_end(index)
        begin = self._callee_begin(index)
        kernel = self._source[self._tokens[begin].start : self._tokens[index - 1].end]
        names = [self._text(at) for at in self._names(begin, index)]
        configuration = self._source[self._tokens[index].end : self._tokens[end].start]
        how = (
            f"with([](auto... dryfly_values) {{ {kernel}(dryfly_values...); }})"
            if names and names[-1] in self._templates
            else f"of({kernel})"
        )
        self._edits.replace(
            self._tokens[begin].start,
            self._tokens[end + 2].end,
            f"::dryfly_device::Launch({configuration}).{how}",
        )

    def _launch_end(self, index: int) -> int:
        at = index + 1
        while at + 3 < len(self._tokens) and self._text(at) not in (";", "}"):
            if all(self._text(at + each) == ">" for each in range(3)) and self._text(at + 3) == "(":
                return at
            at = self._behind(at)
        raise self._fail(index, "<<< is not followed by >>> and the kernel's arguments")

    def _callee_begin(self, index: int) -> int:
        at = index - 1
        while True:
            if self._text(at) == ">":
                angle = self._angle_begin(at)
                if angle is None:
                    raise self._fail(index, "<<< is not behind the name of a kernel")
                at = angle - 1
            while self._text(at) in (")", "]") and at in self._partner:
                at = self._partner[at] - 1
            if self._kind(at) == "word" and self._text(at) not in _BEFORE_EXPRESSIONS:
                at -= 1
            begin = at + 1
            if begin >= index:
                raise self._fail(index, "<<< is not behind the name of a kernel")
            if self._text(at) not in ("::", ".", "->"):
                return begin
            at -= 1
            is_name = self._kind(at) == "word" and self._text(at) not in _BEFORE_EXPRESSIONS
            if not is_name and self._text(at) not in (">", ")", "]"):
                return at + 1

    def _names(self, begin: int, end: int) -> Iterator[int]:
        """Of the name at that place, without what is in < >."""
        depth = 0
        for at in range(begin, end):
            depth += {"<": 1, ">": -1}.get(self._text(at), 0)
            if depth == 0 and self._tokens[at].kind == "word":
                yield at


def _partners(tokens: list[_Token]) -> dict[int, int]:
    """Where each bracket's other one is."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in _OPENING:
            opened.append(index)
        elif token.text in _CLOSING and opened and tokens[opened[-1]].text == _CLOSING[token.text]:
            begin = opened.pop()
            found[begin], found[index] = index, begin
    return found
