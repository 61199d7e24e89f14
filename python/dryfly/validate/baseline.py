"""The figures of an earlier run in which nothing was found, as what is expected now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.validate.asked import Asked
from dryfly.validate.judge import Figures
from dryfly.validate.plan import Sizes
from dryfly.validate.subject import Subject

HOW = ("network", "sets", "mpi")  # of a run: what has to be the same


def read(path: Path, asked: Asked, subject: Subject, sizes: Sizes, *, same: Sequence[str] = HOW) -> Figures:
    """Of what --json has written. Raises UserError where it is none, or not of such a run of the same nodes."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        of = {"machine": content["machine"], "sizes": content["sizes"]}
        rows = {(str(measure), str(place)): float(time_s) for measure, place, time_s in content["figures"]}
        good = content["result"] == "pass"
        how = {name: content[name] for name in same}
        nodes = {*content["use"]["nodes"], *content["exclude"]["nodes"]}
        levels = [level["name"] for level in content["levels"]]
    except OSError as error:
        raise UserError(f"--baseline {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"--baseline {path}: accepted is what --json of a validation has written") from None
    if of["machine"] != subject.name:
        raise UserError(f"--baseline {path}: it is of {of['machine']}, and this is {subject.name}")
    if not good:
        raise UserError(f"--baseline {path}: something was found in it; accepted is a run in which nothing was")
    for name, value in how.items():
        own = getattr(asked, name)
        if value != (list(own) if name == "sets" else own):
            its, this = (", ".join(each) or "none" if name == "sets" else str(each) for each in (value, own))
            raise UserError(f"--baseline {path}: it has {name} {its}, and this {this}; accepted is the same")
    if nodes != {subject.console.node_name(node) for node in subject.nodes}:
        raise UserError(f"--baseline {path}: it is of {len(nodes)} nodes that are not these {len(subject.nodes)}")
    if asked.level not in levels:
        raise UserError(
            f"--baseline {path}: it ends with level {levels[-1]}; accepted is --level {levels[-1]}, or one below"
        )
    if of["sizes"] != asdict(sizes):
        raise UserError(f"--baseline {path}: it was measured with other sizes than data/validate.toml has now")
    return rows
