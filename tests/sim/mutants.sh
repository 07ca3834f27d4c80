#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Can each of the faults that `make mutants` tries still be put into the sources?
exec python3 "$VB_ROOT/tests/sim/long/mutants.py" --apply
