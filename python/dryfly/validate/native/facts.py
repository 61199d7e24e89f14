"""What a host says of itself: its name, which computer it is, its cores, and of each Slingshot NIC what the cxi driver
and PCI have in sysfs.

A script for any POSIX shell, since Python need not be on the hosts. Where there is no NIC of this kind it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dryfly.binding import sets
from dryfly.validate.console import HISTORY_S, Console, Event
from dryfly.validate.wiring import nic_place

CXI = "/sys/class/cxi"
_MARK = "dryfly-host"

# Launchers have names of their own for a rank. Those of hydra and PMIx come first: in a batch job Slurm's is set too.
_SCRIPT = """\
rank=${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-${PALS_RANKID:-${FLUX_TASK_RANK:-0}}}}}
say() { echo "MARK $rank $*"; }
read_file() { cat "$1" 2>/dev/null || echo -; }
now=$(date +%s)
say name "$(uname -n)"
say computer "$(read_file /proc/sys/kernel/random/boot_id)" "$(readlink /proc/self/ns/net 2>/dev/null || echo -)"
say cores "$(read_file /sys/devices/system/cpu/online)"
for nic in CXI/cxi*; do
  [ -d "$nic/device" ] || continue
  number=${nic##*/cxi}
  device=$nic/device
  say nic "$number" "$(read_file "$device/properties/link")" \\
    "$(read_file "$device/current_link_width")" "$(read_file "$device/max_link_width")" \\
    "$(read_file "$device/current_link_speed" | tr ' ' _)" "$(read_file "$device/max_link_speed" | tr ' ' _)"
  for file in "$device"/link_restarts/time_*; do
    at=$(read_file "$file")
    case $at in *[!0-9]* | "" | 0) ;; *) say flap "$number" $((now - at)) ;; esac
  done
done
say end
"""


@dataclass(frozen=True, kw_only=True)
class NicFacts:
    """As sysfs has them; `-`: it does not say. `flaps`: how many seconds ago."""

    link: str
    width: str
    most_width: str
    speed: str
    most_speed: str
    flaps: tuple[int, ...] = ()

    def complaints(self) -> list[tuple[str, str, float]]:
        """Kind as fault files have it, words, and how many times as long it makes what goes through."""
        found = []
        if self.link not in ("up", "-", "1"):
            found.append(("loss", f"link is {self.link}", 1.0))
        if self.width != self.most_width or self.speed != self.most_speed:
            speed, most = (text.replace("_", " ") for text in (self.speed, self.most_speed))
            found.append(("pcie", f"LnkSta: Speed {speed}, Width x{self.width}, and it can have {most}, x"
                          f"{self.most_width}", self._slower()))  # fmt: skip
        return found

    def _slower(self) -> float:
        rates = [_number(speed) * _number(width) for speed, width in
                 ((self.speed, self.width), (self.most_speed, self.most_width))]  # fmt: skip
        return rates[1] / rates[0] if rates[0] and rates[1] else 1.0


def _number(text: str) -> float:
    """Of `16.0_GT/s_PCIe` or `8`; 0 where there is none."""
    try:
        return float(text.partition("_")[0])
    except ValueError:
        return 0.0


@dataclass(kw_only=True)
class Facts:
    rank: int  # that the launcher gave it
    name: str = ""
    boot: str = ""  # the number that Linux has drawn when it started; empty: it does not say
    network: str = ""  # the namespace
    cores: frozenset[int] = frozenset()  # hardware threads, whoever may use them
    nics: dict[int, NicFacts] = field(default_factory=dict)
    whole: bool = False  # all was said


def script(cxi: str = CXI) -> str:
    return _SCRIPT.replace("MARK", _MARK).replace("CXI", cxi)


def parse(lines: Sequence[str]) -> dict[int, Facts]:
    """By rank; only of those that have said all."""
    found: dict[int, Facts] = {}
    flaps: dict[tuple[int, int], list[int]] = {}
    for line in lines:
        words = line[line.find(_MARK) :].split() if _MARK in line else []
        if len(words) < 3 or not words[1].isdecimal():
            continue
        rank, word, rest = int(words[1]), words[2], words[3:]
        facts = found.setdefault(rank, Facts(rank=rank))
        if word == "name":
            facts.name = rest[0]
        elif word == "computer" and len(rest) == 2:
            facts.boot, facts.network = ("" if text == "-" else text for text in rest)
        elif word == "cores":
            facts.cores = sets.parse(rest[0]) or frozenset()
        elif word == "nic" and len(rest) == 6 and rest[0].isdecimal():
            link, width, most_width, speed, most_speed = rest[1:]
            facts.nics[int(rest[0])] = NicFacts(
                link=link, width=width, most_width=most_width, speed=speed, most_speed=most_speed
            )
        elif word == "flap" and len(rest) == 2:
            flaps.setdefault((rank, int(rest[0])), []).append(int(rest[1]))
        elif word == "end":
            facts.whole = True
    for (rank, nic), ages in flaps.items():
        known = found[rank].nics.get(nic)
        if known is not None:
            found[rank].nics[nic] = NicFacts(**{**vars(known), "flaps": tuple(sorted(ages))})
    return {rank: facts for rank, facts in found.items() if facts.whole}


def tell(console: Console, nics: Sequence[int], facts: Facts) -> None:
    """`nics`: of the node, in the order of their numbers."""
    for nic, (_, of_nic) in zip(nics, sorted(facts.nics.items()), strict=False):
        source, places = console.nic_words(nic), (nic_place(nic),)
        for kind, text, slower in of_nic.complaints():
            console.note(Event(at_s=0.0, source=source, text=text, kind=kind, places=places, slower=slower))
        for age_s in of_nic.flaps:
            if age_s <= HISTORY_S:
                text = "link went down and came back"
                console.note(Event(at_s=-float(age_s), source=source, text=text, kind="flap", places=places))
