# Everything a fresh Debian machine needs: `make test` and `make demo` set up what is missing and then run.
# State that can be thrown away: .venv (Python), $(MILLSTREAM_CACHE) or .cache (jars, stamps). `make clean` does.

# Distributions build their Python with profile-guided optimization, version managers often do not: a tenth of the
# server's CPU. So the system's is taken where it will do; PYTHON=... for another.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
export MILLSTREAM_CACHE := $(abspath $(or $(MILLSTREAM_CACHE),.cache))
# Most tests wait for something; a file stays with one worker, which has its own server, Spark session and stores.
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder
STAMPS := $(MILLSTREAM_CACHE)/stamps
VENV_STAMP := $(VENV)/.installed
SYSTEM_STAMP := $(STAMPS)/system-packages

.DEFAULT_GOAL := help
.PHONY: help setup venv system jars check test test-millstream test-apache-kafka demo bench bench-peers format clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

setup: system venv jars  ## Install all that the tests need: Debian packages, the virtual environment, jars

system: $(SYSTEM_STAMP)

$(SYSTEM_STAMP): scripts/system_packages.sh
	scripts/system_packages.sh
	@mkdir -p $(@D) && touch $@

venv: $(VENV_STAMP)

# pip older than 25.1 does not know dependency groups, so pip itself comes first.
$(VENV_STAMP): pyproject.toml | $(SYSTEM_STAMP)
	@echo "Setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on --editable . --group dev
	@touch $@

jars: venv system
	$(BIN)/python scripts/fetch_jars.py --cache $(MILLSTREAM_CACHE)

check: venv  ## ruff (lint and format) and mypy in strict mode
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup check test-millstream test-apache-kafka  ## All set-up, all checks, all tests

test-millstream: setup  ## Every test; those suites on Millstream
	$(PYTEST)

test-apache-kafka: setup  ## The behaviour, client and command suites and the core of the pipelines on Apache Kafka, started from its jars
	$(PYTEST) tests/behaviour tests/clients tests/commands tests/pipelines/running --bootstrap-servers apache-kafka

demo: venv  ## See it at work: clicks made, saved by two groups in two stores, and a report, in less than two minutes
	$(BIN)/millstream example run clicks

# A quick look must not replace the page of the docs.
bench: jars  ## Millstream beside Apache Kafka, in about 20 minutes; ARGS=--quick for 3
	$(BIN)/python -m bench $(or $(ARGS),--page docs/performance.md)

# Without link-time optimisation, which would take three times as long.
bench-peers:  ## Build the server in Rust that the benchmark can be run beside, in about 8 minutes; needs cargo
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR=$(MILLSTREAM_CACHE)/bench/target \
		cargo install --locked --no-default-features --features dynostore --root $(MILLSTREAM_CACHE)/bench/tansu-0.6.0 tansu@0.6.0
	rm -rf $(MILLSTREAM_CACHE)/bench/target

format: venv  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environment, the cache and what the tools leave behind
	rm -rf $(VENV) .cache bench-results millstream-examples .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
