# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The pyverbs tests of Debian's rdma-core package, one process for each module; source it after
# suite.sh. The suite sets $gid.

shipped=/usr/share/doc/rdma-core/tests

# pyverbs_unpack [efa]: where they can be run from, those for EFA if that is said. False: there are
# none.
pyverbs_unpack() {
	local file name
	[ -d $shipped ] || return 1
	# pyverbs of rdma-core 56 asks `rdma link` which interface the device goes by, and fails if
	# the kernel knows nothing of RDMA. This is what a kernel says that knows of no device.
	mkdir "$tmp/bin"
	printf '#!/bin/sh\necho "[]"\n' >"$tmp/bin/rdma"
	chmod a+x "$tmp/bin/rdma"
	export PATH=$tmp/bin:$PATH

	mkdir "$tmp/tests"
	for file in "$shipped"/*.py "$shipped"/*.py.gz; do
		name=${file##*/}
		case $name in
		test_cuda*) ;;
		test_efa*) [ "${1:-}" = efa ] && gunzip -cf "$file" >"$tmp/tests/${name%.gz}" ;;
		*.gz) gunzip -c "$file" >"$tmp/tests/${name%.gz}" ;;
		*) cp "$file" "$tmp/tests/" ;;
		esac
	done
	chmod -R a+rX "$tmp"
	export PYTHONDONTWRITEBYTECODE=1
}

# pyverbs_module PREFIX NAME REASONS: REASONS as pyverbs_run.py has them
pyverbs_module() {
	local rc
	if [ ! -e "$tmp/tests/test_$2.py" ]; then
		skip "$1test_$2" "not in this rdma-core's tests"
		return
	fi
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run[@]}" "$VB_ROOT/tests/lib/pyverbs_run.py" \
		"$tmp" "test_$2" "$1" "$3" --dev verbatim0 --port 1 --gid "$gid" \
		>"$tmp/module" 2>"$tmp/errors"
	rc=$?
	tee -a "$results" <"$tmp/module"
	if [ $rc != 0 ]; then
		fail "$1test_$2" "$(status_say $rc), $(grep ^running "$tmp/errors" | tail -1)" \
			"$tmp/errors"
	elif grep -q "^not ok" "$tmp/module"; then
		failures=$((failures + 1))
		sed 's/^/#     /' "$tmp/errors"
	fi
}
