from __future__ import annotations

from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.result.counters import CounterOptions, groups_of, is_wanted, read_options, report

# Two NICs of one node and one of another; 2 s of virtual time.
NICS = [
    {"node": "t0", "index": 0, "counters": {"hni_tx_ok_64": 10, "lpe_net_match_priority_0": 4}},
    {"node": "t0", "index": 1, "counters": {"hni_tx_ok_64": 30}},
    {"node": "t1", "index": 0, "counters": {"lpe_net_match_priority_0": 8, "rh:spt_timeouts": 3}},
]


def lines(timeouts: int = 0, **options: object) -> list[str]:
    said: list[str] = []
    report(CounterOptions(**options), NICS, timeouts=timeouts, seconds=2.0, say=said.append)  # type: ignore[arg-type]
    return said


def test_by_default_only_time_outs_are_worth_a_line() -> None:
    assert lines() == []
    assert lines(timeouts=28) == ["", "MPICH Slingshot Network Summary: 28 network timeouts"]
    assert lines(timeouts=28, level=0) == []
    assert lines(level=5)[:2] == ["", "MPICH Slingshot Network Summary: 0 network timeouts"]


def test_the_table_has_min_mean_and_max_over_the_nics_on_which_a_counter_moved() -> None:
    table = [line.split() for line in lines(level=2)]
    assert ["Counter", "Samples", "Min", "(/s)", "Mean", "(/s)", "Max", "(/s)"] in table
    assert ["hni_tx_ok_64", "2", "10", "5.0", "20", "10.0", "30", "15.0"] in table
    assert ["lpe_net_match_priority_0", "2", "4", "2.0", "6", "3.0", "8", "4.0"] in table
    assert not any(line[0] == "CXI_COUNTER_DATA" for line in table if line)


def test_each_level_shows_the_nics_it_promises() -> None:
    def hosts(**options: object) -> set[str]:
        return {line.split()[1] for line in lines(**options) if line.startswith("CXI_COUNTER_DATA")}  # type: ignore[arg-type]

    assert hosts(level=3) == set()
    assert hosts(level=3, timeouts=3) == {"t1"}
    assert hosts(level=4) == set()
    assert hosts(level=4, timeouts=3) == {"t0", "t1"}
    assert hosts(level=5) == {"t0", "t1"}
    assert "CXI_COUNTER_DATA t0 1 hni_tx_ok_64 30 15" in lines(level=5)


def test_a_report_file_has_one_file_for_each_node(tmp_path: Path) -> None:
    said = lines(level=5, report_file=str(tmp_path / "report"))
    assert not any(line.startswith("CXI_COUNTER_DATA") for line in said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.t0", "report.t1"]
    assert "CXI_COUNTER_DATA t1 0 rh:spt_timeouts 3 2" in (tmp_path / "report.t1").read_text(encoding="utf-8")


def test_a_counter_file_names_counters_and_groups(tmp_path: Path) -> None:
    file = tmp_path / "wanted"
    file.write_text("# mine\nrh:spt_timeouts\ncxioppackets\n", encoding="utf-8")
    options = read_options({"MPICH_OFI_CXI_COUNTER_FILE": str(file), "MPICH_OFI_CXI_COUNTER_REPORT": "2"})
    said: list[str] = []
    report(options, NICS, timeouts=0, seconds=1.0, say=said.append)
    assert {line.split()[0] for line in said[5:]} == {"hni_tx_ok_64", "rh:spt_timeouts"}


# Every published group, with a member that others lack or that tells it from them.
@pytest.mark.parametrize(
    ("group", "member"),
    [
        ("CxiPerfStats", "lpe_net_match_priority_0"),
        ("CxiErrStats", "hni_llr_tx_replay_event"),
        ("CxiOpCommands", "cq_dma_cmd_counts_3"),
        ("CxiOpPackets", "hni_rx_ok_27"),
        ("CxiWritesToHost", "parbs_tarb_pi_posted_blocked_cnt"),
        ("CxiMessageMatchingPooled", "lpe_append_cmds_0"),
        ("CxiPctReqRespTracking", "pct_req_ordered"),
        ("CxiLinkReliability", "hni_pcs_good_cw"),
        ("CxiCongestion", "hni_tx_paused_4"),
        ("CxiTranslationUnit", "atu_cache_miss_0"),
    ],
)
def test_a_group_is_asked_for_by_its_name_in_any_case(group: str, member: str, tmp_path: Path) -> None:
    assert group in groups_of(member)
    for name in (group, group.lower(), group.upper(), f"CXI_{group[3:].upper()}"):
        file = tmp_path / "wanted"
        file.write_text(f"{name}\n", encoding="utf-8")
        options = read_options({"MPICH_OFI_CXI_COUNTER_FILE": str(file)})
        assert is_wanted(member, options.wanted)
        assert not is_wanted("ee_events_enqueued_cntr_0", options.wanted)


def test_a_word_stands_for_its_numbers_and_sizes_and_for_no_other_counter() -> None:
    assert is_wanted("hni_tx_ok_128_to_255", ("hni_tx_ok",))
    assert is_wanted("atu_cache_miss_1", ("atu_cache_miss",))
    assert not is_wanted("atu_cache_miss_oxe", ("atu_cache_miss",))
    assert not is_wanted("lpe_net_match_requests_0", ("lpe_net_match_request",))
    assert not is_wanted("lpe_rndzv_puts_offloaded_0", ("lpe_rndzv_puts",))


def test_what_is_asked_for_and_not_modelled_is_said() -> None:
    said: list[str] = []
    options = CounterOptions(level=2, wanted=("hni_tx_ok_64", "atu_cache_evictions", "pct_req_ordered"))
    report(options, NICS, timeouts=0, seconds=1.0, say=said.append, known=("hni_tx_ok_64", "pct_req_ordered"))
    assert [line for line in said if "not modelled" in line] == [
        "HWPC_CXI: not modelled, so in no table (docs/model/counters.md): atu_cache_evictions"
    ]


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("REPORT", "6", "accepted is 0 to 5"),
        ("REPORT", "all", "accepted is 0 to 5"),
        ("REPORT_FILE", "/nowhere/x", "there is no such folder"),
        ("FILE", "/nowhere/x", "cannot be read"),
        ("FILE", "/dev/null", "it names no counter"),
    ],
)
def test_what_cannot_be_used_is_said_before_the_start(variable: str, value: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_options({f"MPICH_OFI_CXI_COUNTER_{variable}": value})
