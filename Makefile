# SPDX-License-Identifier: BSD-2-Clause
# The developer's front door; Meson and ninja do the work. On a bare Debian 12, Debian 13 or
# Ubuntu 24.04 every target first installs what it lacks (scripts/deps.sh).
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
SEED ?= 1
T ?= 60

# The last line of a check is its count. Below a recipe that fails make would print "*** Error 1",
# but not with -q where the recipe ends with 1; and '+' has a recipe run in spite of -q. So it is
# where nothing but checks is wanted, and not with -n. The recipe itself gets no flags of make's.
checks := check check-long asan tsan lock-order attack clients tidy
dry := $(findstring n,$(firstword -$(MAKEFLAGS)))
ifeq ($(or $(dry),$(if $(MAKECMDGOALS),,all),$(filter-out $(checks),$(MAKECMDGOALS))),)
MAKEFLAGS += -q
endif
run := $(if $(dry),,+)@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL

.PHONY: all build demo check check-long asan tsan lock-order sim mutants fuzz attack bench budget \
	clients tidy format install dist clean

all: build

# What a user needs; the targets that test build the rest.
build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) product

$(BUILD)/build.ninja:
	@mkdir -p "$(BUILD)" 2>/dev/null && [ -w "$(BUILD)" ] || { \
		echo "make: user $$(id -un) may not write to $(BUILD):" \
			"make a clone of your own, or say BUILD=FOLDER" >&2; exit 1; }
	@scripts/deps.sh build
	@meson setup $(BUILD) --prefix "$(PREFIX)" $(MESON_FLAGS)

demo:
	@scripts/deps.sh demo
	@$(MAKE) --no-print-directory build
	@BUILD=$(BUILD) scripts/demo.sh

check:
	$(run) BUILD=$(BUILD) scripts/check.sh

check-long:
	$(run) BUILD=$(BUILD) scripts/check.sh --long

asan:
	$(run) BUILD=build-asan MESON_FLAGS="-Db_lundef=false -Db_sanitize=address,undefined" \
		scripts/check.sh unit sim fuzz clients

tsan:
	$(run) BUILD=build-tsan MESON_FLAGS="-Db_lundef=false -Db_sanitize=thread" \
		scripts/check.sh unit sim clients

lock-order:
	$(run) BUILD=build-order MESON_FLAGS="-Dlock_order=true" scripts/check.sh unit sim clients

sim: build
	@ninja -C $(BUILD) -j $(JOBS) tests/sim/sim
	@$(BUILD)/tests/sim/sim "$(SEED)"

# Would the simulators notice? M chooses mutants by how their names begin.
mutants:
	@scripts/deps.sh check
	@VB_BUILD=$(BUILD) tests/sim/long/mutants.py $(M)

fuzz:
	@T=$(T) scripts/fuzz.sh

attack:
	$(run) VB_ATTACK_S=$(T) VB_ATTACK_SEED=$(SEED) BUILD=build-asan \
		MESON_FLAGS="-Db_lundef=false -Db_sanitize=address,undefined" scripts/check.sh fuzz

bench:
	@scripts/deps.sh bench
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)
	@BUILD=$(BUILD) bench/bench.py

# WRITE=1: the counts become the budget.
budget:
	@scripts/deps.sh budget
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) product bench/budget
	@BUILD=$(BUILD) bench/budget.py $(if $(WRITE),--write)

clients:
	$(run) BUILD=$(BUILD) scripts/check.sh clients

tidy:
	$(run) BUILD=$(BUILD) scripts/check.sh tidy

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

install:
	@BUILD="$(BUILD)" PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" MAKE="$(MAKE)" scripts/install.sh

# The source tarball of the last commit.
dist:
	@BUILD=$(BUILD) scripts/dist.sh

clean:
	@rm -rf build build-asan build-tsan build-order build-fuzz
