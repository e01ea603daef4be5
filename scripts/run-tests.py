#!/usr/bin/env python3
"""Runs every test of the workspace, several test programs at a time.

`cargo test` runs one test program after the other. Most of ours wait for servers, deadlines and real clients, so a
machine with two cores idles for half of that. This builds them with cargo, then runs them side by side, those that took
longest last time first. What a program printed is shown only if it failed. `cargo test` alone still works.

usage: run-tests.py [--lint] [--meanwhile COMMAND] [WORD...]
  --lint       also finds what `cargo clippy --workspace --all-targets -- -D warnings` finds, in the same pass over the code
  --meanwhile  runs this beside the build, and no test before it has succeeded
  WORD         only programs whose package or target contains one of the words
environment: TEST_JOBS programs at a time (default: one a core), RUST_TEST_THREADS tests at a time in each
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
# How long each took the last time. Lost with the target folder, which costs nothing but the order.
TIMES = TARGET / "test-times.json"
# Where that is not known: the server's own suites are the long ones, and these the longest of them, so that none of these
# is the last to begin.
LONG_PACKAGE = "rollcall"
LONGEST = ["dashboard", "many_gateways", "contract", "conservation", "chaos", "presence_clients", "many_processes"]


def build(lint):
    """Builds all test programs, and gives back (name, program, folder to run it in) of each."""
    command = ["cargo", "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    environment = dict(os.environ)
    if lint:
        # What `cargo clippy` does, but with `cargo test`: clippy's driver is a compiler that lints. Linting by itself would
        # go through all dependencies and all of our code once more, which takes minutes.
        command.append("--all-targets")
        environment["RUSTC_WORKSPACE_WRAPPER"] = "clippy-driver"
        environment["CLIPPY_ARGS"] = "".join(f"{word}__CLIPPY_HACKERY__" for word in ["-D", "warnings"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as cargo:
        messages = [json.loads(line) for line in cargo.stdout if line.startswith("{")]
    if cargo.returncode != 0:
        sys.exit(cargo.returncode)
    programs = []
    for message in messages:
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        if not message["profile"]["test"]:
            continue
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        if target["kind"][0] == "bench":
            continue
        name = f"{folder.name} {target['kind'][0]} {target['name']}"
        programs.append((name, message["executable"], folder))
    return programs


def known_times():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def guess(name):
    package, _, target = name.split(" ")
    return (200 if target in LONGEST else 30) if package == LONG_PACKAGE else 5


class Runs:
    """The programs that have yet to run, and what came of the others."""

    def __init__(self, programs):
        times = known_times()
        self.waiting = sorted(programs, key=lambda program: -times.get(program[0], guess(program[0])))
        self.lock = threading.Lock()
        self.times = times
        self.failed = []
        self.tests = 0
        # Of the processors, for the programs and the servers they started: what is far below the time times the
        # processors leaves room for more programs at a time.
        self.work_s = 0.0

    def is_any_long(self):
        with self.lock:
            return any(name.startswith(LONG_PACKAGE) for name, *_ in self.waiting)

    def help(self):
        """Works once only short programs wait: they leave the processors idle for half of the time."""
        while self.is_any_long():
            time.sleep(1)
        self.work()

    def work(self):
        while True:
            with self.lock:
                if not self.waiting:
                    return
                name, program, folder = self.waiting.pop(0)
            began = time.monotonic()
            with tempfile.TemporaryFile() as output:
                running = subprocess.Popen(
                    [program], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
                _, status, used = os.wait4(running.pid, 0)
                running.returncode = code = os.waitstatus_to_exitcode(status)
                output.seek(0)
                text = output.read().decode(errors="replace")
            self.note(name, code, (time.monotonic() - began, used.ru_utime + used.ru_stime), text)

    def note(self, name, code, took, text):
        seconds, work_s = took
        passed = sum(int(count) for count in re.findall(r"^test result: .*?(\d+) passed", text, re.M))
        with self.lock:
            self.times[name] = round(seconds, 1)
            self.tests += passed
            self.work_s += work_s
            if code == 0:
                print(f"{seconds:7.1f} s  {work_s:7.1f} s of work  {passed:4} passed  {name}", flush=True)
            else:
                self.failed.append(name)
                print(f"{text}\n{seconds:7.1f} s  FAILED (exit {code})  {name}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--lint", action="store_true")
    parser.add_argument("--meanwhile", default="true")
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def main():
    asked = arguments()
    with subprocess.Popen(asked.meanwhile, shell=True, stdin=subprocess.DEVNULL) as beside:
        programs = build(asked.lint)
    if beside.returncode != 0:
        sys.exit(f"failed: {asked.meanwhile}")
    programs = [p for p in programs if not asked.words or any(word in p[0] for word in asked.words)]
    # Programs of gigabytes were written just now. Databases wait for the disk, and would wait for all of that.
    os.sync()
    runs = Runs(programs)
    jobs = int(os.environ.get("TEST_JOBS") or os.cpu_count() or 1)
    began = time.monotonic()
    workers = [threading.Thread(target=runs.work) for _ in range(jobs)]
    workers += [threading.Thread(target=runs.help) for _ in range(jobs // 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    TIMES.write_text(json.dumps(runs.times, indent=1, sort_keys=True))
    seconds = time.monotonic() - began
    print(f"\n{runs.tests} tests passed in {len(programs)} programs, {seconds:.0f} s ({runs.work_s:.0f} s of work)")
    if runs.failed:
        sys.exit("failed: " + ", ".join(sorted(runs.failed)))


if __name__ == "__main__":
    main()
