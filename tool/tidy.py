#!/usr/bin/env python3
"""The repository's own test: layers, file sizes, and names in ARCHITECTURE.md that the code must have.

Run from anywhere; prints one line per finding and exits 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Which folders a folder may include from. The only copy of the truth; ARCHITECTURE.md draws it.
MAY_INCLUDE: dict[str, set[str]] = {
    "core/unit": set(),
    "core/spec": {"core/unit"},
    "core/record": {"core/unit"},
    "core/engine": {"core/unit"},
    "core/contract": {"core/unit", "core/engine"},
    "core/topology": {"core/unit", "core/spec"},
    "core/fabric": {
        "core/unit", "core/spec", "core/engine", "core/contract", "core/topology", "core/record/observer.hpp",
    },
    "core/nic": {"core/unit", "core/spec", "core/engine", "core/contract"},
    "core/storage": {
        "core/unit", "core/spec", "core/engine", "core/contract", "core/topology", "core/nic/counters.hpp",
    },
    "oracle": {"core/unit"},
    "wire": set(),
    "clock": {"wire"},
    "provider": {"wire"},
    "launch": {"core/unit", "core/spec"},  # the two ways to fail: DRYFLY_CHECK and SpecError
    "conductor": {
        "core/unit", "core/spec", "core/record", "core/engine", "core/contract", "core/topology", "core/fabric",
        "core/nic", "core/storage", "wire", "clock/call_names.hpp",
    },
    "app": {"core/spec", "core/unit", "conductor"},
    "generator": {
        "core/unit", "core/spec", "core/record", "core/engine", "core/contract", "core/topology", "core/fabric",
        "core/nic",
    },
}  # fmt: skip

LINES_MAX = 520
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"')
SYMBOL = re.compile(r"`([A-Za-z_][A-Za-z0-9_:]*)(?:\(\))?`")


def tracked(*patterns: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    return [Path(name) for name in names if name and (ROOT / name).exists()]


def owner(path: Path) -> str | None:
    """The folder of MAY_INCLUDE that a file belongs to."""
    for parent in path.parents:
        if parent.as_posix() in MAY_INCLUDE:
            return parent.as_posix()
    return None


def is_test(path: Path) -> bool:
    return path.stem.endswith("_test") or "tests" in path.parts or "conformance" in path.parts


def check_layers(sources: list[Path]) -> list[str]:
    findings = []
    for source in sources:
        room = owner(source)
        if room is None or is_test(source):
            continue
        for number, line in enumerate((ROOT / source).read_text().splitlines(), 1):
            if (found := INCLUDE.match(line)) is None:
                continue
            target = Path(found[1])
            target_room = owner(target)
            allowed = MAY_INCLUDE[room]
            if target_room in (None, room) or target_room in allowed or target.as_posix() in allowed:
                continue
            findings.append(f"{source}:{number}: {room} must not include {target_room}")
    return findings


def check_sizes(sources: list[Path]) -> list[str]:
    lengths = {source: len((ROOT / source).read_text().splitlines()) for source in sources}
    return [f"{source}: {lines} lines, at most {LINES_MAX}" for source, lines in lengths.items() if lines > LINES_MAX]


def check_symbols(sources: list[Path]) -> list[str]:
    page = ROOT / "ARCHITECTURE.md"
    text = "\n".join((ROOT / source).read_text() for source in sources)
    findings = []
    for symbol in sorted(set(SYMBOL.findall(page.read_text()))):
        last = symbol.split("::")[-1]
        if re.search(rf"\b{re.escape(last)}\b", text) is None and not (ROOT / symbol).exists():
            findings.append(f"ARCHITECTURE.md names `{symbol}`, which the code does not have")
    return findings


def main() -> int:
    sources = tracked("*.hpp", "*.cpp", "*.h", "*.c", "*.py", "*.def")
    findings = check_layers(sources) + check_sizes(sources) + check_symbols(sources)
    print("\n".join(findings) if findings else f"tidy: {len(sources)} files, nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
