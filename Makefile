# SPDX-License-Identifier: Apache-2.0
# What a person types. Each target installs what it needs first (tools/setup; nothing once there).

FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help build check test demo bench format lint fuzz coverage clean
MAKEFLAGS += --no-print-directory

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, optimised: build/knut
	@tools/setup build
	@tools/build release

check: ## the inner loop: debug build and the unit tests that are quick
	@tools/setup build
	@tools/build dev
	@ctest --preset dev -j "$$(nproc)" -LE slow

test: ## every test and check that there is (what CI runs)
	@tools/test

demo: build ## the main job on real data: flights -> Iceberg -> DuckDB; a pipeline over them
	@tools/setup demo
	@tools/demo

bench: build ## speed and memory, as ratios to DuckDB itself and to other catalog servers
	@tools/setup test
	@bench/run
	@bench/doris
	@bench/catalog

format: ## clang-format every C file
	@tools/setup test
	@tools/format

lint: ## format, layers, headers, banned calls, sizes, docs, cppcheck, clang-tidy
	@tools/setup test
	@tools/lint

fuzz: ## each fuzz target for FUZZ_SECONDS (60)
	@tools/setup test
	@tools/fuzz $(FUZZ_SECONDS)

coverage: ## line coverage of the unit tests: build/coverage/html
	@tools/setup test
	@tools/coverage

clean: ## remove build/ (what tools/setup fetched stays in .deps/)
	rm -rf build
