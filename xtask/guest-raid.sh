#!/bin/bash
# Compares Linux's md RAID-5 with ours. Each is on five emulated Maxtor drives, and is read by the kernel of a machine that
# qemu emulates: first sequentially, then at two places alternately (cmp). The figures come from the drives' request logs;
# docs/internals/volumes.md has the results.
#
# guest-raid.sh md|ours READ-AHEAD-KIB [SPEED [MIB]], with the program `traxtent` in $TRAXTENT and, in $TRAXTENT_GUEST, a
# directory in which Debian's linux-image-amd64 is unpacked. Needs root (for loop devices), nbdfuse, qemu, busybox,
# mdadm, cmp and addpart.
#
# SPEED is the speed of the drives' time. It must be so low that the emulated processor is fast relative to the drives.
set -euo pipefail
what=$1 ahead=$2 speed=${3:-0.03} mib=${4:-64}
traxtent=${TRAXTENT:-traxtent} root=${TRAXTENT_GUEST:-/}
drive=maxtor10k5
kernel=$(find "$root/boot" -name 'vmlinuz-*' | sort | tail -1)
modules=$root/lib/modules/${kernel##*/vmlinuz-}
[ -d "$modules" ] || { echo "no kernel with modules in $root (TRAXTENT_GUEST must name its directory)" >&2; exit 2; }
PATH=$PATH:/usr/sbin:/sbin

work=$(mktemp -d /dev/shm/guest-raid.XXXXXX)
servers=() loops=() volume=
stop() {
    [ -z "$volume" ] || { kill "$volume"; wait "$volume"; }
    for device in "${loops[@]}"; do losetup --detach "$device"; done
    sleep 0.5
    for node in "$work"/node?; do umount "$node"; done
    kill -INT "${servers[@]}"
    wait
    servers=() loops=() volume=
} 2>/dev/null
trap 'stop || true; rm -rf "$work"' EXIT

for k in 0 1 2 3 4; do
    "$traxtent" serve $drive --speed "$speed" --file "$work/data$k" --socket "$work/socket$k" --log "$work/$k.csv" \
        >"$work/said$k" 2>&1 &
    servers+=($!)
done
for k in 0 1 2 3 4; do
    until [ -S "$work/socket$k" ]; do kill -0 "${servers[$k]}"; sleep 0.05; done
done

disks=()
disk() {
    disks+=(-blockdev "driver=nbd,node-name=d$1,server.type=unix,server.path=$2")
    disks+=(-device "virtio-blk-pci,drive=d$1,num-queues=1,request-merging=off")
}
case $what in
md)
    for k in 0 1 2 3 4; do disk "$k" "$work/socket$k"; done
    array=md0 part=md0p
    make='/bin/mdadm --create /dev/md0 --run --assume-clean --bitmap=none --level=5 --chunk=4 --raid-devices=5 /dev/vd[a-e]'
    ;;
ours)
    "$traxtent" map $drive --format map >"$work/map"
    maps=()
    for k in 0 1 2 3 4; do
        : >"$work/node$k"
        nbdfuse -P "$work/pid$k" "$work/node$k" "nbd+unix:///?socket=$work/socket$k" &
        until [ -e "$work/pid$k" ]; do sleep 0.05; done
        loops+=("$(losetup --find --show --direct-io=on "$work/node$k")")
        maps+=(--map "$work/map")
    done
    "$traxtent" volume create --trust-map --level raid-5 "${maps[@]}" "${loops[@]}" >"$work/made" 2>&1
    "$traxtent" volume serve --trust-map --socket "$work/volume" "${loops[@]}" >"$work/served" 2>&1 &
    volume=$!
    until [ -S "$work/volume" ]; do kill -0 "$volume"; sleep 0.05; done
    disk v "$work/volume"
    array=vda part=vda make=:
    ;;
*) echo "$what: expected md or ours" >&2; exit 2 ;;
esac

files=$work/files
mkdir -p "$files"/{bin,dev,proc,sys,modules}
cp "$(command -v busybox)" "$files/bin/busybox"
ln -s busybox "$files/bin/sh"
for program in mdadm addpart cmp; do
    cp -L "$(command -v $program)" "$files/bin/"
    ldd "$files/bin/$program" | tr ' \t' '\n\n' | grep '^/.*[^:]$' | while read -r library; do
        mkdir -p "$files${library%/*}"
        cp -L "$library" "$files$library"
    done
done
wanted='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk crc32c_generic libcrc32c xor
raid6_pq async_tx async_memcpy async_xor async_pq async_raid6_recov md-mod raid456'
for module in $wanted; do
    file=$(find "$modules" -name "$module.ko")
    # A missing module is built into the kernel.
    [ -z "$file" ] || cp "$file" "$files/modules/"
done
# Partitions at 1, 2 and 3 GiB; a read at 20 GiB marks the logs.
mark="\$B dd if=/dev/$array of=/dev/null bs=4096 count=1 skip=$((20 << 18)) iflag=direct"
cat >"$files/init" <<END
#!/bin/sh
B=/bin/busybox
\$B mount -t devtmpfs none /dev
\$B mount -t proc none /proc
\$B mount -t sysfs none /sys
for module in $(echo $wanted); do [ ! -e /modules/\$module.ko ] || \$B insmod /modules/\$module.ko; done
$make
for queue in /sys/block/vd?/queue; do echo 4096 >\$queue/max_sectors_kb; done
echo $ahead >/sys/block/$array/queue/read_ahead_kb
for gib in 1 2 3; do /bin/addpart /dev/$array \$gib \$((gib << 21)) $((mib << 11)); done
\$B sleep 1
$mark
\$B cat /dev/${part}1 >/dev/null
$mark
/bin/cmp /dev/${part}2 /dev/${part}3 && echo all is read
$mark
\$B poweroff -f
END
chmod +x "$files/init"
(cd "$files" && find . | busybox cpio -o -H newc 2>/dev/null) >"$work/initrd"
timeout 1200 qemu-system-x86_64 -accel tcg -cpu qemu64 -m 1024 -smp 1 -nodefaults -no-reboot -display none -serial stdio \
    -kernel "$kernel" -initrd "$work/initrd" -append 'console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on' \
    "${disks[@]}" </dev/null >"$work/console" 2>&1
grep -q '^all is read' "$work/console" || { cat "$work/console" >&2; exit 1; }

# The logs are complete once the servers have ended.
set +e
stop
set -e
# submitted, completed, LBN, sectors, drive: of each read.
for k in 0 1 2 3 4; do
    awk -F, -v k=$k '$3 == "read" { print $8, $9, $5, $6, k }' "$work/$k.csv"
done | sort -n | awk -v what="$what" -v ahead="$ahead" -v mib="$mib" '
    function report(name, read,    took, k, share, least) {
        took = last - first
        least = 1
        for (k = 0; k < 5; k++) { share += busy[k] / took / 5; if (busy[k] / took < least) least = busy[k] / took }
        printf "%s, read-ahead %d KiB, %s: %.0f ms of drive time, %.1f MiB/s; %d requests of %.0f KiB; busy %.2f of that time, the least busy drive %.2f\n", \
            what, ahead, name, took, read / took * 1000, requests, sectors / requests / 2, share, least
    }
    # Skips reads of the metadata at both ends of members. (Maps are trusted, because checking them would read in between.)
    $3 < 1000 || $3 > 3e7 { next }
    $3 > 9e6 {
        if (!marks || $1 > marked + 20) {
            if (++marks == 2) report("sequential", mib)
            if (marks == 3) report("alternating", 2 * mib)
            first = last = requests = sectors = 0
            for (k = 0; k < 5; k++) busy[k] = until[k] = 0
        }
        marked = $1
        next
    }
    marks {
        if (!requests) first = $1
        requests++
        sectors += $4
        from = $1 > until[$5] ? $1 : until[$5]
        if ($2 > from) { busy[$5] += $2 - from; until[$5] = $2 }
        if ($2 > last) last = $2
    }'
