#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Fetches Debian's kernel, for the guest of tests/lib/guest.sh, and unpacks it in a folder; nothing
# is installed, and nothing is done if it is there already.
#   kernel.sh FOLDER
set -eu
[ ! -e "$1/boot" ] || exit 0
package=$(apt-cache depends --important linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
[ -n "$package" ]
rm -rf "$1" "$1.new"
mkdir -p "$1.new/root"
cd "$1.new"
timeout 300 apt-get -q -o APT::Sandbox::User=root download "$package"
dpkg -x ./*.deb root
rm ./*.deb
cd - >/dev/null
mv "$1.new/root" "$1"
rmdir "$1.new"
