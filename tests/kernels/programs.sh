#!/bin/sh
# LAB=FOLDER programs.sh ARCH PROF: compiles programs/ for amd64 or arm64 into share/ARCH/bin, with prof.
set -eu
lab=${LAB:?the folder to work in}
here=$(cd "$(dirname "$0")" && pwd)
arch=$1 prof=$2
bin=$lab/share/$arch/bin
mkdir -p "$bin" "$lab/share/$arch/src"
cd "$here/programs"
cp ./*.py ./*.rb ./*.php ./*.js "$lab/share/$arch/src/"
cp "$here/guest/suite" "$prof" "$bin/"
case $arch in
amd64) cc=gcc ;;
arm64) cc=aarch64-linux-gnu-gcc ;;
esac
bare="-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables"
linked="-fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables"
for name in deep threads waits signals; do
    $cc -O2 -fomit-frame-pointer -o "$bin/$name" $name.c -lpthread
done
$cc -O2 $linked -o "$bin/leaf-fp" leaf.c
$cc -O2 $bare -o "$bin/leaf-bare" leaf.c
object=$bin/bigframe2.o
$cc -O2 $linked -c -o "$object" bigframe2.c
$cc -O2 -fno-omit-frame-pointer -o "$bin/bigframe" bigframe.c "$object"
rm "$object"
$cc -O2 -shared -fPIC -o "$bin/libempty.so" empty.c
$cc -O2 -fomit-frame-pointer -o "$bin/plt" plt.c -L"$bin" -lempty -Wl,-rpath,/share/bin
$cc -O2 -static -fomit-frame-pointer -o "$bin/static" deep.c
if [ "$arch" = arm64 ]; then
    $cc -O2 -mbranch-protection=standard -fomit-frame-pointer -o "$bin/signed" deep.c
fi
javac --release 17 -d "$bin" Nested.java
