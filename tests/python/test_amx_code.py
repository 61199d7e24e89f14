"""What the compiler makes of dryfly-mxp's kernel for AMX, on which no test can run without such a processor."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MXP = Path(__file__).parents[2] / "programs" / "mxp"
STEP = ["tileloadd", "tileloadd", "tdpbf16ps", "tileloadd", "tdpbf16ps", "tileloadd", "tdpbf16ps", "tdpbf16ps"]


def test_a_step_of_the_depth_is_four_tile_products_to_four_loads_and_nothing_is_spilled(tmp_path: Path) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("there is no objdump")
    target = tmp_path / "kernel.o"
    include = f"-I{MXP.parents[1] / 'include'}"
    compiled = ["g++", "-std=c++20", "-O3", include, "-c", str(MXP / "kernel_amx.cpp"), "-o", str(target)]
    subprocess.run(compiled, check=True)
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(target)], check=True, capture_output=True, text=True
    ).stdout
    lines = re.findall(r"^ *[0-9a-f]+:\t(\S+) *(.*)$", listing, re.M)
    if not any(name == "tilezero" for name, _ in lines):
        pytest.skip("this compiler has no AMX")
    first = max(i for i, (name, _) in enumerate(lines) if name == "tilezero") + 1
    last = min(i for i, (name, _) in enumerate(lines) if name == "tilestored")
    tiles = [name for name, _ in lines[first:last] if name.startswith("t") and name != "test"]
    assert len(tiles) >= len(STEP)
    assert tiles == STEP * (len(tiles) // len(STEP))
    loop = lines[next(i for i in range(first, last) if lines[i][0] == "tileloadd") : last]
    end = max(i for i, (name, _) in enumerate(loop) if name == "tdpbf16ps")
    assert not [words for words in loop[:end] if re.search(r"%[re](sp|bp)\b", words[1])], "a value lives on the stack"
