"""What every page of a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
p.note { color: #666; margin: .2em 0 .6em; max-width: 70ch; } code { font-size: .95em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92em; }
th { text-align: right; font-weight: 600; border-bottom: 1px solid #bbb; padding: .2em .9em .2em 0; }
td { text-align: right; padding: .12em .9em .12em 0; } th:first-child, td:first-child { text-align: left; }
svg { max-width: 100%; height: auto; } .warning { color: #a33; }
"""


def document(title: str, parts: Sequence[str]) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def section(title: str, content: str, note: str = "") -> str:
    return f"<h2>{escape(title)}</h2>\n" + (f'<p class="note">{escape(note)}</p>\n' if note else "") + content


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
