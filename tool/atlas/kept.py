"""What has been measured, in each application's folder: measured.json."""

from __future__ import annotations

import json
from typing import Any

from atlas.application import Application
from dryfly.base.files import write_whole


def keep(application: Application, measured: dict[str, Any]) -> None:
    text = json.dumps(measured, indent=1, ensure_ascii=False) + "\n"
    write_whole(application.folder / "measured.json", text.encode())


def measured(application: Application) -> dict[str, Any] | None:
    path = application.folder / "measured.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
