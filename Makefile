# `make` alone lists the targets.

# The data folder of `make run`, and further arguments of the server: make run ARGS="--config rollcall.toml".
DATA ?= ./data
ARGS ?=
# Number of kills under `make chaos`.
CHAOS_KILLS ?= 300
# Tests of one program that run at the same time. More than cores, because most of them wait for servers.
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# Test programs that run at the same time.
TEST_JOBS ?= $(shell nproc)
# Sessions under `make load`. Each is an open file, of the server and of the test.
LOAD_SESSIONS ?= 15000
# Users under `make gateways`, and for how many seconds failures are injected.
GATEWAYS_USERS ?= 3000
GATEWAYS_S ?= 300
# Seconds per fuzz target under `make fuzz`.
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help run demo web test docs chaos load gateways deadlines lint bench fuzz deb screenshots scale toolchain compiler

help: ## list the targets
	@echo "make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

run: compiler ## build for speed and start the server (DATA=./data, ARGS="--config FILE")
	./scripts/web.sh --optional
	cargo build --release --package rollcall
	./target/release/rollcall serve --data "$(DATA)" $(ARGS)

demo: compiler ## build for speed and start a server with simulated peers and users (ARGS="--members 200 --pace 2")
	./scripts/web.sh --optional
	cargo build --release --package rollcall
	./target/release/rollcall demo $(ARGS)

web: ## build the dashboard into web/dist, if its sources have changed (needs Node)
	./scripts/web.sh

test: toolchain ## install what the tests need, then check documents, format and lints, and run every test
	@echo "step 1 of 5: install what the build needs"
	./scripts/install-test-needs.sh --to-build
	@echo "step 2 of 5: check the documents"
	./scripts/check-docs.py
	@echo "step 3 of 5: build the dashboard"
	./scripts/web.sh
	@echo "step 4 of 5: check the format"
	cargo fmt --all --check
	@echo "step 5 of 5: build, lint and run every test; beside the build, install what the tests need and check the dashboard"
	RUST_TEST_THREADS=$(TEST_THREADS) TEST_JOBS=$(TEST_JOBS) ./scripts/run-tests.py --lint \
	  --meanwhile "./scripts/install-test-needs.sh && npm --prefix web run --silent check"

docs: compiler ## write docs/commands.md, docs/configuration.md and deploy/prometheus/alerts.yml from the program
	ROLLCALL_WRITE_DOCS=1 cargo test --package rollcall --test it commands::reference::
	ROLLCALL_WRITE_DOCS=1 cargo test --package site --test it metrics::files::alerts_file

chaos: compiler ## kill servers at random while clients announce, and check every byte (CHAOS_KILLS=300, CHAOS_SEED=N)
	CHAOS_KILLS=$(CHAOS_KILLS) cargo test --package rollcall --test it chaos:: -- --nocapture

load: compiler ## many sessions at once: reconnect storm, churn, kill and restart (LOAD_SESSIONS=15000)
	LOAD_SESSIONS=$(LOAD_SESSIONS) cargo test --release --package rollcall --test it crowd:: -- --nocapture --test-threads=1

gateways: compiler ## three gateways, thousands of users, injected failures: check every status shown (GATEWAYS_S=300, ROLLCALL_SEED=N)
	LOAD_SESSIONS=$(GATEWAYS_USERS) GATEWAYS_S=$(GATEWAYS_S) cargo test --release --package rollcall --test it many_gateways::random_history:: -- --nocapture --test-threads=1

deadlines: toolchain ## check the requirements that name a second, with exact deadlines, on an idle machine
	ROLLCALL_DEADLINES=1 cargo test --package access --test it follow:: -- --test-threads=1
	ROLLCALL_DEADLINES=1 cargo test --package rollcall --test it presence_clients:: -- --test-threads=1

lint: compiler ## check format, lints, words and links of the documents
	./scripts/check-docs.py
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

scale: compiler ## time every page of the dashboard with 100,000 torrents and 50,000 users
	./scripts/web.sh
	cargo build --release --package rollcall
	cd web && node scripts/scale.mjs ../target/release/rollcall

# `test` needs only the first: it installs the compiler.
toolchain:
	@command -v cargo >/dev/null || { \
	  echo "error: cargo is not installed: install Rust (https://www.rust-lang.org/tools/install), open a new shell, try again" >&2; \
	  exit 1; }

compiler: toolchain
	@command -v cc >/dev/null || { \
	  echo "error: no C compiler: run ./scripts/install-test-needs.sh, or apt-get install build-essential" >&2; \
	  exit 1; }
