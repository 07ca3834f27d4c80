# SPDX-License-Identifier: BSD-2-Clause
# The developer's front door; Meson and ninja do the work. On a bare Debian 12, Debian 13 or
# Ubuntu 24.04 every target first installs what it lacks (scripts/deps.sh).
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SEED ?= 1
T ?= 60

.PHONY: all build demo check check-long asan tsan sim fuzz bench clients tidy format install clean

all: build

# What a user needs; the targets that test build the rest.
build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) product

$(BUILD)/build.ninja:
	@scripts/deps.sh build
	@meson setup $(BUILD) --prefix "$(PREFIX)" $(MESON_FLAGS)

demo:
	@scripts/deps.sh demo
	@$(MAKE) --no-print-directory build
	@BUILD=$(BUILD) scripts/demo.sh

check:
	@BUILD=$(BUILD) scripts/check.sh

check-long:
	@BUILD=$(BUILD) scripts/check.sh --long

asan:
	@BUILD=build-asan MESON_FLAGS="-Db_lundef=false -Db_sanitize=address,undefined" \
		scripts/check.sh unit sim fuzz clients

tsan:
	@BUILD=build-tsan MESON_FLAGS="-Db_lundef=false -Db_sanitize=thread" \
		scripts/check.sh unit sim clients

sim: build
	@ninja -C $(BUILD) -j $(JOBS) tests/sim/sim
	@$(BUILD)/tests/sim/sim "$(SEED)"

fuzz:
	@T=$(T) scripts/fuzz.sh

bench:
	@scripts/deps.sh bench
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)
	@BUILD=$(BUILD) bench/bench.py

clients:
	@BUILD=$(BUILD) scripts/check.sh clients

tidy:
	@BUILD=$(BUILD) scripts/check.sh tidy

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

install:
	@BUILD="$(BUILD)" PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" MAKE="$(MAKE)" scripts/install.sh

clean:
	@rm -rf build build-asan build-tsan build-fuzz
