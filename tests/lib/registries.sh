# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs of PyPI and crates.io. A suite sources this before suite.sh, which takes it to where no
# registry is, and says what it needs in between:
#
#   wheels NAME==VERSION ...   a virtual environment of these, without what they depend on: $python
#   sdist NAME==VERSION        the unpacked source of a package: $sources
#   crate NAME VERSION         a crate's tests and examples, built: see there
#
# The registries are those that pip and cargo are set up for. What was got stays in the build
# folder. Where it cannot be had, or VB_REGISTRIES=none, the suite is skipped; crates, which
# have to be built, are got only with VB_REGISTRIES=all.

: "${VB_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}" "${VB_BUILD:=$VB_ROOT/build}"
got=$VB_BUILD/registries/$(basename "$0" .sh)
python=$got/venv/bin/python
mkdir -p "$got"
# How a program is shown its devices.
views=(--dev)
! "$VB_BUILD/verbatim" run --help | grep -q -e --view || views=(--view=mount --view=preload)

registries_skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

# get NAME WHAT CMD ...: runs CMD unless it was run before for the same WHAT. It makes $got/NAME.
get() {
	local name=$1 what=$2
	shift 2
	[ -z "${VB_HOST_A:-}" ] || return 0
	[ "$(cat "$got/$name.is" 2>/dev/null)" = "$what" ] && return
	[ "${VB_REGISTRIES:-}" != none ] || registries_skip "VB_REGISTRIES=none"
	rm -rf "${got:?}/$name" "$got/$name.is"
	"$@" >"$got/$name.log" 2>&1 || registries_skip \
		"$what cannot be had: $(grep -iE 'error|no matching' "$got/$name.log" | tail -n 1)"
	echo "$what" >"$got/$name.is"
}

pip_get() {
	"$python" -m pip --quiet --disable-pip-version-check "$1" --no-deps --retries 1 "${@:2}"
}

# The distribution's python3: any user may run that one.
venv_make() {
	/usr/bin/python3 -m venv "$got/venv" && pip_get install --only-binary :all: "$@"
}

wheels() {
	get venv "$*" venv_make "$@"
}

sdist_unpack() {
	rm -rf "$got/download"
	# The tests that come with it are for the wheel of the same version.
	pip_get download --no-binary :all: --dest "$got/download" "$1" &&
		mkdir -p "$got/sources" &&
		tar -xzf "$got"/download/*.tar.gz -C "$got/sources" --strip-components=1
}

sdist() {
	sources=$got/sources
	get sources "$1" sdist_unpack "$1"
}

crate_build() (
	local name=$1 version=$2 build=$got/$1
	mkdir -p "$build/fetch/src"
	cd "$build/fetch" || return
	echo "fn main() {}" >src/main.rs
	printf '[package]\nname = "fetch"\n[dependencies]\n%s = "=%s"\n' "$name" "$version" \
		>Cargo.toml
	cargo fetch || return
	cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$name-$version" "$build/source" ||
		return
	cd "$build/source" || return
	export CARGO_TARGET_DIR=$build/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
	cargo test --locked --no-run --lib --tests &&
		cargo build --locked --examples &&
		rm -rf "$build"/target/debug/{deps/*.rlib,deps/*.rmeta,build}
)

# $got/NAME.tests lists the programs of its tests; $got/NAME/target/debug/examples has its examples.
crate() {
	command -v cargo >/dev/null || registries_skip "no cargo"
	[ "${VB_REGISTRIES:-}" = all ] || [ -e "$got/$1.is" ] ||
		registries_skip "the crates take minutes to build; VB_REGISTRIES=all does it"
	get "$1" "$1 $2" crate_build "$1" "$2"
	sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$got/$1.log" >"$got/$1.tests"
}

# peers NAME: $peer is a program that is a target, or an initiator which looks at what came of it;
# the suite's target_words and initiator_words say their words. $ready is what the target said of
# itself behind its process id.
peers_target() {
	: >"$tmp/server" # what the one before said is not what this one says
	: >"$tmp/client"
	timeout -k 5 "$limit_s" "${on_server[@]}" "${run[@]}" "$python" "$peer" target \
		$(target_words) >>"$tmp/server" 2>&1 &
	target=$!
	await peers_ready && read -r _ target_pid ready < <(grep ^ready "$tmp/server")
}

peers_ready() {
	grep -q '^ready ' "$tmp/server" || gone $target
}

peers_initiator() {
	timeout -k 5 "$limit_s" "${on_client[@]}" "${run[@]}" "$python" "$peer" initiator \
		$(initiator_words) "$@" >"$tmp/client" 2>&1
}

peers() {
	local rc=1 why
	peers_target && peers_initiator
	rc=$?
	process_wait $target $((rc ? 1 : limit_s)) 2>/dev/null
	expect='^all octets are right' sides_judge $rc $?
	verdict "$1" "$why" "$tmp/server" "$tmp/client"
}

# peers_killed NAME: the target is killed in the middle. The initiator is told so, and ends.
peers_killed() {
	local initiator rc why
	peers_target
	peers_initiator until-error &
	initiator=$!
	{
		await peers_write && kill -KILL "$target_pid"
		wait $initiator
		rc=$?
		wait $target
	} 2>/dev/null
	why="the initiator: $(status_say $rc)"
	[ $rc = 0 ] && grep -q '^failed after' "$tmp/client"
	verdict "$1" "$why" "$tmp/server" "$tmp/client"
}

peers_write() {
	grep -q '^writing' "$tmp/client" || gone $initiator
}

# by_each CMD: with 4 processes, with 2 by UDP, and as an ordinary user in each view. For suites of
# MPI, whose CMD takes the number of processes.
by_each() {
	PREFIX=
	"$1" 4
	link_use udp
	"$1" 2
	unset VERBATIM_LINK
	over=
	if user_become; then
		export HOME=/nonexistent
		for view in "${views[@]}"; do
			run=("$VB_BUILD/verbatim" run "$view" --)
			PREFIX="$view, an ordinary user, "
			"$1" 2
		done
	else
		skip "an ordinary user" "nobody cannot read $VB_BUILD"
	fi
}
