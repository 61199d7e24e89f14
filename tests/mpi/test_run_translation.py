"""What NICs look up of where the pages of buffers are, in real programs and with each setting that concerns it."""

from __future__ import annotations

import re

import pytest
from conftest import Dryfly, Programs
from harness import Ended

_ON = ("--set", "nic.registration=on", "--set", "nic.translation=on")
_COMMON = ("run", "--quiet", "--machine", "testbed", "-n", "2", "--compute", "none", "--software", "none")
_READ_US, _ASK_US = 0.6, 1.0  # a level of the tables; the IOMMU
_WALK_US = 2 * _READ_US
_PACKET_US = 2048 / 25_000
_LINES = 32  # of eight pages in each buffer of 1 MiB
_BUFFERS = 4


def _run(dryfly: Dryfly, programs: Programs, *settings: str, **environment: str) -> Ended:
    program = programs.micro("registration.c")
    return dryfly(*_COMMON, *settings, "--", program, f"buffers={_BUFFERS}", environment=environment).succeeded()


def _rounds_us(ended: Ended) -> list[float]:
    return [float(found) for found in re.findall(r"round \d+: ([\d.]+) us", ended.stdout)]


def test_a_new_buffer_is_late_by_its_first_walk_and_one_that_was_used_by_none(
    dryfly: Dryfly, programs: Programs
) -> None:
    """The head of the rendezvous waits for it; the data that follow it are in the same line, and what comes in is not
    late by a walk that began 32 KiB before its end."""
    without, run = (_run(dryfly, programs, *settings) for settings in (_ON[:2], _ON))
    plain, walked = _rounds_us(without), _rounds_us(run)
    assert walked[0] - plain[0] == pytest.approx(_WALK_US, abs=0.2)
    assert walked[2] == pytest.approx(plain[2], abs=0.2)
    counted = run.results["registration"]["translation"]
    assert counted["misses"] >= 2 * _BUFFERS * _LINES
    assert counted["misses"] - 2 * _BUFFERS * _LINES <= 2 * _BUFFERS + 4  # at their edges, and what barriers use
    assert counted["evictions"] == 0
    packets = 3 * 2 * _BUFFERS * (1 << 20) // 2048
    assert counted["requests"] == pytest.approx(packets, rel=0.02)
    assert without.results["registration"]["translation"] == {"requests": 0, "misses": 0, "evictions": 0}


def test_counters_have_it_under_their_names(dryfly: Dryfly, programs: Programs) -> None:
    run = _run(dryfly, programs, *_ON)
    source, target = (nic["counters"] for nic in run.results["nics"])
    assert source["atu_client_req_oxe"] > 6000 > source.get("atu_client_req_ixe", 0)
    assert target["atu_client_req_ixe"] > 6000 > target.get("atu_client_req_oxe", 0)
    for counters in (source, target):
        requests = counters.get("atu_client_req_oxe", 0) + counters.get("atu_client_req_ixe", 0)
        assert counters["atu_cache_hit_base_page_size_0"] + counters["atu_cache_miss_0"] == requests
        assert "atu_cache_hit_derivative1_page_size_0" not in counters
        assert "atu_cache_evictions" not in counters


def test_without_the_cache_every_packet_walks(dryfly: Dryfly, programs: Programs) -> None:
    """The head, the first of what follows, and the last that comes in, which has come while the one before walked."""
    usual, walked = (_run(dryfly, programs, *_ON, **given) for given in ({}, {"FI_CXI_IOTLB": "0"}))
    late = 3 * _WALK_US - _PACKET_US
    assert _rounds_us(walked)[2] - _rounds_us(usual)[2] == pytest.approx(late, abs=0.2)
    counted = walked.results["registration"]["translation"]
    assert counted["misses"] == counted["requests"]


def test_the_iommu_answers_where_the_processor_translates(dryfly: Dryfly, programs: Programs) -> None:
    ats = {"FI_CXI_FORCE_ODP": "1", "FI_CXI_ATS": "1"}
    run = _run(dryfly, programs, *_ON, "--set", "nic.ats=on", **ats)
    first, _, third = _rounds_us(run)
    assert run.results["registration"]["mapped"] == 0
    assert first - third == pytest.approx(_ASK_US, abs=0.2)


@pytest.mark.parametrize(("huge", "least", "most"), [(1, 0.95, 1.0), (0, 0.0, 0.3)])
def test_random_places_are_found_where_pages_are_long(
    dryfly: Dryfly, programs: Programs, huge: int, least: float, most: float
) -> None:
    """A window of 256 MiB is 8,192 lines of base pages and 16 of 2 MiB; a NIC has 1,024."""
    given = (f"window={1 << 28}", "puts=4000", f"huge={huge}")
    puts = [*_COMMON, *_ON, "--", programs.micro("random_puts.c"), *given]
    run = dryfly(*puts).succeeded()
    counters = [nic["counters"] for nic in run.results["nics"]]
    requests = sum(each["atu_client_req_ixe"] for each in counters)
    found = 1 - sum(each["atu_cache_miss_ixe"] for each in counters) / requests
    assert requests >= 2 * 4000
    assert least <= found <= most
    again = dryfly(*puts).succeeded()
    assert again.results["fingerprint"] == run.results["fingerprint"]
    assert [nic["counters"] for nic in again.results["nics"]] == counters


def test_the_summary_says_what_was_looked_up(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", "-v", *_COMMON[2:], *_ON, "--", programs.micro("registration.c")).succeeded()
    assert re.search(
        r"pages    [\d,]+ look-ups by NICs of where a page is: 9\d\.\d% found, \d+ not; 0 lines", run.stderr
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (_ON[2:], "nic.translation = on: accepted is off, or nic.registration = on too"),
        ((*_ON, "--set", "nic.atu.pages=6"), "nic.atu.pages = 6: accepted is a power of two up to 64"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    dryfly: Dryfly, programs: Programs, settings: tuple[str, ...], sentence: str
) -> None:
    run = dryfly(*_COMMON, *settings, "--", programs.micro("registration.c"))
    assert run.exit_status == 2
    assert sentence in run.stderr
