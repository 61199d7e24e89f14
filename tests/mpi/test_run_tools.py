"""Programs that call PMPI_ names, and profiling tools that intercept MPI_ names: a run is that without them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Dryfly
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from harness import CHECK, ROOT, Ended

from dryfly.base.paths import PRELOAD, native
from dryfly.mpi import libraries as mpi

_JOB = ("run", "-n", "3", "--ppn", "1", "--compute", "none")


@dataclass(frozen=True)
class Tools:
    folder: Path
    library: mpi.MpiLibrary

    def build(self, name: str, *words: str) -> Path:
        wrapper = self.library.wrapper("mpicc")
        assert wrapper is not None
        target = self.folder / name
        command = [str(wrapper), "-std=gnu17", "-O2", "-Wall", "-Wextra", *words, "-o", str(target)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        return target

    def program(self, *defines: str, tool: Path | None = None, source: str = "pmpi_tool.c") -> Path:
        words = [str(CHECK / source), "-DPROGRAM", *(f"-D{each}" for each in defines)]
        if tool is not None:
            words += [str(tool), f"-Wl,-rpath,{self.folder}", "-Wl,--no-as-needed"]
        return self.build("_".join(["program", *defines, *(["before_libmpi"] if tool else [])]).lower(), *words)

    def tool(self, *defines: str, source: str = "pmpi_tool.c", name: str = "") -> Path:
        words = ["-shared", "-fPIC", "-DTOOL", *(f"-D{each}" for each in defines), str(CHECK / source)]
        return self.build(name or "_".join(["libtool", *defines]).lower() + ".so", *words)


@pytest.fixture(params=["mpich", "openmpi"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Tools:
    return Tools(tmp_path, mpi.select(request.param))


def _run(dryfly: Dryfly, tools: Tools, program: Path, preload: Path | None = None) -> Ended:
    environment = {} if preload is None else {"LD_PRELOAD": str(preload)}
    return dryfly(*_JOB, "--mpi", tools.library.name, "--", program, environment=environment).succeeded()


def _said(ended: Ended, pattern: str) -> str:
    found = re.search(pattern, ended.stdout)
    assert found is not None, ended.stdout + ended.stderr
    return found.group(1)


def _facts(ended: Ended) -> tuple[object, ...]:
    return (ended.fingerprint, _said(ended, r"took (\S+) s"), ended.results["virtual_time_s"], ended.results["profile"])


def test_pmpi_names_and_tools_change_nothing(tools: Tools, dryfly: Dryfly) -> None:
    program = tools.program()
    plain = _run(dryfly, tools, program)
    assert float(_said(plain, r"took (\S+) s")) < 1e-3
    with_tool = [
        _run(dryfly, tools, tools.program("TOOL")),
        _run(dryfly, tools, tools.program(tool=tools.tool())),
        _run(dryfly, tools, program, preload=tools.tool()),
        _run(dryfly, tools, program, preload=tools.tool("NEXT")),
    ]
    assert _facts(_run(dryfly, tools, tools.program("DIRECT"))) == _facts(plain)
    for ended in with_tool:
        assert _facts(ended) == _facts(plain)
        assert _said(ended, r"tool: (\d+) calls") == "41"  # of rank 0: Init, and 10 rounds with two others


def test_a_tool_that_times_every_call_sees_virtual_time_however_it_is_linked(tools: Tools, dryfly: Dryfly) -> None:
    program, tool = tools.program(), tools.tool("TIMES")
    ends = [
        _run(dryfly, tools, tools.program("TOOL", "TIMES")),
        _run(dryfly, tools, tools.program("TIMES", tool=tool)),
        _run(dryfly, tools, program, preload=tool),
    ]
    facts = [(*_facts(each), _said(each, r"tool: (\S+) s")) for each in ends]
    assert facts[1:] == facts[:1] * 2
    assert "MPI_Reduce" in str(ends[0].results["profile"])


_LIKE_MPI = "libmpi_profile.so"


def _in_three_ways(dryfly: Dryfly, tools: Tools, source: str, *defines: str) -> str:
    """What rank 0 prints, the same for a tool that is compiled in, linked, and preloaded."""
    # mpiP's file name begins as the MPI library's, which lives in real time.
    tool = tools.tool(*defines, source=source, name="libmpiP.so")
    ends = [
        _run(dryfly, tools, tools.program("TOOL", *defines, source=source)),
        _run(dryfly, tools, tools.program(tool=tool, source=source)),
        _run(dryfly, tools, tools.program(source=source), preload=tool),
        # Named like a part of MPI, which it is not: it was preloaded.
        _run(dryfly, tools, tools.program(source=source), preload=tools.tool(*defines, source=source, name=_LIKE_MPI)),
    ]
    assert [_facts(each) for each in ends[1:]] == [_facts(ends[0])] * 3
    assert [each.stdout for each in ends[1:]] == [ends[0].stdout] * 3
    return ends[0].stdout


def test_a_profiler_of_call_sites_finds_the_same_places_and_times_however_it_is_linked(
    tools: Tools, dryfly: Dryfly
) -> None:
    output = _in_three_ways(dryfly, tools, "call_sites.c")
    sites = re.findall(r"site \d: (\w+) (\d+) (\S+)", output)
    # Of the 11 MPI_Allreduce one is called while MPI_Pcontrol has switched the profiler off.
    assert [(call, int(count)) for call, count, _ in sites] == [("Send", 10), ("Allreduce", 10), ("Send", 5)]
    took = re.search(r"took (\S+) s", output)
    assert took is not None
    # The rest are readings of the clock, and the MPI_Allreduce that nobody saw, a twentieth or so.
    assert 0.8 * float(took[1]) < sum(float(spent) for _, _, spent in sites) < float(took[1])
    assert re.findall(r"rank (\d): (\d) sites", output) == [("1", "1"), ("2", "3")]


@pytest.mark.parametrize(("clock", "tick_s"), [("CLOCK=CLOCK_MONOTONIC_RAW", 1e-9), ("OF_DAY", 1e-6)])
def test_a_tracer_with_a_clock_of_its_own_sees_virtual_time_however_it_is_linked(
    tools: Tools, dryfly: Dryfly, clock: str, tick_s: float
) -> None:
    output = _in_three_ways(dryfly, tools, "tracer.c", clock)
    # Rank 0: 17 calls in each of 10 rounds and a barrier, two events each; four communicators a round.
    assert "traced 342 events, 40 communicators, 0 left" in output
    took, traced = re.search(r"took (\S+) s", output), re.search(r"traced (\S+) s, (\S+) s inside", output)
    assert took is not None
    assert traced is not None
    # Between the program's readings and the tracer's are two readings of a clock, 25 ns each; the rest is rounding, by
    # less than a tick either way, for the tracer's are of whole ticks.
    assert -tick_s < float(took[1]) - float(traced[1]) < 1e-7 + tick_s
    assert float(traced[2]) == pytest.approx(float(traced[1]), rel=0.02, abs=20 * tick_s)
    apart = [float(each) for each in re.findall(r"clocks at the \w+: (\S+) apart", output)]
    assert len(apart) == 2
    assert max(apart) < 1e-7 + 2 * tick_s
    # Neither library has events, or variables that are timers, which would be in real time.
    assert "MPI_T: some control variables, 0 times" in output


def test_a_tool_that_calls_the_library_past_dryfly_is_refused_with_a_sentence(tools: Tools, dryfly: Dryfly) -> None:
    tool = tools.tool("NEXT")
    ended = dryfly(*_JOB, "--mpi", tools.library.name, "--", tools.program(tool=tool))
    assert ended.exit_status != 0
    assert f"{tool} defines MPI_Init and calls the MPI library past dryfly" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_preload_of_the_users_reaches_the_program_and_none_of_dryflys_processes(
    tools: Tools, dryfly: Dryfly, tmp_path: Path
) -> None:
    source = tmp_path / "who.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "static void end(int number) { _Exit(128 + number); }\n"
        "__attribute__((constructor)) static void begin(void) {\n"
        "  signal(SIGTERM, end); signal(SIGHUP, end); signal(SIGINT, end);\n"
        '  FILE* file = fopen(getenv("WHO"), "a");\n'
        '  fprintf(file, "%s\\n", program_invocation_short_name); fclose(file);\n}\n'
    )
    who = tmp_path / "who"
    preload = tools.build("who.so", "-shared", "-fPIC", str(source))
    program = tools.program()
    ended = dryfly(
        *_JOB, "--mpi", tools.library.name, "--", program, environment={"LD_PRELOAD": str(preload), "WHO": str(who)}
    ).succeeded()
    assert "Traceback" not in ended.stderr
    names = who.read_text().splitlines()
    assert names.count(program.name[:15]) + names.count(program.name) >= 3
    assert not [each for each in names if each.startswith("dryfly-")]


# Extensions that are not interposed: local ones, and those that need a GPU's stream.
_LOCAL_EXTENSIONS = """
Allreduce_enqueue Allreduce_enqueue_c Async_get_state Async_spawn Async_start Comm_create_errhandler_x
Comm_failure_ack Comm_failure_get_acked Comm_get_failed Comm_get_stream Comm_is_revoked Comm_test_threadcomm
File_create_errhandler_x GPU_query_support Grequest_class_allocate Grequest_class_create Grequest_start Info_set_hex
Irecv_enqueue Irecv_enqueue_c Isend_enqueue Isend_enqueue_c Op_create_x Query_cuda_support Query_hip_support
Query_rocm_support Query_ze_support Recv_enqueue Recv_enqueue_c Request_is_complete Send_enqueue Send_enqueue_c
Session_create_errhandler_x Start_progress_thread Stop_progress_thread Stream_create Stream_free Type_iov Type_iov_len
Wait_enqueue Waitall_enqueue Win_create_errhandler_x
"""


def _functions(path: Path) -> set[str]:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        return {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}


def test_every_interposed_name_is_the_librarys_and_both_of_its_names_are_interposed(tools: Tools) -> None:
    calls = (ROOT / "preload/mpi/mpi_calls.def").read_text()
    rows = re.findall(r"^DRYFLY_MPI_(?:CALL|LIFE)\((\w+),", calls, re.MULTILINE)
    names = {*rows, "Wtime", "Wtick"}
    ours = {each for each in _functions(native(PRELOAD)) if re.fullmatch(r"P?MPI_[A-Z][a-z0-9]\w*", each)}
    assert ours == {prefix + each for prefix in ("MPI_", "PMPI_") for each in names}
    theirs = _functions(Path(tools.library.libmpi))
    with_pmpi = {each.removeprefix("PMPI_") for each in theirs if re.fullmatch(r"PMPI_[A-Z]\w*", each)}
    assert {f"MPI_{each}" for each in with_pmpi} <= theirs
    # What is newer than the library is taken out of the preload for it (dryfly.mpi.preload).
    lacking = names - with_pmpi
    newer = re.compile(r"\w+_c|\w*_(i?flush|detach)(_buffer)?|Buffer_i?flush|Request_get_status_(all|any|some)")
    assert not [each for each in lacking if not newer.fullmatch(each)]
    if tools.library.family == "mpich":
        assert not lacking
    extensions = set(re.findall(r"^DRYFLY_MPI_EXTENSION\((\w+),", calls, re.MULTILINE))
    ours = {each for each in _functions(native(PRELOAD)) if re.fullmatch(r"P?MPIX_\w+", each)}
    assert ours == {prefix + each for prefix in ("MPIX_", "PMPIX_") for each in extensions}
    has = {each.removeprefix("PMPIX_") for each in theirs if each.startswith("PMPIX_")}
    assert not has - extensions - set(_LOCAL_EXTENSIONS.split())
    assert has & extensions
    # Every other function of the library is known to be local.
    local = (Path(__file__).parent / "local_mpi_functions.txt").read_text().splitlines()[1:]
    assert not with_pmpi - names - set(local)
    assert not names & set(local)


def test_what_a_library_has_beyond_the_standard_is_accounted_for(tools: Tools, dryfly: Dryfly) -> None:
    ended = _run(dryfly, tools, tools.build("extensions", str(CHECK / "extensions.c")))
    assert 0.002 <= float(_said(ended, r"^took (\S+) s$")) < 0.0021
    calls = {row["call"]: row["count"] for row in ended.results["profile"]}
    family = {"mpich": {"MPIX_Stream_comm_create": 6}, "openmpi": {"MPIX_Comm_agree": 6}}
    assert family[tools.library.family].items() <= calls.items()


def test_a_program_that_opens_the_library_itself_is_accounted_for(tools: Tools, dryfly: Dryfly) -> None:
    program = tools.build("opened", str(CHECK / "opened.c"), "-ldl")
    name = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}[tools.library.family]
    ended = dryfly(*_JOB, "--mpi", tools.library.name, "--", program, name).succeeded()
    assert re.findall(r"^slept (1\.0000000\d\d) s$", ended.stdout, re.MULTILINE), ended.stdout
    assert ended.wall_time_s < 30
    assert 1 <= ended.results["virtual_time_s"] < 1.001


def test_a_tool_that_a_command_of_the_job_preloads_sees_virtual_time(tools: Tools, dryfly: Dryfly) -> None:
    program, tool = tools.program(), tools.tool("NEXT")
    script = tools.folder / "with_tool.sh"
    script.write_text(f"#!/bin/bash\nexport LD_PRELOAD={tool}\nexec {program}\n")
    script.chmod(0o755)
    expected = _facts(_run(dryfly, tools, program, preload=tool))
    by_env = dryfly(*_JOB, "--mpi", tools.library.name, "--", "env", f"LD_PRELOAD={tool}", program).succeeded()
    by_script = dryfly(*_JOB, "--mpi", tools.library.name, "--", script).succeeded()
    for ended in (by_env, by_script):
        assert _facts(ended) == expected
        assert _said(ended, r"tool: (\d+) calls") == "41"
