"""A shared library of functions that say that they are not there, written without a compiler.

Bindings of another release of a family call functions that this release has not, and the dynamic linker starts no
program with a name that nothing defines. Each of the library's functions writes its sentence to standard error and
returns an MPI error code; it uses no stack and no library, so it may be called with any arguments. What is written is
the least that the dynamic linker reads: one segment with hash table, symbols, names, code and sentences, and one with
the dynamic table. Left out: section headers, which only tools read.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Sequence

_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine
_PAGE = 0x10000  # as large as any of the two has
_ELF_HEADER, _PROGRAM_HEADER, _SYMBOL = 64, 56, 24
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1
_HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 10, 11, 14
_GLOBAL_DATA, _GLOBAL_FUNCTION = 0x11, 0x12


def supported() -> bool:
    return platform.machine() in _MACHINES


def library(
    soname: str,
    sentences: Sequence[tuple[str, str]],
    *,
    status: int | None,
    data: Sequence[str] = (),
    machine: str = "",
) -> bytes:
    """`sentences`: of each function its name and what it says; `status`: what each returns; None: it ends the rank.
    `data`: names of data, of no bytes, so that the dynamic linker has nothing to copy into a program."""
    machine = machine or platform.machine()
    functions = [_function(sentence.encode() + b"\n", status, machine) for _, sentence in sentences]
    names = b"\0" + soname.encode() + b"\0"
    starts = []
    for name in (*(name for name, _ in sentences), *data):
        starts.append(len(names))
        names += name.encode() + b"\0"
    count = len(starts) + 1  # the first symbol is none
    hash_at = _ELF_HEADER + 4 * _PROGRAM_HEADER
    # One bucket: all symbols are in one chain, in order.
    table = struct.pack("<III", 1, count, 1 if starts else 0)
    table += struct.pack(f"<{count}I", 0, *(place + 1 if place + 1 < count else 0 for place in range(1, count)))
    symbols_at = _aligned(hash_at + len(table), 8)
    names_at = symbols_at + count * _SYMBOL
    code_at = _aligned(names_at + len(names), 16)
    symbols, code = bytes(_SYMBOL), b""
    for start in starts[len(functions) :]:
        symbols += struct.pack("<IBBHQQ", start, _GLOBAL_DATA, 0, 1, code_at, 0)
    for start, function in zip(starts, functions, strict=False):
        symbols += struct.pack("<IBBHQQ", start, _GLOBAL_FUNCTION, 0, 1, code_at + len(code), len(function))
        code += function + bytes(-len(function) % 16)
    end = code_at + len(code)
    dynamic_at = _aligned(end, 8)
    dynamic_address = dynamic_at + _PAGE  # in a page of its own, for it is written to
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in (
            (_SONAME, 1), (_HASH, hash_at), (_STRTAB, names_at), (_SYMTAB, symbols_at), (_STRSZ, len(names)),
            (_SYMENT, _SYMBOL), (0, 0),
        )
    )  # fmt: skip
    headers = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, _MACHINES[machine], 1, 0, _ELF_HEADER, 0, 0, _ELF_HEADER,
        _PROGRAM_HEADER, 4, 64, 0, 0,
    )  # fmt: skip
    headers += _segment(_LOAD, _READ | _EXECUTE, 0, 0, end)
    headers += _segment(_LOAD, _READ | _WRITE, dynamic_at, dynamic_address, len(dynamic))
    headers += _segment(_DYNAMIC, _READ | _WRITE, dynamic_at, dynamic_address, len(dynamic))
    headers += _segment(_STACK, _READ | _WRITE, 0, 0, 0)  # without it the stack would become executable
    content = bytearray(dynamic_at + len(dynamic))
    for place, part in (
        (0, headers), (hash_at, table), (symbols_at, symbols), (names_at, names), (code_at, code),
        (dynamic_at, dynamic),
    ):  # fmt: skip
        content[place : place + len(part)] = part
    return bytes(content)


def _segment(kind: int, flags: int, start: int, address: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, start, address, address, size, size, _PAGE if kind == _LOAD else 8)


def _function(text: bytes, status: int | None, machine: str) -> bytes:
    """write(2, text, its length), then return the status, or exit_group(1)."""
    if machine == "x86_64":
        code = b"\xb8\x01\x00\x00\x00"  # mov eax, 1 (write)
        code += b"\xbf\x02\x00\x00\x00"  # mov edi, 2
        code += b"\xba" + struct.pack("<I", len(text))  # mov edx, length
        leave = b"\xbf\x01\x00\x00\x00\xb8\xe7\x00\x00\x00\x0f\x05"  # mov edi, 1; mov eax, 231 (exit_group); syscall
        end = leave if status is None else b"\xb8" + struct.pack("<I", status) + b"\xc3"  # mov eax, status; ret
        code += b"\x48\x8d\x35" + struct.pack("<i", 2 + len(end))  # lea rsi, [rip + ...]: the text, behind the code
        return code + b"\x0f\x05" + end + text  # syscall
    leave_words = [0xD2800020, 0xD2800BC8, 0xD4000001]  # mov x0, #1; mov x8, #94 (exit_group); svc #0
    end_words = leave_words if status is None else [0x52800000 | status << 5, 0xD65F03C0]  # mov w0, #status; ret
    words = [
        0xD2800040,  # mov x0, #2
        0x10000001 | (4 + len(end_words)) << 5,  # adr x1, the text: behind what follows
        0xD2800002 | len(text) << 5,  # mov x2, #length
        0xD2800808,  # mov x8, #64 (write)
        0xD4000001,  # svc #0
        *end_words,
    ]
    return struct.pack(f"<{len(words)}I", *words) + text


def _aligned(value: int, to: int) -> int:
    return -(-value // to) * to
