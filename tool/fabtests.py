#!/usr/bin/env python3
"""Builds libfabric's fabtests from a checkout and runs its tests on a fabric that `dryfly serve` keeps up.

  tool/fabtests.py CHECKOUT [--libfabric FILE] [--dryfly "COMMAND"] [--suite quick|all] [--only WORDS]...

CHECKOUT is a checkout of libfabric (a tag near the version of the library that is used). Which tests there are is
read from the checkout's own script. tool/fabtests.exclude says which are left out, with a reason each. Server and
client of a test run on two nodes of the machine `testbed` and meet over a local TCP connection, as their option -E
says. Nothing is written but to --folder, and nothing is left running.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ENODATA, _ENOSYS = 61, 38
_LISTS = {
    "quick": ("functional_tests", "short_tests", "unit_tests", "complex_tests", "multinode_tests", "threaded_tests"),
    "all": ("functional_tests", "short_tests", "standard_tests", "unit_tests", "complex_tests", "multinode_tests",
            "threaded_tests"),
}  # fmt: skip
_COMMON = ("common/shared.c", "common/hmem.c", "common/hmem_cuda.c", "common/hmem_rocr.c", "common/hmem_ze.c",
           "common/hmem_neuron.c", "common/hmem_synapseai.c", "common/ofi_atomic.c")  # fmt: skip
_CONFIG = "HAVE_CLOCK_GETTIME HAVE_EPOLL HAVE_RANDOM_R HAVE___INT128"
_ABSENT = "HAVE_CUDA_RUNTIME_H HAVE_CUDA_DMABUF HAVE_CUDA_DMABUF_MAPPING_TYPE_PCIE HAVE_ZE ENABLE_DEBUG"
# Ways to wait for completions and programs for reliable end-points, which the script's lists do not go through.
_MORE = (
    "fi_rdm_pingpong -I 5 -c sread", "fi_rdm_pingpong -I 5 -c fd", "fi_rdm_tagged_bw -I 5 -c fd",
    "fi_rdm_cntr_pingpong -I 5 -c sread", "fi_rdm_tagged_pingpong -I 5 -M mr_local",
    "fi_rma_pingpong -e rdm -o write -I 5",
    "fi_rdm_bw -I 5", "fi_rma_tx_completion -e rdm -I 5",
    "fi_resmgmt_test -e rdm", "fi_resmgmt_test -e rdm -t", "fi_unmap_mem -e rdm -I 5",
)  # fmt: skip
# A test whose command contains this needs a setting that the machine's provider needs for it too.
_SETTINGS = {"writedata": {"FI_CXI_ENABLE_WRITEDATA": "1"}}
_BOUNDED = {"threaded": "-I 3 -w 1"}  # the threads of a process stand in line for one lock
_SERVER_NODE, _CLIENT_NODE = 0, 1


@dataclass(frozen=True, kw_only=True)
class Test:
    suite: str
    command: str

    @property
    def program(self) -> str:
        return self.command.split()[0]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    test: Test
    outcome: str  # pass, fail, not offered, excluded
    seconds: float = 0.0
    text: str = ""


# --- the checkout ---------------------------------------------------------------------------------------------------


def tests_of(checkout: Path, suite: str) -> list[Test]:
    """The tests in the arrays of the checkout's runfabtests.sh that have to do with one reliable end-point type."""
    script = (checkout / "fabtests/scripts/runfabtests.sh").read_text(encoding="utf-8")
    found: list[Test] = []
    for name in _LISTS[suite]:
        array = re.search(rf"^{name}=\((.*?)^\)", script, re.MULTILINE | re.DOTALL)
        if array is None:
            raise SystemExit(f"fabtests: {checkout} has no list {name} in its runfabtests.sh")
        found += [Test(suite=name.removesuffix("_tests"), command=each) for each in re.findall(r'"([^"]+)"', array[1])]
    return found + [Test(suite="more", command=each) for each in _MORE]


def sources_of(checkout: Path, program: str) -> list[str]:
    """Of a program, as its Makefile.am lists them."""
    text = (checkout / "fabtests/Makefile.am").read_text(encoding="utf-8")
    for variable in ("benchmarks_srcs", "unit_srcs"):
        listed = re.search(rf"^{variable} = \\\n((?:.*\\\n)*.*\n)", text, re.MULTILINE)
        text = text.replace(f"$({variable})", listed[1].replace("\\\n", " ") if listed else "")
    match = re.search(rf"^\w+_{program}_SOURCES = *((?:.*\\\n)*.*\n)", text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"fabtests: Makefile.am says nothing of {program}")
    return [word for word in match[1].replace("\\\n", " ").split() if word.endswith(".c")]


def build(checkout: Path, programs: list[str], folder: Path, libfabric: Path, compiler: str) -> None:
    root = checkout / "fabtests"
    (folder / "config.h").write_text(
        "".join(f"#define {name} 1\n" for name in _CONFIG.split())
        + "".join(f"#define {name} 0\n" for name in _ABSENT.split())
        + '#define PACKAGE_VERSION "checkout"\n#define SIZEOF_VOID_P 8\n',
        encoding="utf-8",
    )
    flags = [
        "-g",
        "-O2",
        "-w",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-DHAVE_CONFIG_H",
        f'-DCONFIG_PATH="{root}/test_configs"',
    ]
    flags += [f"-I{folder}", f"-I{root}/include", f"-I{root}/multinode/include", f"-I{checkout}/include"]
    objects: dict[str, Path] = {}
    for source in {*_COMMON, *(each for program in programs for each in sources_of(checkout, program))}:
        objects[source] = folder / (source.replace("/", "_") + ".o")

    def run(command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"fabtests: {shlex.join(command)}\n{done.stderr}")

    def compile_one(at: tuple[str, Path]) -> None:
        source, target = root / at[0], at[1]
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            return  # of an earlier run with the same --folder
        run([compiler, *flags, "-c", str(source), "-o", str(target)])

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(compile_one, objects.items()))
        ends = ["-Wl,--no-as-needed", str(libfabric), f"-Wl,-rpath,{libfabric.parent}", "-lpthread", "-ldl", "-lm"]

        def link(program: str) -> None:
            parts = [str(objects[each]) for each in (*sources_of(checkout, program), *_COMMON)]
            run([compiler, *dict.fromkeys(parts), "-o", str(folder / program), *ends])

        list(pool.map(link, programs))


def exclusions(path: Path) -> dict[re.Pattern[str], str]:
    found: dict[re.Pattern[str], str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, reason = line.partition("  # ")
        if not separator or not reason.strip():
            raise SystemExit(f"fabtests: {path}, line {number}: a pattern and, behind two spaces and a #, its reason")
        found[re.compile(pattern.strip())] = reason.strip()
    return found


# --- the fabric -----------------------------------------------------------------------------------------------------


class Fabric:
    def __init__(self, dryfly: list[str]) -> None:
        self._dryfly = dryfly
        self._name = f"fabtests-{os.getpid()}"
        self._process = subprocess.Popen([*dryfly, "serve", "--quiet", "--name", self._name], stderr=subprocess.PIPE)

    def __enter__(self) -> Fabric:
        assert self._process.stderr is not None
        if b"is up" not in self._process.stderr.readline():
            raise SystemExit("fabtests: dryfly serve did not start")
        try:
            self.environments = [self._environment(node) for node in range(8)]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=20)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def environment(self, node: int, test: Test) -> dict[str, str]:
        found = dict(self.environments[node])
        for words, settings in _SETTINGS.items():
            if words in test.command:
                found |= settings
        return found

    def _environment(self, node: int) -> dict[str, str]:
        text = subprocess.run(
            [*self._dryfly, "env", "--name", self._name, "--node", str(node)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        words = [shlex.split(line)[1].partition("=") for line in text.splitlines()]
        return {**os.environ, **{name: value for name, _, value in words}}


# --- running --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Setting:
    folder: Path
    fabric: Fabric
    timeout_s: float
    uber_config: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="utf-8").splitlines()[1:]:
            words = line.split()
            if words[1].endswith(wanted) and words[3] == "0A":
                return True
    return False


def run_pair(test: Test, setting: Setting) -> Verdict:
    port = free_port()
    if test.program == "fi_ubertest":
        server_words, client_words = ["-x", f"-E={port}"], ["-u", str(setting.uber_config), f"-E={port}", "127.0.0.1"]
        base = [str(setting.folder / test.program)]
    else:
        server_words, client_words = [f"-E={port}"], [f"-E={port}", "127.0.0.1"]
        base = [
            str(setting.folder / test.program),
            *test.command.split()[1:],
            *_BOUNDED.get(test.suite, "").split(),
            "-p",
            "cxi",
        ]
    started = time.monotonic()
    with Process([*base, *server_words], setting.fabric.environment(_SERVER_NODE, test), setting.folder) as server:
        while not listens(port) and server.alive and time.monotonic() < started + 5:
            time.sleep(0.02)
        with Process([*base, *client_words], setting.fabric.environment(_CLIENT_NODE, test), setting.folder) as client:
            client_status = client.wait(setting.timeout_s)
            server_status = server.wait(min(60.0, setting.timeout_s) if client_status == 0 else 1)
            text = f"server ({server_status}):\n{server.output()}\nclient ({client_status}):\n{client.output()}"
            if test.program == "fi_ubertest" and client_status == 0:
                return uber_verdict(test, text, time.monotonic() - started)
    statuses = (server_status, client_status)
    return Verdict(test=test, outcome=outcome_of(statuses), seconds=time.monotonic() - started, text=text)


def outcome_of(statuses: tuple[int | None, ...]) -> str:
    if all(status == 0 for status in statuses):
        return "pass"
    refusals = (_ENODATA, _ENOSYS, 256 - _ENODATA, 256 - _ENOSYS)
    return "not offered" if statuses[-1] in refusals else "fail"


def uber_verdict(test: Test, text: str, seconds: float) -> Verdict:
    counts = {
        word: sum(map(int, re.findall(rf"{word}: *(\d+)", text))) for word in ("Success", "ENODATA", "ENOSYS", "ERROR")
    }
    good = counts["Success"] > 0 and counts["ENOSYS"] + counts["ERROR"] == 0
    return Verdict(test=test, outcome="pass" if good else "fail", seconds=seconds, text=f"{counts}\n{text}")


def run_alone(test: Test, setting: Setting) -> Verdict:
    command = test.command
    started = time.monotonic()
    words = [str(setting.folder / test.program), *command.split()[1:], "-p", "cxi"]
    with Process(words, setting.fabric.environment(_SERVER_NODE, test), setting.folder) as process:
        status = process.wait(setting.timeout_s)
        text = process.output()
    return Verdict(test=test, outcome=outcome_of((status,)), seconds=time.monotonic() - started, text=text)


def run_many(test: Test, setting: Setting, count: int = 3) -> Verdict:
    """Tests of several processes, the first of which is the server."""
    words = [str(setting.folder / test.program), *test.command.split()[1:], "-n", str(count), "-p", "cxi"]
    started = time.monotonic()
    processes: list[Process] = []
    try:
        for index in range(count):
            environment = setting.fabric.environment(index, test)
            processes.append(Process([*words, "-s", "127.0.0.1"], environment, setting.folder).__enter__())
            time.sleep(0.5 if index == 0 else 0.05)
        statuses = [process.wait(setting.timeout_s) for process in processes]
        text = "\n".join(process.output() for process in processes)
    finally:
        for process in processes:
            process.__exit__()
    return Verdict(test=test, outcome=outcome_of(tuple(statuses)), seconds=time.monotonic() - started, text=text)


class Process:
    """A child in a group of its own, which is gone at the end."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Path) -> None:
        self._words = words
        self._environment = environment
        self._output = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> Process:
        self._process = subprocess.Popen(
            self._words, env=self._environment, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def output(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")


def run_all(tests: list[Test], left_out: dict[re.Pattern[str], str], setting: Setting) -> Iterator[Verdict]:
    for test in tests:
        reason = next((why for pattern, why in left_out.items() if pattern.search(test.command)), None)
        if reason is not None:
            yield Verdict(test=test, outcome="excluded", text=reason)
            continue
        run = {"unit": run_alone, "multinode": run_many}.get(test.suite, run_pair)
        yield run(test, setting)
        if not setting.fabric.alive:
            raise SystemExit(f"fabtests: the fabric has gone down during {test.command}")


def report(verdicts: list[Verdict], target: str | None) -> int:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    if target is not None:
        rows = [
            {"suite": v.test.suite, "test": v.test.command, "outcome": v.outcome, "seconds": round(v.seconds, 2)}
            for v in verdicts
        ]
        Path(target).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if counts.get("fail") or counts.get("not offered") else 0


def default_libfabric() -> Path | None:
    found = sorted((Path.home() / ".cache/dryfly/mpi").glob("mpich-*/lib/mpich/libfabric.so.1"))
    return found[-1] if found else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--libfabric", type=Path, default=default_libfabric())
    parser.add_argument("--dryfly", default="dryfly")
    parser.add_argument("--suite", choices=sorted(_LISTS), default="quick")
    parser.add_argument("--only", action="append", default=[], help="tests whose command contains this")
    parser.add_argument("--folder", type=Path, help="where the programs are built and kept; default: a temporary one")
    parser.add_argument("--timeout", type=float, default=90.0, help="seconds a test may take")
    parser.add_argument("--json", help="write the verdicts there")
    parser.add_argument("--verbose", action="store_true", help="show what a test that did not pass has printed")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    options = parser.parse_args()
    if not (options.checkout / "fabtests/scripts/runfabtests.sh").is_file():
        parser.error(f"{options.checkout}: not a checkout of libfabric, it has no fabtests/scripts/runfabtests.sh")
    if options.libfabric is None or not options.libfabric.is_file():
        parser.error("--libfabric FILE: which libfabric.so.1 the tests are linked with")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fabric ends too
    left_out = exclusions(_HERE / "fabtests.exclude")
    tests = [t for t in tests_of(options.checkout, options.suite) if all(word in t.command for word in options.only)]
    kept = [t for t in tests if not any(pattern.search(t.command) for pattern in left_out)]
    with tempfile.TemporaryDirectory(prefix="dryfly-fabtests-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        build(
            options.checkout.resolve(),
            sorted({t.program for t in kept}),
            folder,
            options.libfabric.resolve(),
            options.cc,
        )
        verdicts: list[Verdict] = []
        with Fabric(shlex.split(options.dryfly)) as fabric:
            setting = Setting(
                folder=folder, fabric=fabric, timeout_s=options.timeout, uber_config=_HERE / "fabtests-ubertest.conf"
            )
            for verdict in run_all(tests, left_out, setting):
                verdicts.append(verdict)
                detail = f"  {verdict.text}" if verdict.outcome == "excluded" else f"{verdict.seconds:7.1f} s"
                print(f"{verdict.outcome:<12}{verdict.test.command:<58}{detail}", flush=True)
                if options.verbose and verdict.outcome in ("fail", "not offered"):
                    print(verdict.text[:1000], verdict.text[-4000:], sep="\n...\n", flush=True)
    return report(verdicts, options.json)


if __name__ == "__main__":
    sys.exit(main())
