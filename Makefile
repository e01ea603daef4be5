.PHONY: test lint
test: lint
	cargo test --workspace
lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
