#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The view by preload (docs/view.md): every call, and programs that are not ours, find by redirected
# paths what they find where the same files lie in their true places, by mounts. Both are trees of
# this suite's own, at /sys and /dev of mount namespaces, so that nothing depends on the machine.
. "$(dirname "$0")/../lib/suite.sh"

unshare --mount true 2>/dev/null || skip_all "this system lets us make no mount namespace"
library=$VB_BUILD/lib/libverbatim_view.so.1
calls=$VB_BUILD/tests/unit/view_calls

# --- the trees ---

real=$tmp/real view=$tmp/view both=$tmp/both
pci=devices/pci7662:00/7662:00:06.0
nic=devices/pci0000:00/0000:00:03.0

# put FILE TEXT, in the current folder
put() {
	mkdir -p "${1%/*}"
	echo "$2" >"$1"
}

# link PATH TARGET
link() {
	mkdir -p "${1%/*}"
	ln -s "$2" "$1"
}

mkdir -p "$real/dev/shm" "$real/sys" "$view"
cd "$real" || exit
for node in null zero urandom; do
	: >dev/$node
done
link dev/stdin /proc/self/fd/0
put sys/$nic/net/eth0/mtu 1500
put sys/$nic/vendor 0x1af4
link sys/$nic/net/eth0/device ../../../0000:00:03.0
link sys/$nic/subsystem ../../../bus/pci
put sys/devices/virtual/net/lo/mtu 65536
link sys/class/net/eth0 ../../$nic/net/eth0
link sys/class/net/lo ../../devices/virtual/net/lo
link sys/bus/pci/devices/0000:00:03.0 ../../../$nic
put sys/class/misc/version 1
put sys/fs/cgroup/cgroup.procs 1

cd "$view" || exit
mkdir -p dev/infiniband
: >dev/infiniband/rdma_cm
ln -s /dev/null dev/infiniband/uverbs0
put sys/class/infiniband_verbs/abi_version 6
put sys/$pci/numa_node 0
put sys/$pci/infiniband/v0/guid 0200:00ff:fe00:0001
put sys/$pci/infiniband/v0/ports/1/gids/0 fe80::1
put sys/$pci/infiniband/v0/ports/1/gid_attrs/types/0 "RoCE v2"
chmod 000 sys/$pci/infiniband/v0/ports/1/gid_attrs/types/0
put sys/$pci/infiniband_verbs/uverbs0/ibdev v0
link sys/$pci/infiniband/v0/device ../../../7662:00:06.0
link sys/$pci/infiniband/v0/subsystem ../../../../../class/infiniband
link sys/$pci/infiniband/v0/round round
link sys/$pci/infiniband/v0/dangling /sys/devices/nowhere
link sys/$pci/infiniband_verbs/uverbs0/device ../../../7662:00:06.0
link sys/$pci/subsystem ../../../bus/pci
link sys/$pci/net/lo/device ../../../7662:00:06.0
link sys/$pci/net/lo/mtu /sys/devices/virtual/net/lo/mtu
link sys/class/infiniband/v0 ../../$pci/infiniband/v0
link sys/class/infiniband_verbs/uverbs0 ../../$pci/infiniband_verbs/uverbs0
link sys/class/net/lo ../../$pci/net/lo
link sys/bus/pci/devices/7662:00:06.0 ../../../$pci

cp -a "$real" "$both"
rm "$both/sys/class/net/lo"
cp -a "$view/sys" "$both"
mkdir "$both/dev/infiniband"
: >"$both/dev/infiniband/rdma_cm"
: >"$both/dev/infiniband/uverbs0"
chmod -R a-w "$real" "$view" "$both"
cd "$tmp" || exit

# What runs the rest of the line in a tree, as an ordinary user where we are root: root may read
# and write whatever there is.
cat >"$tmp/in" <<'END'
#!/bin/bash
# in TREE CWD CMD ...
tree=$1 cwd=$2
shift 2
mount --make-rprivate / 2>/dev/null
for node in null zero urandom infiniband/rdma_cm infiniband/uverbs0; do
	[ ! -e "$tree/dev/$node" ] || case $node in
	infiniband/*) mount --bind /dev/null "$tree/dev/$node" ;;
	*) mount --bind "/dev/$node" "$tree/dev/$node" ;;
	esac || exit 99
done
mount --rbind "$tree/dev" /dev && mount --rbind "$tree/sys" /sys && cd "$cwd" || exit 99
user=()
[ "$(awk '{ print $3 }' /proc/self/uid_map)" != 4294967295 ] ||
	user=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
exec "${user[@]}" "$@"
END
chmod +x "$tmp/in"

# by_preload CWD CMD ...; by_mount CWD CMD ...
by_preload() {
	local cwd=$1
	shift
	timeout -k 5 "$limit_s" unshare --mount "$tmp/in" "$real" / env LC_ALL=C \
		LD_PRELOAD="${VB_PRELOAD:+$VB_PRELOAD:}$library" VERBATIM_VIEW_ROOT="$view" \
		bash -c 'cd "$0" && exec "$@"' "$cwd" "$@"
}
by_mount() {
	local cwd=$1
	shift
	timeout -k 5 "$limit_s" unshare --mount "$tmp/in" "$both" / env LC_ALL=C \
		${VB_PRELOAD:+"LD_PRELOAD=$VB_PRELOAD"} bash -c 'cd "$0" && exec "$@"' "$cwd" "$@"
}

# same NAME CWD CMD ...: both say the same, end the same, and say something.
same() {
	local name=$1 rc_preload rc_mount
	shift
	by_preload "$@" >"$tmp/preload" 2>&1
	rc_preload=$?
	by_mount "$@" >"$tmp/mount" 2>&1
	rc_mount=$?
	diff "$tmp/mount" "$tmp/preload" >"$tmp/diff"
	[ -s "$tmp/mount" ] && [ ! -s "$tmp/diff" ] && [ $rc_preload = $rc_mount ] &&
		! grep -q "$view" "$tmp/preload"
	verdict "$name" "by mount it ends with $rc_mount, by preload $rc_preload" "$tmp/diff"
}

by_mount / true
[ $? != 99 ] || skip_all "this system lets us mount nothing"

# --- every call ---

cat >"$tmp/paths" <<END
/sys/class/infiniband
/sys/class/infiniband/
//sys/./class//infiniband/.
/sys/class/infiniband/v0
/sys/class/infiniband/v0/
/sys/class/infiniband/v0/guid
/sys/class/infiniband/v0/guid/
/sys/class/infiniband/v0/guid/.
/sys/class/infiniband/v0/guid/..
/sys/class/infiniband/v0/guid/x
/sys/class/infiniband/v0/ports/1/gids/0
/sys/class/infiniband/v0/ports/1/gid_attrs/types/0
/sys/class/infiniband/v0/ports/1/gids/../../../guid
/sys/class/infiniband/v0/device
/sys/class/infiniband/v0/device/numa_node
/sys/class/infiniband/v0/device/subsystem/devices/0000:00:03.0/vendor
/sys/class/infiniband/v0/subsystem/v0/subsystem/v0/guid
/sys/class/infiniband/v0/round
/sys/class/infiniband/v0/dangling
/sys/class/infiniband/v0/none
/sys/class/infiniband/v0/../none
/sys/class/infiniband/v0/..
/sys/class/infiniband/../net/eth0/mtu
/sys/class/infiniband/none
/sys/class/infiniband/none/none
/sys/class/infiniband/none/..
/sys/class/infiniband_verbs/abi_version
/sys/class/infiniband_verbs/uverbs0/ibdev
/sys/class
/sys/class/net
/sys/class/net/lo
/sys/class/net/lo/device
/sys/class/net/lo/mtu
/sys/class/net/eth0
/sys/class/net/eth0/device/vendor
/sys/class/net/eth0/device/subsystem/devices/7662:00:06.0/numa_node
/sys/class/net/../infiniband/v0/guid
/sys/class/net/eth1
/sys/class/misc/version
/sys/devices
/sys/devices/pci7662:00
/sys/devices/pci0000:00/../pci7662:00/7662:00:06.0/infiniband
/sys/bus/pci/devices
/sys/bus/pci/devices/7662:00:06.0/infiniband/v0/guid
/sys/bus/pci/devices/7662:00:06.0/../../../class/net/lo/mtu
/sys/fs/cgroup/cgroup.procs
/sys
/
/dev
/dev/infiniband
/dev/infiniband/uverbs0
/dev/infiniband/uverbs0/
/dev/infiniband/uverbs0/x
/dev/infiniband/uverbs1
/dev/infiniband/rdma_cm
/dev/infiniband/../null
/dev/null
/dev/none
/usr/../sys/class/infiniband/v0/guid
/usr/lib/../../dev/infiniband/uverbs0
/etc/passwd
/etc/none
END
# By paths that are relative, too: from where each of them is a name.
cat >"$tmp/near" <<END
.
..
guid
ports
ports/1/gids/0
device
device/numa_node
../v0/guid
../../../../../class/infiniband
../../../../../class/infiniband/v0/guid
../../../../pci0000:00/0000:00:03.0/vendor
none
END
sed -n 's,^/\(sys.*\|dev/inf.*\),\1,p' "$tmp/paths" | head -n 12 >"$tmp/top"
cat >"$tmp/patterns" <<END
/sys/class/infiniband/*
/sys/class/infiniband/*/ports/*/gids/*
/sys/class/*/v0
/s*/class/inf*
/dev/inf*/uverbs*
/dev/infiniband/{rdma_cm,uverbs0}
/sys/class/net/*/device/*
/sys/devices/pci*/*/infiniband
/sys/class/infiniband/v0/guid
/sys/class/infiniband/none*
/etc/pass*
ports/*/gids/0
END
chmod a+r "$tmp"/*
same "calls by absolute paths" / "$calls" "$tmp/paths" "$tmp/patterns"
same "calls by absolute paths, from within" /sys/class/infiniband/v0 "$calls" "$tmp/paths" \
	"$tmp/patterns"
same "calls from the top" / "$calls" "$tmp/top" "$tmp/patterns"
same "calls by relative paths" /sys/class/infiniband/v0 "$calls" "$tmp/near" "$tmp/patterns"
same "calls from a folder of both trees" /sys/class "$calls" <(:) "$tmp/patterns"

# --- programs ---

same "cat" / cat /sys/class/infiniband/v0/ports/1/gids/0 /sys/class/net/lo/mtu
same "readlink -f" / readlink -f /sys/class/infiniband/v0/device /sys/class/net/lo \
	/sys/class/net/lo/device /sys/class/infiniband/none /sys/class/net/eth0
same "realpath" / realpath /sys/class/infiniband/v0/../.. /sys/bus/pci/devices/7662:00:06.0
same "stat" / stat -L -c '%n %F %a %h %U' /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm \
	/sys/class/infiniband/v0/guid
same "ls" / ls /dev/infiniband /dev /sys/class /sys/class/infiniband /sys/bus/pci/devices
same "ls -l" / bash -c 'ls -lR --time-style=+ /sys/class/infiniband/ /sys/class/infiniband/v0/ |
	grep -v ^total | awk "/^d/ { \$5 = \"\" } { print }"'
same "test" / bash -c 'for f in -r -w -x -c -d -e -h; do test $f /dev/infiniband/uverbs0; echo $f $?
	test $f /sys/class/infiniband/v0; echo $f $?; done'
same "pwd" /sys/class/infiniband/v0 bash -c 'pwd; pwd -P; /bin/pwd; cd ..; pwd -P; cat v0/guid'
same "find" / bash -c 'find /sys /dev -path "*/fd*" -prune -o -print | sort'
same "find -L" / bash -c 'find -L /sys/class/infiniband -maxdepth 4 -type f 2>/dev/null | sort'
same "grep -r" / bash -c 'grep -r . /sys/class/infiniband_verbs /sys/devices 2>&1 | sort'
same "du, which walks by descriptors" / bash -c 'du -a --apparent-size /sys/devices/pci7662:00 |
	sed "s/^[0-9]*//" | sort'

cat >"$tmp/view.py" <<'END'
import glob, os, pathlib, shutil, tempfile
for top in "/sys", "/dev/infiniband", "/sys/class/infiniband/v0/":
    print(sorted((p, sorted(d), sorted(f)) for p, d, f in os.walk(top)))
print(sorted((p, sorted(f)) for p, d, f, fd in os.fwalk("/sys/class")))
print(sorted(glob.glob("/sys/class/infiniband/*/ports/*/*")), glob.glob("/dev/infiniband/*[0-9]"))
for path in "/sys/class/infiniband/v0/device", "/sys/class/net/lo/device", "/sys/class/net/eth0":
    print(pathlib.Path(path).resolve(), os.path.realpath(path), os.readlink(path))
print(sorted(e.name for e in os.scandir("/dev/infiniband")), os.path.ismount("/sys/class"))
print([sorted(os.listdir(d)) for d in ("/sys/class", "/sys/class/net", "/sys/class/infiniband")])
os.chdir("/sys/class/infiniband")
print(os.getcwd(), sorted(os.listdir()), open("v0/guid").read(), os.path.abspath("v0"))
fd = os.open("/sys/class", os.O_RDONLY)
print(sorted(os.listdir(fd)), os.stat("infiniband/v0/guid", dir_fd=fd).st_size)
with tempfile.TemporaryDirectory() as to:
    shutil.copytree("/sys/class/infiniband_verbs", to + "/copy", symlinks=True)
    print(sorted(os.listdir(to + "/copy")))
if os.fork() == 0:
    print(open("/sys/class/infiniband/v0/guid").read(), flush=True)
    os._exit(0)
os.wait()
for path in "/sys/class/infiniband/none", "/sys/class/infiniband/v0/guid/x":
    try:
        open(path)
    except OSError as error:
        print(error)
END
if command -v lstopo-no-graphics >/dev/null; then
	same "lstopo" / lstopo-no-graphics --whole-io --of console
else
	skip "lstopo" "no lstopo-no-graphics"
fi
if command -v /usr/bin/python3 >/dev/null; then
	same "Python" / /usr/bin/python3 -B "$tmp/view.py"
else
	skip "Python" "no python3"
fi

# Each calls the next of these, and none the other back.
if command -v fakeroot >/dev/null; then
	same "fakeroot" / fakeroot -- bash -c 'cat /sys/class/infiniband/v0/guid; stat -c "%u %F" \
		/sys/class/infiniband/v0 /dev/infiniband/uverbs0 /sys/class/net/lo/mtu'
else
	skip "fakeroot" "not installed"
fi

cat >"$tmp/view.cc" <<'END'
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>
#include <vector>
namespace fs = std::filesystem;
int main()
{
	std::set<std::string> all;
	for (auto &e : fs::recursive_directory_iterator("/sys/class"))
		all.insert(e.path().string() + (e.is_symlink() ? " link" : ""));
	std::error_code error;
	for (auto &e : fs::recursive_directory_iterator("/sys/devices"))
		all.insert(e.path().string() + (e.is_directory(error) ? " folder" : ""));
	for (auto &name : all)
		std::cout << name << "\n";
	for (auto path : { "/sys/class/infiniband/v0/device", "/sys/class/net/lo/device/numa_node",
			   "/dev/infiniband/uverbs0" })
		std::cout << fs::canonical(path) << fs::exists(path) << fs::is_character_file(path)
			  << "\n";
	std::cout << fs::read_symlink("/sys/class/infiniband/v0") << "\n";
	std::vector<std::thread> threads;
	std::vector<std::string> texts(8);
	for (auto &text : texts)
		threads.emplace_back([&text] {
			for (int i = 0; i < 200; i++) {
				std::ifstream file("/sys/class/infiniband/v0/guid");
				std::getline(file, text);
				for (auto &e : fs::directory_iterator("/sys/class"))
					text += e.path().filename() == "infiniband" ? "!" : "";
			}
		});
	for (auto &thread : threads)
		thread.join();
	for (auto &text : texts)
		std::cout << text << "\n";
	fs::current_path("/sys/class/infiniband/v0");
	std::cout << fs::current_path() << fs::canonical("ports") << "\n";
}
END
if ! command -v g++ >/dev/null; then
	skip "C++" "no g++"
elif g++ -std=c++17 -pthread -o "$tmp/view_cc" "$tmp/view.cc" 2>"$tmp/compiled"; then
	same "C++" / "$tmp/view_cc"
else
	fail "C++" "does not compile" "$tmp/compiled"
fi

cat >"$tmp/view.rs" <<'END'
use std::{env, fs};
fn main() {
    let mut names: Vec<_> = fs::read_dir("/sys/class").unwrap()
        .map(|e| e.unwrap()).map(|e| (e.file_name(), e.file_type().unwrap().is_dir())).collect();
    names.sort();
    println!("{:?}", names);
    for path in ["/sys/class/infiniband/v0/device", "/sys/class/net/lo", "/sys/class/none"] {
        println!("{:?}", fs::canonicalize(path).map_err(|e| e.kind()));
        println!("{:?}", fs::read_link(path).ok());
    }
    println!("{}", fs::read_to_string("/sys/class/infiniband/v0/guid").unwrap());
    println!("{:?}", fs::metadata("/dev/infiniband/uverbs0").map(|m| m.is_file()).ok());
    println!("{}", fs::symlink_metadata("/sys/class/infiniband/v0").unwrap().is_symlink());
    env::set_current_dir("/sys/class/infiniband/v0").unwrap();
    println!("{:?} {}", env::current_dir(), fs::exists("ports/1").unwrap());
}
END
if ! rustc --version >/dev/null 2>&1; then
	skip "Rust" "no rustc"
elif rustc -o "$tmp/view_rs" "$tmp/view.rs" 2>"$tmp/compiled"; then
	same "Rust" / "$tmp/view_rs"
else
	skip "Rust" "this rustc knows less than the program"
fi
suite_end
