#!/usr/bin/env python3
"""Draws what `make bench ARGS="--json FILE"` measured: a bar for each row that has a budget, as a picture (SVG).

A bar shows how much of its budget a row reaches: 100 % is the budget, whichever way it is meant (a ratio or a figure
that may not be less, or may not be more). Figures of different machines are not compared: each ratio is against a limit
of the same run.

usage: plot-bench.py BENCH.json… OUT.svg      (several files of the same machine, measured part by part, make one picture)
"""

import html
import json
import sys
from pathlib import Path

WIDTH, ROW, TOP, LEFT, RIGHT = 920, 30, 84, 380, 150
FULL = 1.5  # where the axis ends: half as much again as the budget

STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .ground { fill: #ffffff } .text { fill: #1d2733 } .quiet { fill: #5b6876 } .rail { fill: #e9edf1 }
  .met { fill: #1a7f64 } .missed { fill: #b35309 } .budget { stroke: #1d2733; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #11161c } .text { fill: #e4e9ee } .quiet { fill: #9aa7b4 } .rail { fill: #232b34 }
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


def picture(bench):
    rows = [(row, share) for row in bench["rows"] if (share := reached(row)) is not None]
    rows.sort(key=lambda pair: -pair[1])
    height = TOP + ROW * len(rows) + 24
    machine = bench["machine"]
    at = LEFT + (WIDTH - LEFT - RIGHT) / FULL
    bars = "".join(bar(TOP + ROW * place, row, share) for place, (row, share) in enumerate(rows))
    met = sum(share >= 1 for _, share in rows)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">
  <title>Measured against the budgets: {met} of {len(rows)} are met</title>
  <style>{STYLE}</style>
  <rect class="ground" width="100%" height="100%" rx="8"/>
  <text class="text" x="24" y="34" font-size="18" font-weight="600">Measured against the budgets</text>
  <text class="quiet" x="24" y="56">{met} of {len(rows)} met · {machine["cores"]} cores, {html.escape(machine["processor"])} · the line is the budget</text>{bars}
  <line class="budget" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{height - 20}"/>
</svg>
"""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    *sources, target = sys.argv[1:]
    parts = [json.loads(Path(source).read_text(encoding="utf-8")) for source in sources]
    whole = {"machine": parts[0]["machine"], "rows": [row for part in parts for row in part["rows"]]}
    Path(target).write_text(picture(whole), encoding="utf-8")


if __name__ == "__main__":
    main()
