#!/bin/sh
# LAB=FOLDER run.sh KERNEL 'COMMANDS': boots kernels/KERNEL (amd64-6.1, arm64-6.12, ...) in qemu without KVM, runs the
# commands with bash as root in a throw-away copy of the root file system, prints their output, powers off.
# /share is the folder share/ARCH; what the commands write to /out lands in out/KERNEL.
# In the environment: LIMIT (seconds), RAW=1 (the kernel's output, too), CPU, SMP, APPEND (to its command
# line), TCG=single, EXTRA (for qemu: EXTRA="-icount 1" TCG=single has the instructions event on arm64).
set -eu
lab=${LAB:?the folder to work in}
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 commands=$2
arch=${kernel%%-*}
dir=$lab/kernels/$kernel
work=$(mktemp -d "$lab/work.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$lab/share/$arch/bin" "$lab/out/$kernel"
cp "$here/guest/second" "$lab/share/$arch/second"
mke2fs -q -t ext4 -O ^has_journal -d "$lab/share/$arch" "$work/share.img" "${SHARE_SIZE:-400M}"
printf '%s\n' "$commands" >"$work/commands"
truncate -s %4096 "$work/commands"
truncate -s 300M "$work/out.img"
drive() { echo "-drive if=none,id=$1,format=raw,file=$2,snapshot=$3 -device virtio-blk-pci,drive=$1"; }
case $arch in
amd64) machine="qemu-system-x86_64 -M q35 -cpu ${CPU:-max}" console=ttyS0 ;;
arm64) machine="qemu-system-aarch64 -M virt -cpu ${CPU:-max,pauth-impdef=on}" console=ttyAMA0 ;;
esac
timeout "${LIMIT:-900}" nice -n 10 $machine -accel tcg,thread=${TCG:-multi} -smp "${SMP:-2}" -m 2G ${EXTRA:-} -nodefaults -display none \
    -serial stdio -no-reboot -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
    -append "console=$console rdinit=/init quiet panic=-1 ${APPEND:-}" \
    $(drive a "$lab/images/root-$arch.img" on) $(drive b "$work/share.img" on) \
    $(drive c "$work/commands" on) $(drive d "$work/out.img" off) </dev/null 2>&1 |
    tr -d '\r' | { [ -n "${RAW:-}" ] && cat || sed -n '/=== lab begins/,/=== lab ends/p'; }
tar -C "$lab/out/$kernel" -xf "$work/out.img" 2>/dev/null || true
