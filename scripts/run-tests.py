#!/usr/bin/env python3
"""Runs every test of the workspace, several groups of tests at a time.

`cargo test` runs one test program after the other. Most of ours wait for servers, deadlines and real clients, so a
machine with two cores idles for half of that. This builds them with cargo, then runs them side by side, those that took
longest last time first. The modules of an integration-test program (`tests/it`) are groups of their own. What a group
printed is shown only if it failed. `cargo test` alone still works.

A group that failed is run once more, alone, when all others have ended: beside other tests a machine may starve a server
or a client for longer than a test waits. A group that passes then is named in the last lines, so that it can be mended.

usage: run-tests.py [--lint] [--meanwhile COMMAND] [WORD...]
  --lint       also finds what `cargo clippy --workspace --all-targets -- -D warnings` finds, in the same pass over the code
  --meanwhile  runs this beside the build, and no test before it has succeeded
  WORD         only groups whose package, program or module contains one of the words
environment: TEST_JOBS groups at a time (default: one a core), RUST_TEST_THREADS tests at a time in each
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
    """Builds all test programs, and gives back (name, command, folder to run it in) of each group of tests."""
    command = ["cargo", "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    environment = dict(os.environ)
    if lint:
        # What `cargo clippy` does, but with `cargo test`: clippy's driver is a compiler that lints. Linting by itself would
        # go through all dependencies and all of our code once more, which takes minutes.
        command.append("--all-targets")
        environment["RUSTC_WORKSPACE_WRAPPER"] = "clippy-driver"
        environment["CLIPPY_ARGS"] = "".join(f"{word}__CLIPPY_HACKERY__" for word in ["-D", "warnings"])
    progress = BuildProgress()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as cargo:
        for line in cargo.stdout:
            message = json.loads(line) if line.startswith("{") else {}
            if message.get("reason") == "compiler-artifact":
                progress.add(message)
    if cargo.returncode != 0:
        sys.exit(cargo.returncode)
    print(f"built: {len(progress.programs)} test programs, {time.monotonic() - progress.began:.0f} s", flush=True)
    groups = []
    for message in progress.programs:
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        program = message["executable"]
        if target["name"] == "it":
            groups += [(f"{folder.name} it {module}", command, folder) for module, command in modules(program, folder)]
        else:
            groups.append((f"{folder.name} {target['kind'][0]} {target['name']}", [program], folder))
    return groups


class BuildProgress:
    """How far cargo is, as a line now and then. On a terminal cargo itself shows it."""

    PERIOD_S = 10

    def __init__(self):
        version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
        host = re.search(r"^host: (.*)$", version, re.M)[1]
        command = ["cargo", "metadata", "--format-version", "1", "--filter-platform", host]
        metadata = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        members = set(metadata["workspace_members"])
        tested = [target for package in metadata["packages"] if package["id"] in members
                  for target in package["targets"] if target["test"]]
        self.packages_count = len(metadata["resolve"]["nodes"])
        self.programs_count = len(tested)
        self.packages = set()
        self.programs = []
        self.began = self.shown = time.monotonic()

    def add(self, artifact):
        self.packages.add(artifact["package_id"])
        if artifact.get("executable") and artifact["profile"]["test"] and artifact["target"]["kind"][0] != "bench":
            self.programs.append(artifact)
        if time.monotonic() - self.shown >= self.PERIOD_S and not sys.stderr.isatty():
            self.show()

    def show(self):
        self.shown = time.monotonic()
        print(f"building: {len(self.packages)} of {self.packages_count} packages, {len(self.programs)} of "
              f"{self.programs_count} test programs, {self.shown - self.began:.0f} s", flush=True)


def modules(program, folder):
    """The modules of an integration-test program, each with the command that runs its tests."""
    listed = subprocess.run([program, "--list", "--format", "terse"], cwd=folder, capture_output=True, text=True, check=True)
    names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    groups = {}
    for name in names:
        groups.setdefault(name.partition("::")[0], []).append(name)
    return [(module, [program, "--exact", *tests]) for module, tests in groups.items()]


def known_times():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def guess(name):
    package, _, target = name.split(" ")
    return (200 if target in LONGEST else 30) if package == LONG_PACKAGE else 5


class Runs:
    """The groups that have yet to run, and what came of the others."""

    def __init__(self, groups):
        times = known_times()
        self.waiting = sorted(groups, key=lambda group: -times.get(group[0], guess(group[0])))
        self.count = len(groups)
        self.ended = 0
        self.lock = threading.Lock()
        self.times = times
        self.failed = []
        self.tests = 0
        # Of the processors, for the groups and the servers they started: what is far below the time times the
        # processors leaves room for more groups at a time.
        self.work_s = 0.0

    def is_any_long(self):
        with self.lock:
            return any(name.startswith(LONG_PACKAGE) for name, *_ in self.waiting)

    def help(self):
        """Works once only short groups wait: they leave the processors idle for half of the time."""
        while self.is_any_long():
            time.sleep(1)
        self.work()

    def work(self):
        while True:
            with self.lock:
                if not self.waiting:
                    return
                group = self.waiting.pop(0)
            self.run(group)

    def run_failed_alone(self):
        """Runs each group that failed once more. Returns those that passed now."""
        again, self.failed = self.failed, []
        for group in again:
            print(f"once more, alone: {group[0]}", flush=True)
            self.count += 1
            self.run(group)
        still = {name for name, *_ in self.failed}
        return [name for name, *_ in again if name not in still]

    def run(self, group):
        name, command, folder = group
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            running = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = code = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        seconds, work_s = time.monotonic() - began, used.ru_utime + used.ru_stime
        passed = sum(int(count) for count in re.findall(r"^test result: .*?(\d+) passed", text, re.M))
        with self.lock:
            self.ended += 1
            self.times[name] = round(seconds, 1)
            self.work_s += work_s
            place = f"{self.ended:4}/{self.count}"
            if code == 0:
                self.tests += passed
                print(f"{place}  {seconds:7.1f} s  {work_s:7.1f} s of work  {passed:4} passed  {name}", flush=True)
            else:
                self.failed.append(group)
                print(f"{text}\n{place}  {seconds:7.1f} s  FAILED (exit {code})  {name}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--lint", action="store_true")
    parser.add_argument("--meanwhile", default="true")
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def main():
    asked = arguments()
    with subprocess.Popen(asked.meanwhile, shell=True, stdin=subprocess.DEVNULL) as beside:
        groups = build(asked.lint)
        if beside.poll() is None:
            print(f"waiting for: {asked.meanwhile}", flush=True)
    if beside.returncode != 0:
        sys.exit(f"failed: {asked.meanwhile}")
    groups = [group for group in groups if not asked.words or any(word in group[0] for word in asked.words)]
    # Programs of gigabytes were written just now. Databases wait for the disk, and would wait for all of that.
    os.sync()
    runs = Runs(groups)
    jobs = int(os.environ.get("TEST_JOBS") or os.cpu_count() or 1)
    print(f"running {len(groups)} groups of tests, {jobs} at a time", flush=True)
    began = time.monotonic()
    workers = [threading.Thread(target=runs.work) for _ in range(jobs)]
    workers += [threading.Thread(target=runs.help) for _ in range(jobs // 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    passed_alone = runs.run_failed_alone()
    TIMES.write_text(json.dumps(runs.times, indent=1, sort_keys=True))
    seconds = time.monotonic() - began
    print(f"\n{runs.tests} tests passed in {len(groups)} groups, {seconds:.0f} s ({runs.work_s:.0f} s of work)")
    if passed_alone:
        print("failed beside others, passed alone: " + ", ".join(sorted(passed_alone)))
    if runs.failed:
        sys.exit("failed: " + ", ".join(sorted(name for name, *_ in runs.failed)))


if __name__ == "__main__":
    main()
