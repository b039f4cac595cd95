//! Tests of served drives in a guest with a stock kernel, attached by QEMU's client and by the
//! guest kernel's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use testkit::guest::Guest;

use crate::server::{Server, TRAXTENT, argument, option, run, small};

const MODULES: [&str; 11] = [
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
    "nbd",
];

/// The script that serves a drive in the guest itself, and attaches it by the command that
/// `traxtent serve` prints.
const BY_KERNEL: &str = r#"
/bin/traxtent serve /files/drive.toml --socket /tmp/socket >/tmp/served &
n=0
while ! [ -S /tmp/socket ] && [ $n -lt 100 ]; do $B usleep 100000; n=$((n + 1)); done
/bin/nbd-client -b 512 -unix /tmp/socket /dev/nbd0
"#;

/// The guest's operations on each of its disks.
const SCRIPT: &str = r#"
for disk in sda vda nbd0; do
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
/bin/nbd-client -d /dev/nbd0 && echo "nbd0 gone"
"#;

/// Is the guest's `nbd-client` command the same as in `docs/guides/serve.md`?
#[test]
fn nbd_client_is_run_as_documented() {
    let docs = std::fs::read_to_string(testkit::workspace().join("docs/guides/serve.md")).unwrap();
    let documented = "nbd-client -b 512 -unix $socket /dev/nbd0";
    assert!(docs.contains(documented));
    assert!(BY_KERNEL.contains(&documented.replace("$socket", "/tmp/socket")));
}

/// Does a guest find its drives with their sizes and sector sizes, create file systems, and read
/// back its data? Are the file systems on the drives that the host serves consistent afterwards?
#[test]
fn a_guest_uses_drives() {
    let mke2fs = testkit::tool!("mke2fs");
    let (e2fsck, nbd_client) = (testkit::tool!("e2fsck"), testkit::tool!("nbd-client"));
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
            argument(small(folder.path(), logical, physical)),
            option("file", data.display()),
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
    let own = TempDir::new().unwrap();
    let profile = PathBuf::from(small(own.path(), 512, 4096));
    let guest = Guest {
        name: "served",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &MODULES,
        programs: &[
            (&mke2fs, "mke2fs"),
            (Path::new(TRAXTENT), "traxtent"),
            (&nbd_client, "nbd-client"),
        ],
        files: &[(&profile, "drive.toml")],
        script: &[BY_KERNEL, SCRIPT].concat(),
        devices: &devices,
        limit: Duration::from_secs(180),
    };
    let console = match guest.run() {
        Ok(console) => console,
        Err(missing) => testkit::skip!("{missing}"),
    };
    // The kernel's client reports the logical size as the physical one.
    let seen = drives.map(|(_, name, logical, physical)| (name, logical, physical));
    for (name, logical, physical) in seen.into_iter().chain([("nbd0", 512, 512)]) {
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
