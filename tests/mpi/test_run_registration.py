"""What buffers cost that NICs have to be told of, in real programs and with each setting that concerns it."""

from __future__ import annotations

import json
import re

import pytest
from conftest import Dryfly, Programs
from harness import Ended

_ON = ("--set", "nic.registration=on")
_COMMON = ("run", "--quiet", "--machine", "testbed", "-n", "2", "--compute", "none", "--software", "none", *_ON)
_BUFFERS = 4
_PAGES = 256  # of 1 MiB
_MAP_US, _MAP_PAGE_US, _UNMAP_US, _UNMAP_PAGE_US, _WATCH_US = 2, 0.1, 3, 0.05, 1
_MAPPED_US = _MAP_US + _PAGES * _MAP_PAGE_US
_UNMAPPED_US = _UNMAP_US + _PAGES * _UNMAP_PAGE_US


def _run(dryfly: Dryfly, programs: Programs, *arguments: str, **environment: str) -> Ended:
    program = programs.micro("registration.c")
    return dryfly(*_COMMON, "--", program, f"buffers={_BUFFERS}", *arguments, environment=environment).succeeded()


def _rounds_us(ended: Ended) -> list[float]:
    return [float(found) for found in re.findall(r"round \d+: ([\d.]+) us", ended.stdout)]


def test_a_buffer_costs_a_mapping_once(dryfly: Dryfly, programs: Programs) -> None:
    """Sender and receiver map at the same time, so that a message is late by one mapping."""
    run = _run(dryfly, programs)
    first, second, third = _rounds_us(run)
    assert first - third == pytest.approx(_MAPPED_US, abs=0.2)  # switches draw their latencies
    assert second == pytest.approx(third, abs=0.2)
    counted = run.results["registration"]
    assert (counted["misses"], counted["hits"]) == (2 * _BUFFERS, 4 * _BUFFERS)
    assert counted["mapped_pages"] == 2 * _BUFFERS * _PAGES
    assert counted["time_s"] == pytest.approx(2 * _BUFFERS * _MAPPED_US * 1e-6)
    assert counted["most"]["time_s"] == pytest.approx(_BUFFERS * _MAPPED_US * 1e-6)


def test_memory_that_was_freed_is_mapped_again(dryfly: Dryfly, programs: Programs) -> None:
    """From then on malloc gives memory of the heap, which stays (its dynamic threshold)."""
    run = _run(dryfly, programs, "anew=1")
    first, second, third = _rounds_us(run)
    assert second - third == pytest.approx(_MAPPED_US + _UNMAPPED_US, abs=0.3)
    assert run.results["registration"]["invalidated"] == 2 * _BUFFERS
    assert third < first < second


@pytest.mark.parametrize(
    ("environment", "more_us"),
    [
        ({"FI_MR_CACHE_MONITOR": "memhooks"}, 0.0),
        ({"FI_MR_CACHE_MAX_COUNT": "524288", "FI_MR_CACHE_MAX_SIZE": "-1"}, 0.0),
        ({"FI_MR_ZE_CACHE_MONITOR_ENABLED": "0"}, 0.0),
        ({"FI_MR_CACHE_MONITOR": "disabled"}, _MAPPED_US + _UNMAPPED_US),
        ({"FI_MR_CACHE_MAX_COUNT": "0"}, _MAPPED_US + _UNMAPPED_US),
        ({"FI_MR_CACHE_MAX_COUNT": "2"}, _MAPPED_US + _UNMAPPED_US),
        ({"FI_MR_CACHE_MAX_SIZE": "2000000"}, _MAPPED_US + _UNMAPPED_US),
    ],
)
def test_what_each_setting_of_the_cache_does_once_all_have_been_used(
    dryfly: Dryfly, programs: Programs, environment: dict[str, str], more_us: float
) -> None:
    usual = _rounds_us(_run(dryfly, programs))[2]
    assert _rounds_us(_run(dryfly, programs, **environment))[2] - usual == pytest.approx(more_us, abs=0.2)


@pytest.mark.parametrize("monitor", ["kdreg2", "userfaultfd"])
def test_a_monitor_of_the_kernels_costs_a_call_more_for_each_range(
    dryfly: Dryfly, programs: Programs, monitor: str
) -> None:
    run = _run(dryfly, programs, FI_MR_CACHE_MONITOR=monitor)
    first, _, third = _rounds_us(run)
    assert first - third == pytest.approx(_MAPPED_US + _WATCH_US, abs=0.2)


@pytest.mark.parametrize("arguments", [("huge=1", "bytes=4194304"), ("bytes=4194304",)])
def test_huge_pages_are_few(dryfly: Dryfly, programs: Programs, arguments: tuple[str, ...]) -> None:
    """By MAP_HUGETLB, or as a program linked with libhugetlbfs has its heap."""
    environment = {} if "huge=1" in arguments else {"HUGETLB_MORECORE": "yes", "HUGETLB_DEFAULT_PAGE_SIZE": "2M"}
    run = _run(dryfly, programs, *arguments, **environment)
    first, _, third = _rounds_us(run)
    assert first - third == pytest.approx(_MAP_US + 3 * _MAP_PAGE_US, abs=0.3)
    assert run.results["registration"]["mapped_pages"] <= 2 * _BUFFERS * 3


def test_pages_on_demand_cost_a_fault_for_each_64_kib(dryfly: Dryfly, programs: Programs) -> None:
    run = _run(dryfly, programs, FI_CXI_FORCE_ODP="1")
    assert run.results["registration"]["faults"] == 2 * _BUFFERS * 16
    translated = dryfly(
        *_COMMON, "--set", "nic.ats=on", "--", programs.micro("registration.c"),
        environment={"FI_CXI_FORCE_ODP": "1", "FI_CXI_ATS": "1"},
    ).succeeded()  # fmt: skip
    assert translated.results["registration"]["mapped"] == 0
    first, _, third = _rounds_us(translated)
    assert first == pytest.approx(third, abs=0.2)


def test_windows_are_regions(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(*_COMMON, "--", programs.check("rma.c"))
    assert run.succeeded().results["registration"]["regions"] >= 2


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"FI_MR_CACHE_MONITOR": "kdreg"}, "FI_MR_CACHE_MONITOR=kdreg: accepted are userfaultfd, uffd, memhooks"),
        ({"FI_MR_CACHE_MAX_COUNT": "all"}, "FI_MR_CACHE_MAX_COUNT=all: accepted is a number of at least 0"),
        ({"FI_CXI_ATS": "perhaps"}, "FI_CXI_ATS=perhaps: failed to parse bool var ats=perhaps"),
        ({"HUGETLB_MORECORE": "much"}, "HUGETLB_MORECORE=much: accepted are yes, no, thp and a page size such as 2M"),
    ],
)
def test_wrong_settings_are_refused(
    dryfly: Dryfly, programs: Programs, environment: dict[str, str], sentence: str
) -> None:
    run = dryfly(*_COMMON, "--", programs.micro("registration.c"), environment=environment)
    assert run.exit_status == 2
    assert sentence in run.stderr


def test_the_summary_says_what_was_registered(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(
        "run",
        "-v",
        "--machine",
        "testbed",
        "-n",
        "2",
        "--compute",
        "none",
        *_ON,
        "--",
        programs.micro("registration.c"),
    )
    assert "buffers  24 registered: 16 found in the cache, 8 not; 8 mapped (2,048 pages" in run.succeeded().stderr


@pytest.mark.slow
def test_what_hpl_loses_without_a_cache_is_what_the_closed_form_adds(dryfly: Dryfly) -> None:
    aurora = ("--quiet", "--machine", "aurora", "-N", "2", "--ppn", "6")

    def real_s(monitor: str) -> float:
        run = ("run", *aurora, "--compute", "none", *_ON, "--", "dryfly-hpl", "-N", "768", "--nb", "96")
        ended = dryfly(*run, "--grid", "3x4", environment={"FI_MR_CACHE_MONITOR": monitor}).succeeded()
        return float(ended.results["virtual_time_s"])

    def closed_s(registration: str) -> float:
        given = ("n=768", "nb=96", "grid=3x4", f"registration={registration}")
        ended = dryfly("predict", "hpl", *aurora, "--model", "closed", *given, "--json", "-").succeeded()
        return float(json.loads(ended.stdout)["virtual_time_s"])

    lost_s = real_s("disabled") - real_s("memhooks")
    assert closed_s("each") - closed_s("kept") == pytest.approx(lost_s, rel=0.05)
