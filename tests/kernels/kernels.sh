#!/bin/sh
# LAB=FOLDER kernels.sh: unpacks the kernels in debs/ to kernels/ARCH-VERSION/{vmlinuz,initrd,config,release}.
set -eu
lab=${LAB:?the folder to work in}
here=$(cd "$(dirname "$0")" && pwd)
cd "$lab"
mkdir -p kernels tools
for deb in debs/amd64-bookworm/kmod_*.deb debs/amd64-bookworm/libkmod2_*.deb; do dpkg-deb -x "$deb" tools; done
ln -sf bin/kmod tools/depmod; ln -sf bin/kmod tools/modprobe
kmod() { # depmod or modprobe
    LD_LIBRARY_PATH=$lab/tools/usr/lib/x86_64-linux-gnu "$lab/tools/$@"
}
for dir in debs/*; do
    arch=${dir#debs/} arch=${arch%%-*}
    rm -rf unpack && mkdir unpack
    found=
    for deb in "$dir"/linux-image-[0-9]*.deb "$dir"/linux-binary-*.deb "$dir"/linux-modules-*.deb; do
        [ -e "$deb" ] || continue
        dpkg-deb -x "$deb" unpack && found=1
    done
    [ -n "$found" ] || continue
    # since 7.x the files lie below /usr
    for root in unpack unpack/usr; do [ -L "$root/lib" ] || [ ! -d "$root/lib/modules" ] || modules=$root/lib/modules; done
    for release in $(ls "$modules"); do
        image=$(find unpack -name "vmlinuz-$release" -o -path "*$release/vmlinuz" | head -1)
        config=$(find unpack -name "config-$release" -o -path "*$release/config" | head -1)
        [ -n "$image" ] || continue
        version=$(echo "$release" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
        out=kernels/$arch-$version
        rm -rf "$out" && mkdir -p "$out/root/bin" "$out/root/lib/modules"
        cp "$image" "$out/vmlinuz"; [ -z "$config" ] || cp "$config" "$out/config"; echo "$release" >"$out/release"
        mkdir -p unpack/tree/lib/modules
        rm -rf "unpack/tree/lib/modules/$release"; cp -r "$modules/$release" "unpack/tree/lib/modules/"
        kmod depmod -b unpack/tree "$release"
        : >"$out/root/order"
        for module in virtio_pci virtio_blk virtio_mmio ext4; do
            kmod modprobe -d "$lab/unpack/tree" -S "$release" --show-depends "$module" 2>/dev/null |
                sed -n 's/^insmod \([^ ]*\).*/\1/p' || true
        done | awk '!seen[$0]++' | while read -r file; do
            name=$(basename "$file"); name=${name%.xz}; name=${name%.zst}
            case $file in
            *.xz) xz -dc "$file" ;;
            *.zst) zstd -qdc "$file" ;;
            *) cat "$file" ;;
            esac >"$out/root/lib/modules/$name"
            echo "$name" >>"$out/root/order"
        done
        busybox=$(mktemp -d) && dpkg-deb -x debs/$arch-bookworm/busybox-static_*.deb "$busybox"
        cp "$busybox/bin/busybox" "$out/root/bin/"; rm -rf "$busybox"
        cp "$here/guest/init" "$out/root/init"
        (cd "$out/root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$out/initrd"
        rm -rf "$out/root"
        echo "$out: $release"
    done
done
rm -rf unpack
