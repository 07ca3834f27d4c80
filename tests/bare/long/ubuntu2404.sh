#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The README on a bare machine of this release.
exec python3 "$VB_ROOT/tests/lib/bare.py" noble
