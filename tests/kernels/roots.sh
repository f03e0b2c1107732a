#!/bin/sh
# LAB=FOLDER roots.sh: unpacks the packages of debs/ARCH-bookworm into a root file system, images/root-ARCH.img.
set -eu
lab=${LAB:?the folder to work in}
cd "$lab"
mkdir -p images
for arch in amd64 arm64; do
    root=$lab/root-$arch
    rm -rf "$root" && mkdir -p "$root"
    for deb in debs/$arch-bookworm/*.deb; do
        case $deb in */linux-image-* | */linux-binary-* | */linux-modules-*) continue ;; esac
        dpkg-deb -x "$deb" "$root"
    done
    mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/out" "$root/share" "$root/root" "$root/run"
    chmod 1777 "$root/tmp"
    [ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
    [ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
    [ -e "$root/usr/bin/php" ] || ln -s php8.2 "$root/usr/bin/php"
    [ -e "$root/usr/bin/java" ] || ln -s ../lib/jvm/java-17-openjdk-$arch/bin/java "$root/usr/bin/java"
    # Java's packages keep their settings in /etc, put there by a script of the package.
    printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    case $arch in amd64) tuple=x86_64-linux-gnu ;; arm64) tuple=aarch64-linux-gnu ;; esac
    printf '/usr/local/lib\n/lib/%s\n/usr/lib/%s\n' $tuple $tuple >"$root/etc/ld.so.conf"
    rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"
    rm -f "images/root-$arch.img"
    mke2fs -q -t ext4 -O ^has_journal -d "$root" "images/root-$arch.img" 2500M
    rm -rf "$root"
done
ls -la images
