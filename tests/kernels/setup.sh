#!/bin/sh
# LAB=FOLDER setup.sh: makes the kernels and root file systems for run.sh in that folder: 700 MB of
# Debian's packages. Needs apt, dpkg, mke2fs, cpio, xz, zstd.
set -eu
lab=${LAB:?the folder to work in}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$lab"
root="bash coreutils util-linux procps busybox-static python3 libc-bin libc6 libc6-dbg perl-base sed grep
    gawk findutils tar gzip mount linux-perf nodejs ruby php8.2-cli openjdk-17-jre-headless bsdutils login
    dash binutils kmod passwd"
for arch in amd64 arm64; do
    "$here/fetch.sh" $arch bookworm all $root
    "$here/fetch.sh" $arch bullseye kernel "^linux-image-5.10.0-[0-9]*-cloud-$arch\$"
    "$here/fetch.sh" $arch bookworm kernel "^linux-image-6.1.0-[0-9]*-cloud-$arch\$"
    "$here/fetch.sh" $arch trixie kernel "^linux-image-6.12[^ ]*-cloud-$arch\$"
    "$here/fetch.sh" $arch sid kernel "^linux-modules-[0-9][^ ]*-cloud-$arch\$"
done
"$here/kernels.sh"
"$here/roots.sh"
