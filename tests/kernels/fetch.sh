#!/bin/sh
# LAB=FOLDER fetch.sh ARCH SUITE all PACKAGE...: downloads packages of a Debian suite, and what they depend on, into
# debs/ARCH-SUITE. fetch.sh ARCH SUITE kernel PATTERN: the newest kernel of such a name that the mirror still
# has (indexes can be ahead of it). The machine's own apt is left alone.
set -eu
lab=${LAB:?the folder to work in}
arch=$1 suite=$2 what=$3; shift 3
state=$lab/apt/$arch-$suite
debs=$lab/debs/$arch-$suite
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/etc" "$debs"
: >"$state/status"
# The machine's own mirror: DEBIAN=URL names another.
mirror=${DEBIAN:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)*\([^ ]*\).*/\2/p' | grep -v security | head -1)}
{
    echo "deb [arch=$arch] $mirror $suite main"
    case $suite in
    bullseye | bookworm | trixie) echo "deb [arch=$arch] $mirror-security $suite-security main" ;;
    esac
} >"$state/sources.list"
apt() {
    tool=$1; shift
    "$tool" -q -o Dir::State="$state" -o Dir::State::status="$state/status" \
        -o Dir::Cache="$state/cache" -o Dir::Etc::sourcelist="$state/sources.list" \
        -o Dir::Etc::sourceparts=- -o Dir::Etc::parts=- -o APT::Architecture="$arch" \
        -o APT::Architectures="$arch" -o APT::Install-Recommends=0 -o APT::Get::Assume-Yes=1 \
        -o APT::Sandbox::User=root -o Acquire::Retries=0 -o Acquire::Languages=none "$@"
}
[ -e "$state/updated" ] || { apt apt-get update && touch "$state/updated"; }
cd "$debs"
case $what in
all) apt apt-get -d -o Dir::Cache::archives="$debs" install "$@" ;;
kernel)
    apt apt-cache search --names-only "$1" | cut -d' ' -f1 | grep -v -e dbg -e unsigned | sort -rV |
        while read -r name; do
            others=
            case $name in linux-modules-*) others=linux-binary-${name#linux-modules-} ;; esac
            apt apt-get download "$name" $others && break
        done
    ;;
esac
