#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What ../order.sh does, with a hundred seeds.
VB_SEEDS=100 exec "$(dirname "$0")/../order.sh" "$@"
