#!/usr/bin/env python3
"""Checks words and links, as part of `make test`.

- Vague words (VAGUE) in sources, dashboard and documents: at most the levels below. Lower a level when a count has fallen.
- Relative links and anchors in Markdown: the file and the heading must exist.
- Length of README and ARCHITECTURE: at most the levels below.

Prints the counts; exit code 1 if anything is above its level or a link is dead.
"""

import re
import sys
from pathlib import Path

# The levels that were reached. They only go down.
VAGUE_WORDS_MAX = {"crates/*/src": 0, "crates/*/tests": 0, "web/src": 0, "clients": 0, "documents": 0}
WORDS_MAX = {"README.md": 1500, "ARCHITECTURE.md": 3500}

VAGUE = re.compile(r"(?<![a-z])(somebody|nobody|whoever|everybody|anybody|someone|whom)(?![a-z])", re.IGNORECASE)
# `nobody` is a value of the privacy settings: "nobody", Audience::Nobody, the variant, and its error message.
AUDIENCE = re.compile(r"""(["'`])nobody\b|\b\w+::Nobody\b|^ +Nobody(?: = "nobody")?,$|friends or nobody""", re.MULTILINE)
SUFFIXES = {".rs", ".lua", ".sql", ".ts", ".tsx", ".css", ".mjs", ".js", ".py"}
# Generated from sources, where their words are counted already.
GENERATED = {"docs/commands.md", "docs/configuration.md", "web/src/api/schema.d.ts"}

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"""\]\(([^)\s]+)\)|(?:src|href|srcset)="([^"]+)\"""")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def documents():
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield ROOT / "web/README.md"


def prose(text):
    """Without fenced blocks and code spans."""
    return CODE_SPAN.sub("", FENCE.sub("", text))


def count_vague(texts):
    return sum(len(VAGUE.findall(AUDIENCE.sub("", text))) for text in texts)


def sources(pattern):
    for folder in sorted(ROOT.glob(pattern)):
        for path in sorted(folder.rglob("*")):
            is_source = path.is_file() and path.suffix in SUFFIXES and "node_modules" not in path.parts
            if is_source and path.relative_to(ROOT).as_posix() not in GENERATED:
                yield path.read_text(encoding="utf-8")


def written_prose():
    # The changelog is a record: its old entries stay as they were written.
    skipped = GENERATED | {"CHANGELOG.md"}
    for path in documents():
        if path.relative_to(ROOT).as_posix() not in skipped:
            yield prose(path.read_text(encoding="utf-8"))


def anchors(path, cache={}):
    """The anchors that GitHub makes of a page's headings."""
    if path not in cache:
        cache[path] = seen = set()
        for heading in HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            anchor = base = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            number = 0
            while anchor in seen:
                number += 1
                anchor = f"{base}-{number}"
            seen.add(anchor)
    return cache[path]


def dead_links(path):
    for groups in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        link = groups[0] or groups[1]
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{path.relative_to(ROOT)}: no file {link}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{path.relative_to(ROOT)}: no heading {link}"


def main():
    failures = [failure for path in documents() for failure in dead_links(path)]
    counts = {
        "crates/*/src": count_vague(sources("crates/*/src")),
        "crates/*/tests": count_vague(sources("crates/*/tests")),
        "web/src": count_vague(sources("web/src")),
        "clients": count_vague(sources("clients")),
        "documents": count_vague(written_prose()),
    }
    levels = [(f"vague words in {name}", count, VAGUE_WORDS_MAX[name]) for name, count in counts.items()]
    for name, most in WORDS_MAX.items():
        levels.append((f"words in {name}", len((ROOT / name).read_text(encoding="utf-8").split()), most))
    for name, count, most in levels:
        print(f"{name}: {count} (at most {most})")
        if count > most:
            failures.append(f"{name}: {count}, more than {most}")
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
