//! Drives for a guest: images as SCSI disks with logical sectors of 512 bytes in physical sectors
//! of 4096 bytes.

use std::path::PathBuf;

/// Modules of the guest's kernel for such drives, in loading order.
pub(crate) const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "scsi_common",
    "scsi_mod",
    "sd_mod",
    "virtio_scsi",
];

/// Modules of the guest's kernel for md arrays, in loading order.
pub(crate) const MD: &[&str] = &[
    "md-mod",
    "raid0",
    "raid1",
    "raid6_pq",
    "libcrc32c",
    "xor",
    "async_tx",
    "async_memcpy",
    "async_xor",
    "async_pq",
    "async_raid6_recov",
    "raid456",
];

/// Returns QEMU's arguments for drives with these images.
pub(crate) fn devices(images: &[PathBuf]) -> Vec<String> {
    let mut words = vec!["-device".to_owned(), "virtio-scsi-pci,id=scsi".to_owned()];
    for (n, image) in images.iter().enumerate() {
        let (id, lun) = address(n);
        words.extend([
            "-drive".to_owned(),
            format!("file={},format=raw,if=none,id=d{n}", image.display()),
        ]);
        words.extend(["-device".to_owned(), format!("scsi-hd,drive=d{n},bus=scsi.0,channel=0,scsi-id={id},lun={lun},physical_block_size=4096")]);
    }
    words
}

/// Returns a shell expression for the node of the nth drive. The kernel probes all drives at once,
/// so their names do not identify them.
pub(crate) fn node(n: usize) -> String {
    let (id, lun) = address(n);
    format!("/dev/$(/bin/busybox ls /sys/class/scsi_device/*:0:{id}:{lun}/device/block)")
}

/// Returns commands that wait until all drives have been found, for about ten seconds at most.
pub(crate) fn wait_for(drives: usize) -> String {
    let count = "$(/bin/busybox ls -d /sys/class/scsi_device/*/device/block/* 2>/dev/null | /bin/busybox wc -l)";
    format!(
        "n=0; until [ {count} = {drives} ] || [ $n = 200 ]; do n=$((n + 1)); /bin/busybox usleep 50000; done\n"
    )
}

/// Returns the SCSI target and the LUN of the nth drive.
fn address(n: usize) -> (usize, usize) {
    (n / 32, n % 32)
}
