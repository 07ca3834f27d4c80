#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each parser and the whole receive path under libFuzzer for ten minutes.
set -eu
cd "$VB_ROOT"
T=600 BUILD=build-fuzz scripts/fuzz.sh | grep -v "passed,"
