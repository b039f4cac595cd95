#!/bin/sh
# Runs a phase on a served drive: attaches the drive with nbdfuse and a loop device, works, unmounts and detaches it.
#
# phase.sh PHASE FILE-SYSTEM FIRST-BYTE BYTES FOLDER TARBALL, with the drive's address in $uri
#
# The block device is set up as Linux 2.6.32 to 3.11 set up a SATA disk: requests of at most 512 KiB, 128 KiB of
# read-ahead, a disk that rotates. (By default, a loop device takes these settings from the device below it.)
set -eu
phase=$1 kind=$2 first=$3 bytes=$4 folder=$5 tarball=$6
node=$folder/node mounted=$folder/mounted device= nbdfuse=

leave() {
    umount "$mounted" 2>/dev/null || true
    [ -z "$device" ] || losetup --detach "$device" || true
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        umount "$node" 2>/dev/null && break
        sleep 0.05
    done
    [ -z "$nbdfuse" ] || wait "$nbdfuse" || true
    rm -f "$folder/pid" "$node"
}
trap leave EXIT

mkdir -p "$mounted"
: >"$node"
nbdfuse -P "$folder/pid" "$node" "$uri" &
nbdfuse=$!
while [ ! -e "$folder/pid" ]; do
    kill -0 "$nbdfuse"
    sleep 0.01
done
device=$(losetup --find --show --direct-io=on --offset "$first" --sizelimit "$bytes" "$node")
queue=/sys/block/${device##*/}/queue
echo 512 >"$queue/max_sectors_kb"
echo 128 >"$queue/read_ahead_kb"
echo 1 >"$queue/rotational"

if [ "$phase" = mkfs ]; then
    case $kind in
    ext3 | ext4) mke2fs -q -F -t "$kind" -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$device" ;;
    xfs) mkfs.xfs -q -f -K "$device" ;;
    btrfs) mkfs.btrfs -q -f -K "$device" ;;
    esac
    exit
fi
mount -t "$kind" "$device" "$mounted"
case $phase in
extract) tar -xf "$tarball" -C "$mounted" ;;
copy) cp "$tarball" "$mounted/tarball" ;;
read-tree) find "$mounted/linux" -type f -exec cat {} + >/dev/null ;;
read-tarball) cat "$mounted/tarball" >/dev/null ;;
remove) rm -r "$mounted/linux" ;;
esac
umount "$mounted"
