# Everything there is to type. `make` alone lists it.

# Where `make run` keeps its database, and what else to pass to the server: make run ARGS="--config rollcall.toml".
DATA ?= ./data
ARGS ?=
# How often servers are killed under `make chaos`.
CHAOS_KILLS ?= 300
# How many tests of one file run at the same time: most of them wait for servers, so more than there are cores.
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# How many test programs run at the same time, with so many tests each.
TEST_JOBS ?= $(shell nproc)
# How many people there are under `make load`. Each is an open file, of the server and of the test.
LOAD_SESSIONS ?= 15000
# How many people there are under `make gateways`, and for how long things break.
GATEWAYS_PEOPLE ?= 3000
GATEWAYS_S ?= 300
# How long each fuzz target runs under `make fuzz`.
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help run demo web test chaos load gateways promises lint bench fuzz deb screenshots scale toolchain compiler

help: ## list what can be made
	@echo "make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

run: compiler ## build for speed and start the server (DATA=./data, ARGS="--config FILE")
	./scripts/web.sh --optional
	cargo build --release --package rollcall
	./target/release/rollcall serve --data "$(DATA)" $(ARGS)

demo: compiler ## build for speed and start a server with a living world in it (ARGS="--people 200 --pace 2")
	./scripts/web.sh --optional
	cargo build --release --package rollcall
	./target/release/rollcall demo $(ARGS)

web: ## build the dashboard into web/dist, if its sources have changed (needs Node)
	./scripts/web.sh

test: toolchain ## install what the tests need, then check format and lints and run every test
	./scripts/install-test-needs.sh --to-build
	./scripts/web.sh
	cargo fmt --all --check
	RUST_TEST_THREADS=$(TEST_THREADS) TEST_JOBS=$(TEST_JOBS) ./scripts/run-tests.py --lint \
	  --meanwhile "./scripts/install-test-needs.sh && npm --prefix web run --silent check"

chaos: compiler ## kill servers at random while clients announce, and check every byte (CHAOS_KILLS=300, CHAOS_SEED=N)
	CHAOS_KILLS=$(CHAOS_KILLS) cargo test --package rollcall --test chaos -- --nocapture

load: compiler ## many people at once: reconnect storm, churn, kill and restart (LOAD_SESSIONS=15000)
	LOAD_SESSIONS=$(LOAD_SESSIONS) cargo test --release --package rollcall --test crowd -- --nocapture --test-threads=1

gateways: compiler ## three gateways, thousands of people, everything breaking: is what is shown true? (GATEWAYS_S=300, ROLLCALL_SEED=N)
	LOAD_SESSIONS=$(GATEWAYS_PEOPLE) GATEWAYS_S=$(GATEWAYS_S) cargo test --release --package rollcall --test many_gateways -- --nocapture --test-threads=1 random_history

promises: toolchain ## what is promised within a second, asked for to the second: for a machine that does nothing else
	ROLLCALL_PROMISES=1 cargo test --package access --test follow -- --test-threads=1
	ROLLCALL_PROMISES=1 cargo test --package rollcall --test presence_clients -- --test-threads=1

lint: compiler ## check format and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: compiler ## measure announces, journal, views and gateway against their limits (ARGS="--quick", ARGS="--json FILE")
	./scripts/bench.sh $(ARGS)

fuzz: compiler ## feed random bytes to every parser (FUZZ_SECONDS=60 for each)
	./scripts/fuzz.sh $(FUZZ_SECONDS)

deb: compiler ## build the Debian package (in target/debian)
	./scripts/web.sh --optional
	cargo build --release --package rollcall
	./scripts/deb.sh --binary target/release/rollcall --out target/debian

screenshots: compiler ## take the pictures of the README from a demo (LIFE_S=150)
	./scripts/web.sh
	cargo build --release --package rollcall
	./scripts/screenshots.sh target/release/rollcall

scale: compiler ## the dashboard with 100,000 torrents and 50,000 people: is every page still quick?
	./scripts/web.sh
	cargo build --release --package rollcall
	cd web && node scripts/scale.mjs ../target/release/rollcall

# `test` does without the second: it installs the compiler.
toolchain:
	@command -v cargo >/dev/null || { \
	  echo "error: cargo is not installed: install Rust (https://www.rust-lang.org/tools/install), open a new shell, try again" >&2; \
	  exit 1; }

compiler: toolchain
	@command -v cc >/dev/null || { \
	  echo "error: no C compiler: run ./scripts/install-test-needs.sh, or apt-get install build-essential" >&2; \
	  exit 1; }
