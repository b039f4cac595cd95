//! Examination of a simulated machine: a directory with a sysfs tree, and a file for the bytes of
//! each block device.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::PathBuf;

use tempfile::TempDir;
use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::{MediaKind, SizeSource};
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Kind, Rule, Severity, Stack};

use crate::image::{MIB, finding, run, wrong};

/// A directory with stand-ins for `/sys` and `/dev`.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let root = TempDir::new().unwrap();
        for folder in ["sys/class/block", "dev"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Machine { root }
    }

    /// Returns the path of a device. In sysfs, the kernel writes a `/` in a name as `!`.
    fn dev(&self, name: &str) -> PathBuf {
        self.root.path().join("dev").join(name.replace('!', "/"))
    }

    /// Adds a device with `files` in its sysfs directory, which is `path` below `sys/devices`. The
    /// path of a partition begins with that of its drive.
    fn device(&self, path: &str, bytes: u64, files: &[(&str, &str)]) {
        let name = path.rsplit('/').next().unwrap();
        let folder = self.root.path().join("sys/devices").join(path);
        fs::create_dir_all(folder.join("holders")).unwrap();
        fs::create_dir_all(folder.join("slaves")).unwrap();
        fs::write(folder.join("size"), format!("{}\n", bytes / 512)).unwrap();
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        symlink(&folder, self.root.path().join("sys/class/block").join(name)).unwrap();
        fs::create_dir_all(self.dev(name).parent().unwrap()).unwrap();
        File::create(self.dev(name))
            .unwrap()
            .set_len(bytes)
            .unwrap();
    }

    /// Writes bytes to a device.
    fn write(&self, name: &str, at: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.dev(name)).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    /// Records that the device `above` lies on the device `below`.
    fn hold(&self, below: &str, above: &str) {
        let class = self.root.path().join("sys/class/block");
        fs::write(class.join(below).join("holders").join(above), "").unwrap();
        fs::write(class.join(above).join("slaves").join(below), "").unwrap();
    }

    fn examine(&self, names: &[&str]) -> Stack {
        let targets: Vec<PathBuf> = names.iter().map(|name| self.dev(name)).collect();
        let host = HostPaths {
            sys: self.root.path().join("sys"),
            dev: self.root.path().join("dev"),
        };
        examine_targets(&targets, &StatedDrive::default(), &host).unwrap()
    }
}

/// The sysfs attributes of a 512e hard disk drive.
const DRIVE: [(&str, &str); 7] = [
    ("queue/logical_block_size", "512"),
    ("queue/physical_block_size", "4096"),
    ("queue/minimum_io_size", "4096"),
    ("queue/optimal_io_size", "0"),
    ("queue/rotational", "1"),
    ("queue/zoned", "none"),
    ("alignment_offset", "0"),
];

/// Returns [`DRIVE`] with some attributes changed or added.
fn with<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let kept = DRIVE
        .into_iter()
        .filter(|(file, _)| changes.iter().all(|(changed, _)| changed != file));
    kept.chain(changes.iter().copied()).collect()
}

/// Without a target, are all drives found with the kernel's values, but no memory devices or unused
/// loop devices? Is there a note on the solid-state drive, and no warning?
#[test]
fn every_drive() {
    let machine = Machine::new();
    machine.device(
        "ata1/sda",
        64 * MIB,
        &with(&[("device/vendor", "ATA"), ("device/model", "Some Drive")]),
    );
    machine.device(
        "pci/nvme0n1",
        64 * MIB,
        &with(&[
            ("queue/rotational", "0"),
            ("queue/physical_block_size", "512"),
            ("queue/minimum_io_size", "512"),
        ]),
    );
    machine.device("virtual/zram0", 64 * MIB, &DRIVE);
    machine.device("virtual/loop0", 0, &DRIVE);
    let stack = machine.examine(&[]);
    let disks: Vec<_> = stack
        .layers
        .iter()
        .filter_map(|layer| match &layer.kind {
            Kind::Disk(disk) => Some((
                layer.name.as_str(),
                disk.physical_bytes,
                disk.physical_by,
                disk.medium,
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        disks,
        [
            ("nvme0n1", 512, SizeSource::Kernel, MediaKind::SolidState),
            ("sda", 4096, SizeSource::Kernel, MediaKind::Rotating),
        ]
    );
    assert_eq!(wrong(&stack), [""; 0]);
    finding(&stack, Rule::SolidState);
}

/// Is there a note on a loop device that reports sectors of 512 bytes, only if its content would be
/// misaligned on larger ones? Is there none on a drive, which knows its own?
#[test]
fn sectors_below_a_loop_device() {
    let sfdisk = tool!("sfdisk");
    for (name, start, notes) in [("loop7", 63, 1), ("loop7", 64, 0), ("sda", 63, 0)] {
        let machine = Machine::new();
        let small = with(&[
            ("queue/physical_block_size", "512"),
            ("queue/minimum_io_size", "512"),
        ]);
        machine.device(&format!("virtual/{name}"), 64 * MIB, &small);
        let script = format!("label: dos\nstart={start},size=80000\n");
        let device = machine.dev(name);
        run(&sfdisk, &device, &["-q", "@"], &script);
        let stack = machine.examine(&[name]);
        let rows = traxtent_check::findings(&stack, None, None, &[]);
        let hints = rows
            .iter()
            .filter(|row| row.finding.rule == Rule::HintPhysical);
        let hints: Vec<_> = hints.collect();
        assert_eq!(hints.len(), notes, "{name}, {start}: {rows:#?}");
        for row in hints {
            assert_eq!(row.finding.severity, Severity::Info);
            let note = &row.fix.as_ref().unwrap().note;
            assert!(note.contains("--physical-sector 4K"), "{note}");
        }
    }
}

/// Is each wrong hint reported, and no correct one? Is there a warning about a USB bridge that
/// reports no physical sectors, and a note on a shingled drive?
#[test]
fn wrong_hints() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 10] = [
        (&[("queue/optimal_io_size", "1048576")], &[]),
        (&[("queue/optimal_io_size", "33553920")], &["hint-optimal"]),
        (
            &[
                ("queue/optimal_io_size", "33553920"),
                ("queue/physical_block_size", "512"),
                ("queue/minimum_io_size", "512"),
            ],
            &["hint-optimal"],
        ),
        (&[("queue/optimal_io_size", "5120")], &["hint-optimal"]),
        (&[("queue/minimum_io_size", "512")], &["hint-minimum"]),
        (
            &[
                ("queue/physical_block_size", "512"),
                ("queue/minimum_io_size", "512"),
                ("device/model", "WDC WD10EARS-00Y"),
            ],
            &["hint-physical"],
        ),
        (&[("device/model", "WDC WD10EARS-00Y")], &[]),
        (&[("alignment_offset", "3584")], &["alignment-offset"]),
        (&[("queue/zoned", "host-managed")], &[]),
        (&[("queue/discard_granularity", "512")], &[]),
    ];
    for (changes, expected) in cases {
        let machine = Machine::new();
        machine.device("ata1/sda", 64 * MIB, &with(changes));
        assert_eq!(wrong(&machine.examine(&["sda"])), expected, "{changes:?}");
    }
    let machine = Machine::new();
    let silent = with(&[
        ("queue/physical_block_size", "512"),
        ("queue/minimum_io_size", "512"),
    ]);
    machine.device("pci/usb3/3-1/sdb", 64 * MIB, &silent);
    machine.device(
        "ata1/sdc",
        64 * MIB,
        &with(&[("queue/zoned", "host-managed")]),
    );
    assert_eq!(wrong(&machine.examine(&[])), ["hint-bridge"]);
    finding(&machine.examine(&["sdc"]), Rule::Shingled);
}

/// Is the medium of each drive identified from the kernel's flags and the drive's VPD page B1h, and
/// is the advice suitable?
#[test]
fn media_of_drives() {
    // After the header of four bytes: rotation rate (two bytes), product type, form factor, zones.
    let page = |rate: u16, zoned: u8| {
        let mut page = vec![0, 0xb1, 0, 0x3c];
        page.extend(rate.to_be_bytes());
        page.extend([0, 2, zoned << 4]);
        page.resize(64, 0);
        page
    };
    type Case<'a> = (
        &'a [(&'a str, &'a str)],
        Option<Vec<u8>>,
        MediaKind,
        &'a str,
    );
    let cases: [Case<'_>; 9] = [
        (&[], None, MediaKind::Rotating, ""),
        (&[], Some(page(7200, 0)), MediaKind::Rotating, ""),
        // Behind a bridge, the kernel's flag keeps its default, so the page is used.
        (
            &[("queue/rotational", "1")],
            Some(page(1, 0)),
            MediaKind::SolidState,
            "multiples of 1 MiB",
        ),
        (
            &[("queue/rotational", "0")],
            Some(page(7200, 0)),
            MediaKind::Rotating,
            "",
        ),
        (
            &[],
            Some(page(5400, 2)),
            MediaKind::ShingledHidden,
            "out of arrays",
        ),
        // A kernel that treats host-aware drives as drives without zones.
        (
            &[],
            Some(page(5400, 1)),
            MediaKind::ShingledHostAware,
            "in long runs",
        ),
        (
            &[("queue/zoned", "host-managed")],
            Some(page(7200, 0)),
            MediaKind::ShingledHostManaged,
            "write zones in order",
        ),
        (
            &[("queue/zoned", "host-managed"), ("queue/rotational", "0")],
            None,
            MediaKind::SolidStateZoned,
            "no tracks",
        ),
        // A truncated page is ignored.
        (
            &[("queue/rotational", "0")],
            Some(vec![0, 0xb1, 0]),
            MediaKind::SolidState,
            "multiples of 1 MiB",
        ),
    ];
    for (changes, page, medium, advice) in cases {
        let machine = Machine::new();
        machine.device("ata1/sda", 64 * MIB, &with(changes));
        if let Some(page) = &page {
            let device = machine.root.path().join("sys/devices/ata1/sda/device");
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vpd_pgb1"), page).unwrap();
        }
        let stack = machine.examine(&["sda"]);
        let Kind::Disk(disk) = &stack.layers[0].kind else {
            panic!("the first layer is not a drive")
        };
        assert_eq!(disk.medium, medium, "{changes:?} {page:?}");
        if !advice.is_empty() {
            let rule = if medium.is_flash() {
                Rule::SolidState
            } else {
                Rule::Shingled
            };
            let what = finding(&stack, rule).what;
            assert!(what.contains(advice), "{what}");
        }
    }
}

/// Is an array found exactly once, from its device, from a drive and from a partition? Are members
/// with different sector sizes reported?
#[test]
fn array_of_two_drives() {
    let (sgdisk, fdisk, mke2fs) = (tool!("sgdisk"), tool!("fdisk"), tool!("mke2fs"));
    let machine = Machine::new();
    let native = with(&[("queue/logical_block_size", "4096")]);
    for (drive, files) in [("sda", &DRIVE[..]), ("sdb", &native)] {
        machine.device(&format!("ata/{drive}"), 64 * MIB, files);
        let part = format!("{drive}1");
        machine.device(
            &format!("ata/{drive}/{part}"),
            32 * MIB,
            &[("partition", "1"), ("start", "2048")],
        );
        let sector = if drive == "sda" { 512 } else { 4096 };
        // sgdisk assumes 512-byte sectors in every image, so fdisk writes the second table.
        if sector == 512 {
            run(
                &sgdisk,
                &machine.dev(drive),
                &["-n", "1:2048:+32M", "@"],
                "",
            );
        } else {
            let keys = "g\nn\n1\n256\n8447\nw\n";
            run(&fdisk, &machine.dev(drive), &["-b", "4096", "@"], keys);
        }
    }
    machine.device("virtual/md0", 16 * MIB, &[("md/level", "raid1")]);
    for part in ["sda1", "sdb1"] {
        machine.hold(part, "md0");
    }
    // A superblock of version 1.2 on each partition, and a file system in the array.
    for (number, drive) in [(0, "sda"), (1, "sdb")] {
        let file = File::options()
            .write(true)
            .open(machine.dev(drive))
            .unwrap();
        let write = |at: u64, bytes: &[u8]| {
            std::os::unix::fs::FileExt::write_all_at(&file, bytes, MIB + at).unwrap()
        };
        let mut superblock = vec![0; 512];
        let mut put =
            |at: usize, value: u64| superblock[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0, 0x0000_0001_a92b_4efc);
        put(72, 1);
        put(80, 32_768);
        put(92, 2);
        put(128, 2048);
        put(136, 32_768);
        put(144, 8);
        put(160, number);
        put(220, 2);
        // The roles of the members 0 and 1.
        put(256, 1 << 16);
        write(4096, &superblock);
    }
    run(
        &mke2fs,
        &machine.dev("md0"),
        &["-q", "-F", "-b", "4096", "@"],
        "",
    );

    for target in ["md0", "sda", "sdb1"] {
        let stack = machine.examine(&[target]);
        let arrays: Vec<_> = stack
            .layers
            .iter()
            .filter(|layer| matches!(layer.kind, Kind::Array(_)))
            .collect();
        assert_eq!(arrays.len(), 1, "from {target}");
        assert_eq!(
            (arrays[0].name.as_str(), arrays[0].on.len()),
            ("md0", 2),
            "from {target}"
        );
        assert!(
            stack
                .layers
                .iter()
                .any(|layer| layer.name.starts_with("ext")),
            "from {target}"
        );
        assert_eq!(wrong(&stack), ["mixed-sectors"], "from {target}");
    }
}

/// Is the content of a LUKS device that the kernel has opened examined through the device-mapper
/// device?
#[test]
fn opened_luks() {
    let (cryptsetup, mke2fs) = (tool!("cryptsetup"), tool!("mke2fs"));
    let machine = Machine::new();
    machine.device("ata/sda", 64 * MIB, &DRIVE);
    let mapper = [("dm/name", "home"), ("dm/uuid", "CRYPT-LUKS2-0123-home")];
    machine.device("virtual/dm-0", 48 * MIB, &mapper);
    machine.hold("sda", "dm-0");
    let options = [
        "-q",
        "luksFormat",
        "--type",
        "luks2",
        "--pbkdf",
        "pbkdf2",
        "--pbkdf-force-iterations",
        "1000",
        "--key-file",
        "-",
        "--sector-size",
        "4096",
        "@",
    ];
    run(&cryptsetup, &machine.dev("sda"), &options, "key");
    run(
        &mke2fs,
        &machine.dev("dm-0"),
        &["-q", "-F", "-b", "1024", "@"],
        "",
    );
    let stack = machine.examine(&["sda"]);
    let names: Vec<&str> = stack
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(names[..3], ["sda", "LUKS2", "dm-0"]);
    assert_eq!(wrong(&stack), ["fs-block"]);
}

/// Is a table in an array read with the sector size of the array's drives, even if a drive with
/// another sector size is examined afterwards?
#[test]
fn table_in_an_array() {
    let machine = Machine::new();
    machine.device("ata/sda", 64 * MIB, &DRIVE);
    let native = with(&[("queue/logical_block_size", "4096")]);
    machine.device("ata/sdb", 64 * MIB, &native);
    machine.device("virtual/md0", 16 * MIB, &[("md/level", "raid1")]);
    machine.hold("sda", "md0");
    // A superblock of version 1.2, and a table in the array.
    let mut superblock = vec![0; 512];
    for (at, value) in [
        (0, 0x0000_0001_a92b_4efc),
        (72, 1),
        (80, 32_768),
        (92, 2),
        (128, 2048),
        (136, 32_768),
        (144, 8),
        (220, 2),
    ] {
        let value: u64 = value;
        superblock[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    machine.write("sda", 4096, &superblock);
    machine.write("md0", 0, &mbr(2048, 8192));
    let stack = machine.examine(&["sda", "sdb"]);
    let mut layers = stack.layers.iter();
    let partition = layers.find(|layer| matches!(layer.kind, Kind::Partition(_)));
    let partition = partition.unwrap_or_else(|| panic!("{stack:#?}"));
    assert_eq!((partition.on[0].start, partition.bytes), (MIB, 4 * MIB));
}

/// Returns an MBR with one partition.
fn mbr(first: u32, sectors: u32) -> [u8; 512] {
    let mut mbr = [0; 512];
    mbr[446 + 4] = 0x83;
    mbr[446 + 8..446 + 12].copy_from_slice(&first.to_le_bytes());
    mbr[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    mbr
}

/// Are partitions and opened devices found on a drive whose node is in a directory below `/dev`?
#[test]
fn nodes_in_a_directory() {
    let machine = Machine::new();
    machine.device("pci/cciss!c0d0", 64 * MIB, &DRIVE);
    let part = [("partition", "1"), ("start", "2048")];
    machine.device("pci/cciss!c0d0/cciss!c0d0p1", 4 * MIB, &part);
    let mapper = [("dm/name", "home"), ("dm/uuid", "CRYPT-PLAIN-home")];
    machine.device("virtual/dm-0", 4 * MIB, &mapper);
    machine.hold("cciss!c0d0p1", "dm-0");
    machine.write("cciss!c0d0", 0, &mbr(2048, 8192));
    let stack = machine.examine(&["cciss!c0d0"]);
    let names: Vec<&str> = stack
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(names[..4], ["cciss!c0d0", "MBR", "cciss!c0d0p1", "unknown"]);
    assert!(names.contains(&"dm-0"), "{names:?}");
}

/// Is a drive that cannot be read reported?
#[test]
fn unreadable() {
    let machine = Machine::new();
    machine.device("ata/sda", 64 * MIB, &DRIVE);
    fs::remove_file(machine.dev("sda")).unwrap();
    fs::create_dir(machine.dev("sda")).unwrap();
    let stack = machine.examine(&[]);
    assert_eq!(wrong(&stack), ["unreadable"]);
}
