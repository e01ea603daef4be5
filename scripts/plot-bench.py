#!/usr/bin/env python3
"""Draws what `make bench ARGS="--json FILE"` measured, as two pictures (SVG).

OUT.svg: a bar for each row that has a budget. A bar shows how much of its budget a row reaches: 100 % is the budget, whichever way it is meant (a ratio or a figure
that may not be less, or may not be more). Figures of different machines are not compared: each ratio is against a limit
of the same run.

ALL_IN.svg: the processor time of an announce all in, part by part, for each server that was measured.

usage: plot-bench.py BENCH.json… OUT.svg ALL_IN.svg      (several files of the same machine, measured part by part, make one picture)
"""

import html
import json
import sys
from pathlib import Path

WIDTH, ROW, TOP, LEFT, RIGHT = 920, 30, 84, 380, 150
PARTS_NAMED = 4
FULL = 1.5  # where the axis ends: half as much again as the budget

STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .ground { fill: #ffffff } .text { fill: #1d2733 } .quiet { fill: #5b6876 } .rail { fill: #e9edf1 }
  .part0 { fill: #1a7f64 } .part1 { fill: #2f6fb0 } .part2 { fill: #b35309 } .part3 { fill: #8250a8 } .part4 { fill: #7c8794 }
  .met { fill: #1a7f64 } .missed { fill: #b35309 } .budget { stroke: #1d2733; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #11161c } .text { fill: #e4e9ee } .quiet { fill: #9aa7b4 } .rail { fill: #232b34 }
    .part0 { fill: #3fb593 } .part1 { fill: #6ea8e0 } .part2 { fill: #e08a3c } .part3 { fill: #b58ad6 } .part4 { fill: #8b97a5 }
    .met { fill: #3fb593 } .missed { fill: #e08a3c } .budget { stroke: #e4e9ee }
  }
"""


def reached(row):
    """How much of its budget a row reaches, or None if it has none or was not judged."""
    budget, figure, ratio = row["budget"] or {}, row["figure"], row["ratio"]
    if row["verdict"] in ("not_judged", "no_budget"):
        return None
    for name, bound in budget.items():
        measured = ratio if name.startswith("ratio") else figure
        if measured is None or not bound or not measured:
            return None
        return measured / bound if name.endswith("at_least") else bound / measured
    return None


def value_text(row):
    """The row's own figure, and its budget, in words."""
    (name, bound), = row["budget"].items()
    if name.startswith("ratio"):
        word = "≥" if name.endswith("at_least") else "≤"
        return f"{row['ratio']:.2f}  ({word} {bound:g})"
    word = "≥" if name.endswith("at_least") else "≤"
    return f"{row['figure']:,.0f} {row['unit']}  ({word} {bound:g})"


def bar(y, row, share):
    """One row of the picture."""
    room = WIDTH - LEFT - RIGHT
    length = room * min(share, FULL) / FULL
    kind = "met" if share >= 1 else "missed"
    mark = "✓" if share >= 1 else f"{share:.0%}"
    return f"""
  <text class="text" x="{LEFT - 12}" y="{y + 19}" text-anchor="end">{html.escape(row["what"])}</text>
  <rect class="rail" x="{LEFT}" y="{y + 7}" width="{room}" height="16" rx="3"/>
  <rect class="{kind}" x="{LEFT}" y="{y + 7}" width="{length:.1f}" height="16" rx="3"/>
  <text class="text" x="{LEFT + room + 10}" y="{y + 19}">{html.escape(value_text(row))} {mark}</text>"""


def head(bench, height, title, subtitle):
    """The beginning of a picture, with its title."""
    machine = bench["machine"]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">
  <title>{html.escape(title)}: {html.escape(subtitle)}</title>
  <style>{STYLE}</style>
  <rect class="ground" width="100%" height="100%" rx="8"/>
  <text class="text" x="24" y="34" font-size="18" font-weight="600">{html.escape(title)}</text>
  <text class="quiet" x="24" y="56">{html.escape(subtitle)} · {machine["cores"]} cores, {html.escape(machine["processor"])}</text>"""


def all_in(bench):
    """Stacked bars: where the processor time of an announce goes."""
    rows = [row for row in bench["rows"] if row["parts_us"]]
    total = {}
    for row in rows:
        for part, us in row["parts_us"]:
            total[part] = total.get(part, 0) + us
    named = sorted(total, key=total.get, reverse=True)[:PARTS_NAMED]
    longest = max((sum(us for _, us in row["parts_us"]) for row in rows), default=1)
    room = WIDTH - LEFT - RIGHT
    body = ""
    for place, row in enumerate(rows):
        y, x = TOP + ROW * (place + 1), LEFT
        body += f"""
  <text class="text" x="{LEFT - 12}" y="{y + 19}" text-anchor="end">{html.escape(row["what"])}</text>"""
        parts = {part: us for part, us in row["parts_us"] if part in named}
        rest = sum(us for part, us in row["parts_us"] if part not in named)
        for number, us in [*((named.index(part), us) for part, us in parts.items()), (PARTS_NAMED, rest)]:
            length = room * us / longest
            body += f"""
  <rect class="part{number}" x="{x:.1f}" y="{y + 7}" width="{length:.1f}" height="16"/>"""
            x += length
        us = sum(us for _, us in row["parts_us"])
        body += f"""
  <text class="text" x="{x + 8:.1f}" y="{y + 19}">{us:.0f} µs; {row["figure"]:,.0f} /s, {row["ratio"] or 0:.2f} of the limit</text>"""
    for number, part in enumerate([*named, "other"]):
        x = 24 + number * 150
        body += f"""
  <rect class="part{number}" x="{x}" y="{TOP - 10}" width="12" height="12"/>
  <text class="text" x="{x + 18}" y="{TOP}">{html.escape(part)}</text>"""
    title, subtitle = "Processor time of an announce, all in", "everything on one core, by thread or server; backlog drained"
    return head(bench, TOP + ROW * (len(rows) + 1) + 24, title, subtitle) + body + "\n</svg>\n"


def picture(bench):
    rows = [(row, share) for row in bench["rows"] if (share := reached(row)) is not None]
    rows.sort(key=lambda pair: -pair[1])
    height = TOP + ROW * len(rows) + 24
    at = LEFT + (WIDTH - LEFT - RIGHT) / FULL
    bars = "".join(bar(TOP + ROW * place, row, share) for place, (row, share) in enumerate(rows))
    met = sum(share >= 1 for _, share in rows)
    subtitle = f"{met} of {len(rows)} met · the line is the budget"
    line = f"""
  <line class="budget" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{height - 20}"/>
</svg>
"""
    return head(bench, height, "Measured against the budgets", subtitle) + bars + line


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    *sources, target, all_in_target = sys.argv[1:]
    parts = [json.loads(Path(source).read_text(encoding="utf-8")) for source in sources]
    whole = {"machine": parts[0]["machine"], "rows": [row for part in parts for row in part["rows"]]}
    Path(target).write_text(picture(whole), encoding="utf-8")
    Path(all_in_target).write_text(all_in(whole), encoding="utf-8")


if __name__ == "__main__":
    main()
