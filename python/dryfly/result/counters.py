"""The report on Cassini counters at the end of a job, as Cray MPICH prints it for MPICH_OFI_CXI_COUNTER_REPORT.

Levels: 0 nothing; 1 one line when there were network time-outs (the default); 2 a table of counters that moved;
3 also each NIC of nodes with time-outs; 4 all NICs if there was any time-out; 5 all NICs always. ..._REPORT_FILE is a
prefix: the NICs of each node go to PREFIX.HOSTNAME. ..._COUNTER_FILE names counters or groups, one a line, instead of
all that the model has. ..._VERBOSE says which are collected. Rates are per second of virtual time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.files import write_whole

_PREFIX = "MPICH_OFI_CXI_COUNTER_"
TIMEOUTS = ("rh:sct_timeouts", "rh:spt_timeouts")

_SIZES = ("27", "35", "36_to_63", "64", "65_to_127", "128_to_255", "256_to_511", "512_to_1023", "1024_to_2047",
          "2048_to_4095", "4096_to_8191", "8192_to_max")  # fmt: skip
_BY_CLASS = ("hni_pkts_sent_by_tc", "hni_pkts_recv_by_tc")
_TO_HOST = tuple(
    f"parbs_tarb_pi_{path}_{what}" for path in ("posted", "non_posted") for what in ("pkts", "blocked_cnt")
)
_REPLAYS = ("hni_llr_tx_replay_event", "hni_llr_rx_replay_event")
_TIMED_OUT = ("pct_spt_timeouts", "pct_sct_timeouts")

# Groups and members by their published names (docs/model/counters.md#report-groups), whether the model has them or
# not; a member stands for its numbered ones too.
GROUPS: dict[str, tuple[str, ...]] = {
    "CxiPerfStats": (
        *_BY_CLASS, "hni_tx_paused", "hni_rx_paused", *_TO_HOST, "lpe_net_match_priority", "lpe_net_match_overflow",
        "atu_cache_miss", "atu_cache_evictions",
    ),
    "CxiErrStats": (
        *_TIMED_OUT, "pct_no_tct_nacks", "pct_no_trs_nacks", "pct_no_mst_nacks", "pct_retry_srb_requests",
        "pct_trs_rsp_nack_drops", "hni_pcs_uncorrected_cw", *_REPLAYS,
    ),
    "CxiOpCommands": ("cq_dma_cmd_counts", "cq_cq_cmd_counts", "cq_num_dma_cmds", "cq_num_idc_cmds"),
    "CxiOpPackets": (
        *(f"hni_tx_ok_{size}" for size in _SIZES), *(f"hni_rx_ok_{size}" for size in _SIZES), *_BY_CLASS,
    ),
    "CxiDmaEngine": (
        "oxe_mcu_meas", "oxe_channel_idle", "ixe_disp_dmawr_reqs", "ixe_dmawr_stall_p_cdt", "ixe_dmawr_stall_np_cdt",
        "pi_pti_tarb_mrd_pkts", "pi_pti_tarb_mwr_pkts",
    ),
    "CxiWritesToHost": _TO_HOST,
    "CxiMessageMatchingPooled": (
        "lpe_net_match_requests", "lpe_net_match_priority", "lpe_net_match_overflow", "lpe_net_match_request",
        "lpe_append_cmds", "lpe_search_nid_any", "lpe_search_pid_any", "lpe_search_rank_any", "lpe_rndzv_puts",
        "lpe_amo_cmds", "lpe_famo_cmds",
    ),
    "CxiTranslationUnit": (
        "atu_cache_miss", "atu_client_req_ee", "atu_client_req_ixe", "atu_client_req_oxe", "atu_cache_miss_ee",
        "atu_cache_miss_ixe", "atu_cache_miss_oxe", "atu_cache_evictions", "atu_cache_hit_base_page_size",
        "atu_cache_hit_derivative1_page_size", "atu_ats_trans_latency",
    ),
    "CxiLatencyHist": ("pct_host_access_latency", "pct_req_rsp_latency"),
    "CxiPctReqRespTracking": (
        "pct_req_ordered", "pct_req_unordered", "pct_responses_received", "pct_conn_sct_open", "pct_no_trs_nacks",
        "pct_retry_srb_requests", *_TIMED_OUT,
    ),
    "CxiLinkReliability": ("hni_pcs_good_cw", "hni_pcs_corrected_cw", "hni_pcs_uncorrected_cw", *_REPLAYS),
    "CxiCongestion": (*_TO_HOST, "hni_rx_paused", "hni_rx_paused_std", "hni_tx_paused"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CounterOptions:
    level: int = 1
    report_file: str | None = None
    wanted: tuple[str, ...] = ()  # empty: all
    verbose: bool = False


def read_options(environment: Mapping[str, str]) -> CounterOptions:
    """From the caller's environment; what cannot be used is said before the job starts."""
    level = environment.get(f"{_PREFIX}REPORT", "1")
    if level not in ("0", "1", "2", "3", "4", "5"):
        raise UserError(f"{_PREFIX}REPORT={level}: accepted is 0 to 5")
    report_file = environment.get(f"{_PREFIX}REPORT_FILE") or None
    if report_file is not None and not Path(report_file).parent.is_dir():
        raise UserError(f"{_PREFIX}REPORT_FILE={report_file}: there is no such folder")
    return CounterOptions(
        level=int(level),
        report_file=report_file,
        wanted=_wanted(environment.get(f"{_PREFIX}FILE")),
        verbose=environment.get(f"{_PREFIX}VERBOSE", "0") not in ("", "0"),
    )


def _wanted(file: str | None) -> tuple[str, ...]:
    if not file:
        return ()
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{_PREFIX}FILE={file} cannot be read: {error}") from None
    words = [line.split("#")[0].strip().lower() for line in lines]
    if not any(words):
        raise UserError(f"{_PREFIX}FILE={file}: it names no counter")
    groups = {name.lower(): members for name, members in GROUPS.items()}
    chosen = [member for word in words if word for member in groups.get(word.replace("_", ""), (word,))]
    return tuple(dict.fromkeys(chosen))


def is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(_is_of(name, word) for word in wanted)


def _is_of(name: str, word: str) -> bool:
    """The counter itself, or one of its numbered ones or of its sizes."""
    return name == word or re.fullmatch(rf"{re.escape(word)}_[0-9][0-9a-z_]*", name) is not None


def groups_of(name: str) -> list[str]:
    return [group for group, members in GROUPS.items() if is_wanted(name, members)]


def report(
    options: CounterOptions, nics: Sequence[Mapping[str, Any]], *, timeouts: int, seconds: float,
    say: Callable[[str], None], known: Sequence[str] = (),
) -> None:  # fmt: skip
    """`nics` as in the result; `say` prints one line where the program's own output goes. `known`: all counters that
    the model has."""
    if options.level == 0 or (options.level == 1 and timeouts == 0):
        return
    say("")
    say(f"MPICH Slingshot Network Summary: {timeouts} network timeouts")
    if options.level == 1:
        return
    moved = {name for nic in nics for name in nic["counters"]}
    names = sorted(name for name in moved if is_wanted(name, options.wanted))
    if options.verbose:
        say(f"HWPC_CXI: {len(names)} counters of {len(nics)} NICs have moved: {' '.join(names)}")
    unknown = [word for word in options.wanted if not any(_is_of(name, word) for name in known)]
    if unknown and known:
        say(f"HWPC_CXI: not modelled, so in no table (docs/model/counters.md): {' '.join(unknown)}")
    for line in _summary(names, nics, seconds):
        say(line)
    shown = _detailed(options.level, nics, timeouts)
    for host in dict.fromkeys(nic["node"] for nic in shown):
        lines = _details(names, [nic for nic in shown if nic["node"] == host], seconds)
        if options.report_file is None:
            for line in lines:
                say(line)
        else:
            _write(f"{options.report_file}.{host}", lines)


def _summary(names: Sequence[str], nics: Sequence[Mapping[str, Any]], seconds: float) -> list[str]:
    """Over the NICs on which a counter has moved, as the published report does."""
    width = max([10, *(len(name) for name in names)])
    heads = "".join(f" {head:>12}" for head in ("Min", "(/s)", "Mean", "(/s)", "Max", "(/s)"))
    lines = ["", "MPICH Slingshot CXI Counter Summary:", f"{'Counter':<{width}} {'Samples':>8}{heads}"]
    for name in names:
        values = [nic["counters"][name] for nic in nics if nic["counters"].get(name)]
        cells = ""
        for value in (min(values), round(sum(values) / len(values)), max(values)):
            cells += f" {value:>12} {_rate(value, seconds):>12.1f}"
        lines.append(f"{name:<{width}} {len(values):>8}{cells}")
    return lines


def _detailed(level: int, nics: Sequence[Mapping[str, Any]], timeouts: int) -> list[Mapping[str, Any]]:
    if level == 5 or (level == 4 and timeouts > 0):
        return list(nics)
    if level != 3 or timeouts == 0:
        return []
    hit = {nic["node"] for nic in nics if any(nic["counters"].get(name) for name in TIMEOUTS)}
    return [nic for nic in nics if nic["node"] in hit] if hit else list(nics)


def _details(names: Sequence[str], nics: Sequence[Mapping[str, Any]], seconds: float) -> list[str]:
    return [
        f"CXI_COUNTER_DATA {nic['node']} {nic['index']} {name} {value} {_rate(value, seconds):.0f}"
        for name in names
        for nic in nics
        if (value := nic["counters"].get(name, 0))
    ]


def _rate(value: float, seconds: float) -> float:
    return value / seconds if seconds > 0 else 0.0


def _write(file: str, lines: Sequence[str]) -> None:
    try:
        write_whole(Path(file), "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise RunError(f"the counters cannot be written to {file}: {error.strerror}", exit_status=1) from None
