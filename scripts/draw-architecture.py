#!/usr/bin/env python3
"""Draws the architecture as pictures (SVG), in both languages of the README: docs/pictures/architecture*.svg.

Boxes and arrows are places on a grid, written once; texts are in both languages beside each other.
"""

import html
from pathlib import Path

OUT = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH, HEIGHT = 1200, 550

STYLE = """
  svg { font: 14px system-ui, "Noto Sans CJK SC", sans-serif; }
  .ground { fill: #ffffff } .text { fill: #1d2733 } .quiet { fill: #5b6876; font-size: 12px }
  .program { fill: none; stroke: #0f766e; stroke-width: 1.5; stroke-dasharray: 6 4 } .name { fill: #0f766e; font-weight: 600 }
  .part { fill: #f2f6f8; stroke: #9fb0bd } .heart { fill: #d8efe9; stroke: #0f766e } .outside { fill: #ffffff; stroke: #9fb0bd }
  .store { fill: #fbf4e6; stroke: #c29a4b } .arrow { stroke: #5b6876; stroke-width: 1.5; fill: none; marker-end: url(#tip) }
  .tip { fill: #5b6876 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #11161c } .text { fill: #e4e9ee } .quiet { fill: #9aa7b4 }
    .program { stroke: #3fb593 } .name { fill: #3fb593 }
    .part { fill: #1b232b; stroke: #4a5866 } .heart { fill: #123a33; stroke: #3fb593 } .outside { fill: #11161c; stroke: #4a5866 }
    .store { fill: #2c2516; stroke: #a98540 } .arrow { stroke: #9aa7b4 } .tip { fill: #9aa7b4 }
  }
"""

# kind, x, y, width, height, then name and a line below it, in English and in Chinese.
BOXES = [
    ("outside", 20, 70, 190, 56, ("BitTorrent clients", "HTTP, HTTPS, UDP"), ("BT 客户端", "HTTP、HTTPS、UDP")),
    ("outside", 20, 300, 190, 56, ("Members' devices", "WebSocket, Centrifuge SDKs"), ("成员的设备", "WebSocket、Centrifuge SDK")),
    ("outside", 20, 430, 190, 56, ("Operators, your site", "browser, HTTP API"), ("运营者与站点", "浏览器、HTTP API")),
    ("part", 270, 70, 170, 56, ("tracker", "gate, limits, replies"), ("tracker", "准入、限制、回复")),
    ("part", 270, 170, 170, 56, ("swarms", "in memory, 64 shards"), ("swarm", "内存中，64 个分片")),
    ("heart", 520, 60, 190, 176, ("journal", "every accepted announce"), ("journal", "每一次被接受的 announce")),
    ("part", 780, 50, 160, 52, ("ledger", "accounts to the byte"), ("ledger", "精确到字节的账目")),
    ("part", 780, 122, 160, 52, ("activity", "seeding, leeching now"), ("activity", "此刻做种、下载")),
    ("part", 780, 194, 160, 52, ("mirror", "the keys t:*"), ("mirror", "t:* 键")),
    ("part", 270, 300, 170, 56, ("gateway", "feeds, rooms, typing"), ("gateway", "订阅、房间、输入状态")),
    ("part", 520, 300, 190, 56, ("presence", "the state machine"), ("presence", "在线状态机")),
    ("part", 780, 300, 160, 56, ("cluster", "other gateways"), ("cluster", "其他网关")),
    ("part", 270, 430, 170, 56, ("site", "API, dashboard, metrics"), ("site", "API、管理面板、指标")),
    ("part", 520, 430, 190, 56, ("access, audit", "users, torrents, keys"), ("access 与审计", "用户、种子、密钥")),
    ("store", 1010, 50, 170, 124, ("SQLite", "or PostgreSQL, MariaDB"), ("SQLite", "或 PostgreSQL、MariaDB")),
    ("store", 1010, 206, 170, 150, ("Redis", "single, Sentinel, Cluster"), ("Redis", "单机、哨兵、集群")),
]

ARROWS = [
    "M210 98 H264", "M355 126 V164", "M440 98 H514", "M710 98 H744 V76 H774", "M710 148 H774", "M710 198 H744 V220 H774",
    "M940 76 H1004", "M940 148 H1004", "M940 220 H1004", "M210 328 H264", "M440 328 H514", "M710 328 H774",
    "M940 328 H1004", "M210 458 H264", "M440 458 H514", "M355 430 V362", "M710 458 H990 V160 H1004", "M514 198 H446",
]

NOTES = [
    (615, 158, "the log; ledger, activity", "日志；右边三个"),
    (615, 176, "and mirror are its views", "是它的视图"),
    (480, 172, "entries of", "其他节点"),
    (480, 188, "other nodes", "的记录"),
    (1095, 318, "optional: for several", "可选："),
    (1095, 336, "machines and programs", "多台机器、其他程序"),
]


def box(kind, x, y, width, height, words):
    # Tall boxes have their notes below the name.
    middle, name = x + width / 2, y + (height / 2 - 3 if height < 60 else 44)
    return f"""
  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>
  <text class="text" x="{middle}" y="{name}" text-anchor="middle" font-weight="600">{html.escape(words[0])}</text>
  <text class="quiet" x="{middle}" y="{name + 18}" text-anchor="middle">{html.escape(words[1])}</text>"""


def picture(language, title, program):
    boxes = "".join(box(*row[:5], row[5 + language]) for row in BOXES)
    arrows = "".join(f'\n  <path class="arrow" d="{path}"/>' for path in ARROWS)
    notes = "".join(
        f'\n  <text class="quiet" x="{x}" y="{y}" text-anchor="middle">{html.escape(words[language])}</text>'
        for x, y, *words in NOTES
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">
  <title>{title}</title>
  <style>{STYLE}</style>
  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>
  <rect class="ground" width="100%" height="100%" rx="8"/>
  <rect class="program" x="240" y="20" width="730" height="500" rx="12"/>
  <text class="name" x="256" y="44">{program}</text>{arrows}{boxes}{notes}
</svg>
"""


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    english = picture(0, "How Rollcall is built: one log, many views", "rollcall: one program")
    chinese = picture(1, "Rollcall 的结构：一份日志，多个视图", "rollcall：一个程序")
    (OUT / "architecture.svg").write_text(english, encoding="utf-8")
    (OUT / "architecture.zh-CN.svg").write_text(chinese, encoding="utf-8")


if __name__ == "__main__":
    main()
