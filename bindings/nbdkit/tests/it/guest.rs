//! A guest with a stock kernel on served drives, by qemu's own client.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use testkit::guest::Guest;

use crate::nbdkit::{Server, key, run, small};

const MODULES: [&str; 10] = [
    "scsi_common",
    "scsi_mod",
    "sd_mod",
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
];

/// What the guest does with each of its two disks.
const SCRIPT: &str = r#"
for disk in sda vda; do
  n=0
  while ! [ -b /dev/$disk ] && [ $n -lt 100 ]; do $B usleep 100000; n=$((n + 1)); done
  queue=/sys/block/$disk/queue
  for what in logical_block_size physical_block_size; do
    echo "$disk $what $($B cat $queue/$what)"
  done
  echo "$disk sectors $($B cat /sys/block/$disk/size)"
  /bin/mke2fs -q -t ext4 /dev/$disk && echo "$disk made"
  $B mkdir -p /tmp/$disk
  $B mount -t ext4 /dev/$disk /tmp/$disk && echo "$disk mounted"
  $B cp /bin/mke2fs /tmp/$disk/copy
  $B umount /tmp/$disk
  echo 3 >/proc/sys/vm/drop_caches
  $B mount -t ext4 -o ro /dev/$disk /tmp/$disk
  $B cmp /bin/mke2fs /tmp/$disk/copy && echo "$disk holds it"
  $B umount /tmp/$disk
done
"#;

/// Does a guest find its drives with their sizes of sectors, make file systems, and read back what it wrote;
/// and are the file systems sound when it has gone?
#[test]
fn a_guest_uses_drives() {
    let (_, mke2fs) = (testkit::tool!("nbdkit"), testkit::tool!("mke2fs"));
    let e2fsck = testkit::tool!("e2fsck");
    let drives = [
        ("scsi-hd", "sda", 512, 4096),
        ("virtio-blk-pci", "vda", 4096, 4096),
    ];
    let folders = drives.map(|_| TempDir::new().unwrap());
    let mut devices = vec!["-device".to_owned(), "virtio-scsi-pci".to_owned()];
    let mut servers = Vec::new();
    for ((device, name, logical, physical), folder) in drives.into_iter().zip(&folders) {
        let data = folder.path().join("data.img");
        let server = Server::start(&[
            key("drive", small(folder.path(), logical, physical)),
            key("file", data.display()),
        ]);
        devices.extend([
            "-blockdev".to_owned(),
            format!(
                "driver=nbd,node-name={name},server.type=unix,server.path={}",
                server.socket().display()
            ),
            "-device".to_owned(),
            format!(
                "{device},drive={name},logical_block_size={logical},physical_block_size={physical}"
            ),
        ]);
        servers.push((server, data));
    }
    let guest = Guest {
        name: "served",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &MODULES,
        programs: &[(&mke2fs, "mke2fs")],
        script: SCRIPT,
        devices: &devices,
        limit: Duration::from_secs(180),
    };
    let console = match guest.run() {
        Ok(console) => console,
        Err(missing) => testkit::skip!("{missing}"),
    };
    for (_, name, logical, physical) in drives {
        for line in [
            format!("{name} logical_block_size {logical}"),
            format!("{name} physical_block_size {physical}"),
            format!("{name} sectors {}", (64 << 20) / 512),
            format!("{name} made"),
            format!("{name} mounted"),
            format!("{name} holds it"),
        ] {
            assert!(
                console.lines().any(|shown| shown.trim_end() == line),
                "the guest's console has no line {line:?}:\n{console}"
            );
        }
    }
    for (server, data) in servers {
        server.signal("TERM");
        server.wait();
        run(&e2fsck, &["-f", "-n", &data.display().to_string()]);
    }
}
