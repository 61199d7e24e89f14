"""Which hosts share a switch, and which switches a group, by a file in the form of Slurm's topology.conf, or of what
`scontrol show topology` prints. Cables are not told, so none is measured by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.validate import nodelist
from dryfly.validate.wiring import Wiring


def wiring(hosts: Sequence[str], nics: int, file: str | None) -> Wiring:
    """Node n is the n-th host. `nics` of each; without a file all are on one switch. Raises UserError."""
    switches = ["all"] * len(hosts) if file is None else _switches(hosts, file)
    groups = {"all": ""} if file is None else _groups(file)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(switches))}
    group_numbers = {name: number for number, name in enumerate(dict.fromkeys(groups[name] for name in numbers))}
    return Wiring(
        node_of_nic=tuple(node for node in range(len(hosts)) for _ in range(nics)),
        switch_of_nic=tuple(numbers[switch] for switch in switches for _ in range(nics)),
        group_of_switch=tuple(group_numbers[groups[name]] for name in numbers),
        cables=(),
        nics_of_node={node: tuple(range(node * nics, (node + 1) * nics)) for node in range(len(hosts))},
    )


def _rows(file: str) -> list[dict[str, str]]:
    """Keys in lower case, as Slurm does not tell them apart."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"--topology {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"--topology {file}: it is no text; accepted is a file like Slurm's topology.conf") from None
    rows = []
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        words = line.partition("#")[0].split()
        row = {word.partition("=")[0].lower(): word.partition("=")[2] for word in words}
        if words and ("switchname" not in row or not {"nodes", "switches"} & set(row)):
            raise UserError(
                f'--topology {file}, line {number}: "{line.strip()}"; accepted is SwitchName=NAME Nodes=LIST or '
                "SwitchName=NAME Switches=LIST"
            )
        if words:
            rows.append(row)
    return rows


def _listed(text: str, file: str) -> list[str]:
    try:
        return nodelist.names(text)
    except ValueError as error:
        raise UserError(f"--topology {file}: {error} is no list of names, such as n[01-04],n7") from None


def _switches(hosts: Sequence[str], file: str) -> list[str]:
    """Of each host the leaf switch: of a switch that has others below it `scontrol` lists all hosts as well."""
    switch_of: dict[str, str] = {}
    for row in _rows(file):
        if "switches" in row:
            continue
        for host in _listed(row["nodes"], file):
            if switch_of.setdefault(host, row["switchname"]) != row["switchname"]:
                raise UserError(
                    f"--topology {file}: {host} is at {switch_of[host]} and {row['switchname']}; accepted is one switch"
                )
    for host in hosts:
        if host not in switch_of:
            raise UserError(f"--topology {file}: no switch has {host}; accepted is a file with all hosts")
    return [switch_of[host] for host in hosts]


def _groups(file: str) -> dict[str, str]:
    """Of each leaf the switch above it; those that have none are of one group."""
    above: defaultdict[str, str] = defaultdict(str)
    for row in _rows(file):
        for switch in _listed(row["switches"], file) if "switches" in row else ():
            if above.setdefault(switch, row["switchname"]) != row["switchname"]:
                raise UserError(
                    f"--topology {file}: {switch} is below {above[switch]} and {row['switchname']}; accepted is one"
                )
    return above
