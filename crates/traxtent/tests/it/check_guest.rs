//! `traxtent check` on the devices of a stock kernel with device mapper and zoned drives, in an
//! emulated machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use testkit::guest::Guest;

/// The kernel modules that the guest loads, in order.
const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "scsi_common",
    "scsi_mod",
    "sd_mod",
    "virtio_scsi",
    "dm-mod",
    "dm-multipath",
    "dm-round-robin",
    "dm-bufio",
    "libcrc32c",
    "dm-bio-prison",
    "dm-persistent-data",
    "dm-thin-pool",
    "scsi_debug dev_size_mb=64 sector_size=512 zbc=managed zone_size_mb=4 zone_nr_conv=2",
];

/// The drives: the name of an image, and the properties of QEMU's drive.
const DRIVES: [(&str, &str); 5] = [
    ("one.img", "physical_block_size=4096,rotation_rate=7200"),
    // Two paths to one drive.
    ("two.img", "physical_block_size=4096,serial=same"),
    ("two.img", "physical_block_size=4096,serial=same"),
    ("flash.img", "physical_block_size=4096,rotation_rate=1"),
    // For the thin pool.
    ("thin.img", "physical_block_size=4096"),
];

/// The commands that create the stacks in the guest and check them.
const SCRIPT: &str = r#"
export PATH=/bin LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1
$B mkdir -p /etc/lvm /run/lvm /dev/mapper
printf 'activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 }\nglobal { use_lvmlockd=0 thin_check_executable="" }\ndevices { obtain_device_list_from_udev=0 use_devicesfile=0 external_device_info_source="none" multipath_component_detection=0 }\n' >/etc/lvm/lvm.conf
n=0; until [ "$($B ls -d /sys/class/scsi_device/*/device/block/* 2>/dev/null | $B wc -l)" = 6 ] || [ $n = 200 ]; do n=$((n + 1)); $B usleep 50000; done
# The drive of scsi_debug is also unit 0, but on another SCSI host.
node() { for d in /sys/class/scsi_device/*:0:0:$1/device; do $B grep -q QEMU $d/vendor && $B ls $d/block; done; }
zoned=$($B grep -l host-managed /sys/block/*/queue/zoned | $B cut -d/ -f4)
for n in 1 2 3 4 5; do eval "D$n=$(node $((n - 1)))"; done
section() { echo "<<<$1"; shift; "$@" 2>&1; echo "exit $?"; echo '>>>'; }
size=$($B cat /sys/block/$D2/size)
/bin/dmsetup create mpatha --uuid mpath-36000c29same --table "0 $size multipath 0 0 2 1 round-robin 0 1 1 /dev/$D2 1 round-robin 0 1 1 /dev/$D3 1"
/bin/dmsetup mknodes
/bin/mke2fs -q -t ext4 -b 1024 /dev/mapper/mpatha
lvm pvcreate --yes /dev/$D5 >/dev/null; lvm vgcreate vg0 /dev/$D5 >/dev/null
lvm lvcreate --yes --type thin-pool -L 64M --chunksize 64k -Zn -n pool vg0
lvm lvcreate --yes -V 200M --thinpool pool -n thin vg0
lvm vgchange -ay vg0 >/dev/null 2>&1; /bin/dmsetup mknodes
/bin/mke2fs -q -t ext4 -b 1024 /dev/mapper/vg0-thin
$B sync
section multipath traxtent check /dev/$D2 --json
section thin traxtent check /dev/$D5 --json
section zoned traxtent check /dev/$zoned --json
section flash traxtent check /dev/$D4 --json
section disk traxtent check /dev/$D1 --json
"#;

fn boot(folder: &Path) -> Result<String, String> {
    let names = ["dmsetup", "lvm", "mke2fs"];
    let mut programs: Vec<(PathBuf, &str)> =
        vec![(env!("CARGO_BIN_EXE_traxtent").into(), "traxtent")];
    for name in names {
        let path = testkit::tool(name).ok_or_else(|| format!("{name} is not installed"))?;
        programs.push((path, name));
    }
    let mut devices = vec!["-device".to_owned(), "virtio-scsi-pci,id=scsi".to_owned()];
    for (n, (image, properties)) in DRIVES.iter().enumerate() {
        let path = folder.join(image);
        File::create(&path).unwrap().set_len(256 << 20).unwrap();
        devices.extend([
            "-drive".to_owned(),
            format!(
                "file={},format=raw,if=none,id=d{n},file.locking=off",
                path.display()
            ),
            "-device".to_owned(),
            format!(
                "scsi-hd,drive=d{n},bus=scsi.0,channel=0,scsi-id=0,lun={n},share-rw=on,{properties}"
            ),
        ]);
    }
    let programs: Vec<(&Path, &str)> = programs
        .iter()
        .map(|(path, name)| (path.as_path(), *name))
        .collect();
    Guest {
        name: "check",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: MODULES,
        programs: &programs,
        files: &[],
        script: SCRIPT,
        devices: &devices,
        limit: Duration::from_secs(180),
    }
    .run()
}

/// Returns the JSON report in a named section of the console output.
fn report(console: &str, name: &str) -> Value {
    let section = console.split(&format!("<<<{name}")).nth(1);
    let text = section.and_then(|rest| rest.split(">>>").next());
    let text = text.unwrap_or_else(|| panic!("{name}:\n{console}"));
    // The report is surrounded by messages and the exit status.
    let json = text.find('{').zip(text.rfind('}'));
    let (from, to) = json.unwrap_or_else(|| panic!("{name}: {text}"));
    serde_json::from_str(&text[from..=to]).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|found| found["rule"].as_str().unwrap())
        .collect()
}

fn kinds(report: &Value) -> Vec<&str> {
    let layers = report["layers"].as_array().unwrap();
    layers
        .iter()
        .map(|layer| layer["kind"].as_str().unwrap())
        .collect()
}

/// Are multiple paths to a drive, thin pools and thin volumes followed to their content, as a
/// kernel presents them? Are zoned, solid-state and rotating drives distinguished by their
/// properties?
#[test]
fn stacks_of_a_kernel() {
    let folder = TempDir::new().unwrap();
    let console = match boot(folder.path()) {
        Ok(console) => console,
        Err(missing) => testkit::skip!("{missing}"),
    };
    let multipath = report(&console, "multipath");
    let opened = kinds(&multipath)
        .into_iter()
        .filter(|&kind| kind == "opened");
    assert_eq!(opened.count(), 1, "{multipath:#}");
    assert!(
        multipath.to_string().contains("(another path)"),
        "{multipath:#}"
    );
    assert!(kinds(&multipath).contains(&"ext"), "{multipath:#}");
    assert!(rules(&multipath).contains(&"fs-block"), "{multipath:#}");

    let thin = report(&console, "thin");
    for kind in ["physical-volume", "thin-pool", "ext"] {
        assert!(kinds(&thin).contains(&kind), "no {kind} in {thin:#}");
    }
    assert!(rules(&thin).contains(&"fs-block"), "{thin:#}");

    let medium = |name| report(&console, name)["layers"][0]["medium"].clone();
    // The drive of scsi_debug reports that it does not rotate.
    assert_eq!(medium("zoned"), "solid-state-zoned");
    assert_eq!(medium("flash"), "solid-state");
    assert_eq!(medium("disk"), "rotating");
    assert!(rules(&report(&console, "zoned")).contains(&"solid-state"));
    let _ = fs::remove_dir_all(folder.path());
}
