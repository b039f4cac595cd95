#!/bin/sh
# Runs a phase on a served drive, with the kernel of a machine that qemu emulates: builds its initrd and boots it.
#
# guest.sh PHASE FILE-SYSTEM FIRST-SECTOR SECTORS FOLDER TARBALL ROOT RELEASE, with the drive's socket in $socket
#
# ROOT/boot and ROOT/lib/modules have the kernel RELEASE. The drive is the guest's first disk and the tarball its
# second; addpart defines the partition, so the drive holds only the file system. The disk is set up as
# phase.sh sets up a loop device, and qemu passes its requests on unchanged.
set -eu
phase=$1 kind=$2 first=$3 sectors=$4 folder=$5 tarball=$6 root=$7 release=$8
files=$folder/files console=$folder/console
PATH=$root/sbin:$root/usr/sbin:$PATH:/usr/sbin:/sbin

put() {
    cp -L "$(command -v "$1")" "$files/bin/$2"
    ldd "$files/bin/$2" | tr ' \t' '\n\n' | grep '^/.*[^:]$' | while read -r library; do
        mkdir -p "$files${library%/*}"
        cp -L "$library" "$files$library"
    done
}

case $kind in
ext4) make='mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0' ;;
btrfs) make='mkfs.btrfs -q -f -K' ;;
jfs) make='mkfs.jfs -q' ;;
reiserfs) make='mkreiserfs -q -ff' ;;
esac
modules='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk'
case $kind in
ext4) modules="$modules crc32c_generic crc16 jbd2 mbcache" ;;
btrfs) modules="$modules crc32c_generic libcrc32c xor raid6_pq zstd_compress blake2b_generic" ;;
esac
modules="$modules $kind"

rm -rf "$files"
mkdir -p "$files/bin" "$files/dev" "$files/proc" "$files/sys" "$files/mounted" "$files/modules"
cp "$(command -v busybox)" "$files/bin/busybox"
ln -s busybox "$files/bin/sh"
put "${make%% *}" make
put addpart addpart
# Not busybox's tar: it sets access times to modification times, and reading the tree then updates them on the drive.
put tar tar
for module in $modules; do
    file=$(find "$root/lib/modules/$release" -name "$module.ko")
    # A missing module is built into the kernel.
    [ -z "$file" ] || cp "$file" "$files/modules/"
done
cat >"$files/init" <<END
#!/bin/sh
B=/bin/busybox
\$B mount -t devtmpfs none /dev
\$B mount -t proc none /proc
\$B mount -t sysfs none /sys
for module in $modules; do
    [ ! -e /modules/\$module.ko ] || \$B insmod /modules/\$module.ko
done
queue=/sys/block/vda/queue
echo 512 >\$queue/max_sectors_kb
echo 128 >\$queue/read_ahead_kb
echo 1 >\$queue/rotational
work() {
    /bin/addpart /dev/vda 1 $first $sectors || return
    if [ $phase = mkfs ]; then
        /bin/make ${make#* } /dev/vda1 && \$B sync
        return
    fi
    \$B mount -t $kind /dev/vda1 /mounted || return
    case $phase in
    extract) /bin/tar -xf /dev/vdb -C /mounted ;;
    copy) \$B cat /dev/vdb >/mounted/tarball ;;
    read-tree) \$B find /mounted/linux -type f -exec \$B cat {} + >/dev/null ;;
    read-tarball) \$B cat /mounted/tarball >/dev/null ;;
    remove) \$B rm -r /mounted/linux ;;
    esac && \$B umount /mounted
}
work && echo $phase is done
\$B poweroff -f
END
chmod +x "$files/init"
(cd "$files" && find . | busybox cpio -o -H newc 2>/dev/null) >"$folder/initrd"

timeout 3600 qemu-system-x86_64 -accel tcg -cpu qemu64 -m 2048 -smp 1 -nodefaults -no-reboot -display none \
    -serial stdio -kernel "$root/boot/vmlinuz-$release" -initrd "$folder/initrd" \
    -append 'console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on' \
    -blockdev "driver=nbd,node-name=drive,server.type=unix,server.path=$socket" \
    -device virtio-blk-pci,drive=drive,num-queues=1,request-merging=off \
    -blockdev "driver=raw,node-name=source,read-only=on,file.driver=file,file.filename=$tarball" \
    -device virtio-blk-pci,drive=source </dev/null >"$console"
grep -q "^$phase is done" "$console" || {
    cat "$console" >&2
    exit 1
}
