# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A host with Linux's own software RDMA: a virtual machine with Debian's kernel, whose rdma_rxe is
# there whatever kernel this machine has. Source it after suite.sh.
#
#     host A: this suite's namespace              the guest
#   +----------------------------+              +----------------------------+
#   | vb0   10.79.0.1/24         |   TAP        | eth0  10.79.0.2/24         |
#   |       fd79::1/64           +--------------+       fd79::2/64           |
#   |                            |              | rxe0                       |
#   +----------------------------+              +----------------------------+
#
# The guest's root is ours, read-only, with memory over it: what is installed here runs there. All
# is emulated, so it needs no privilege but for the TAP, and is slow.

guest_a4=10.79.0.1 guest_b4=10.79.0.2 guest_a6=fd79::1 guest_b6=fd79::2
guest_port=23
guest_root=$VB_BUILD/guest	# by scripts/kernel.sh: here is no network
guest_boot_s=120
guest_modules="virtio_pci virtio_net 9p 9pnet_virtio overlay crc32_generic rdma_rxe"
guest_also=	# modules that the suite wants beside these: rdma_ucm, the connection manager

# guest_initrd: what brings the guest up to the point where it takes commands.
guest_initrd() {
	local ram=$tmp/initrd module path
	mkdir -p "$ram"/{bin,proc,sys,dev,host,new,modules}
	cp "$(command -v busybox)" "$ram/bin/busybox" || return 1
	cp "$VB_ROOT/tests/lib/guest.py" "$ram/" || return 1
	depmod -b "$guest_root" "$guest_version" || return 1
	for module in $guest_modules $guest_also; do
		modprobe -d "$guest_root" -S "$guest_version" --show-depends $module || return 1
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$tmp/modules" || return 1
	while read -r path; do
		cp "$path" "$ram/modules/"
		basename "$path"
	done <"$tmp/modules" >"$ram/modules/order"
	cat >"$ram/init" <<-END
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
		while read module; do insmod /modules/\$module; done </modules/order
		mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144 root /host
		mkdir /over; mount -t tmpfs over /over; mkdir /over/upper /over/work
		mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work over /new
		for path in proc sys dev; do mount --bind /\$path /new/\$path; done
		mount -t tmpfs tmp /new/tmp; mount -t tmpfs run /new/run; cp /guest.py /new/run
		mkdir -p /new$tmp; mount --bind /host$tmp /new$tmp
		ip link set lo up; ip link set eth0 up
		echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
		ip addr add $guest_b4/24 dev eth0
		chroot /new /usr/sbin/ip addr add $guest_b6/64 dev eth0 nodad
		chroot /new /usr/bin/rdma link add rxe0 type rxe netdev eth0
		exec chroot /new /usr/bin/python3 /run/guest.py serve $guest_port
	END
	chmod +x "$ram/init"
	(cd "$ram" && find . | busybox cpio -o -H newc | gzip -1) >"$tmp/initrd.gz" 2>/dev/null
}

# guest CMD ...: runs it there.
guest() {
	python3 "$VB_ROOT/tests/lib/guest.py" call $guest_b4 $guest_port "$@"
}

# guest_make: boots it. Returns 1 and sets $why if that cannot be done here.
guest_make() {
	local i
	why="no such emulator"
	command -v qemu-system-x86_64 busybox modprobe >"$tmp/output" || return 1
	why="no TAP can be made"
	ip tuntap add dev vb0 mode tap vnet_hdr 2>"$tmp/output" || return 1
	ip addr add $guest_a4/24 dev vb0
	ip addr add $guest_a6/64 dev vb0 nodad
	ip link set vb0 up
	why="there is no kernel of Debian's to be had"
	guest_version=$(ls "$guest_root/lib/modules" 2>"$tmp/output") || return 1
	why="its first file system cannot be made"
	guest_initrd || return 1
	qemu-system-x86_64 -accel tcg -cpu max -m 2G -nodefaults -display none -no-reboot \
		-kernel "$guest_root/boot/vmlinuz-$guest_version" -initrd "$tmp/initrd.gz" \
		-append "console=ttyS0 panic=-1 quiet" -serial "file:$tmp/console" \
		-device virtio-net-pci,netdev=cable \
		-netdev tap,id=cable,ifname=vb0,script=no,downscript=no \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=root,mount_tag=root >"$tmp/qemu" 2>&1 &
	guest_pid=$!
	why="it does not come up"
	for ((i = 0; i < guest_boot_s; i++)); do
		guest true >/dev/null 2>&1 && return 0
		kill -0 $guest_pid 2>/dev/null || break
		sleep 1
	done
	return 1
}

# guest_gid ADDRESS: its index in the guest's GID table.
guest_gid() {
	guest sh -c 'grep -il "$1" /sys/class/infiniband/rxe0/ports/1/gids/*' sh "$1" |
		sed -n '1s/.*\///p'
}
