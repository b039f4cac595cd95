//! The cases with md, which need a kernel to create them: a Debian kernel in an emulated machine,
//! booted once for all cases.
//!
//! Every case has its own drives, with physical sectors of 4096 bytes; `$W` to `$Z` are their
//! nodes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::guest::Guest;

use super::cases::TODAY;
use super::workshop;
use super::{Case, CreatedCase, ImageMaker};
use crate::drives;

const fn case(
    name: &'static str,
    made_by: &'static str,
    wrong: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        name,
        made_by,
        drive: TODAY,
        findings: wrong,
    }
}

/// The number of drives of each case.
const DRIVES: usize = 4;
const DRIVE_BYTES: u64 = 1 << 30;

const CASES: &[Case] = &[
    case(
        "RAID 5 with ext4 with default options",
        "md -l 5 -n 4 -c 64 $W $X $Y $Z; /bin/mke2fs -q -t ext4 -b 4096 /dev/md0",
        &[],
    ),
    case(
        "RAID 5 with ext4 configured for other stripes",
        "md -l 5 -n 4 -c 64 $W $X $Y $Z; /bin/mke2fs -q -t ext4 -b 4096 -E stride=9,stripe_width=128 /dev/md0",
        &[("ext-stride", "ext4")],
    ),
    case(
        "RAID 5 in partitions at sector 34",
        "for d in $W $X $Y; do sgdisk -a 1 -n 1:34:0 $d; done; md -l 5 -n 3 -c 64 ${W}1 ${X}1 ${Y}1",
        &[("partition-start", "partition 1")],
    ),
    case(
        "RAID 5 in partitions at 1 MiB",
        "for d in $W $X $Y; do sgdisk -n 1:0:0 $d; done; md -l 5 -n 3 -c 64 ${W}1 ${X}1 ${Y}1",
        &[],
    ),
    case(
        "RAID 1 with metadata version 1.0",
        "md -e 1.0 -l 1 -n 2 $W $X; /bin/mke2fs -q -t ext4 -b 4096 /dev/md0",
        &[],
    ),
    case(
        "RAID 5 with metadata version 0.90",
        "md -e 0.90 -l 5 -n 3 -c 64 $W $X $Y; /bin/mke2fs -q -t ext4 -b 4096 -E stride=16,stripe_width=32 /dev/md0",
        &[],
    ),
    case(
        "RAID 5 with misaligned data",
        "md -l 5 -n 3 -c 64 --data-offset=1025K $W $X $Y",
        &[("data-start", "md member")],
    ),
    case(
        "RAID 5 with a partition off its stripes",
        "md -l 5 -n 4 -c 64 $W $X $Y $Z; sgdisk -a 1 -n 1:2048:0 /dev/md0",
        &[("partition-stripe", "partition 1")],
    ),
    case(
        "RAID 5 with a partition on its stripes",
        "md -l 5 -n 4 -c 64 $W $X $Y $Z; sgdisk -a 1 -n 1:2304:0 /dev/md0",
        &[],
    ),
    case(
        "RAID 6 with XFS configured for the stripes of the array",
        "md -l 6 -n 4 -c 64 $W $X $Y $Z; mkfs.xfs -q -s size=4096 -d su=64k,sw=2 -l su=64k /dev/md0",
        &[],
    ),
    case(
        "RAID 0 with XFS configured for other stripes",
        "md -l 0 -n 2 -c 64 $W $X; mkfs.xfs -q -s size=4096 -d su=128k,sw=4 -l su=128k /dev/md0",
        &[("xfs-unit", "XFS")],
    ),
];

/// Creates the images of all cases.
pub(super) fn make(workshop: &ImageMaker) -> Vec<(&'static Case, CreatedCase)> {
    let booted = boot(workshop);
    CASES
        .iter()
        .map(|case| {
            let made = match &booted {
                Ok(()) => CreatedCase::Images(workshop::images(&workshop.folder_of(case.name))),
                Err(why) => CreatedCase::Unavailable(why.clone()),
            };
            (case, made)
        })
        .collect()
}

/// Creates the images of all cases in a guest. Returns the reason if that is not possible here.
fn boot(workshop: &ImageMaker) -> Result<(), String> {
    let programs = ["mdadm", "sgdisk", "mke2fs", "mkfs.xfs"];
    let paths = programs.map(testkit::tool);
    let mut with: Vec<(&Path, &str)> = Vec::new();
    for (path, name) in paths.iter().zip(programs) {
        let path = path
            .as_ref()
            .ok_or_else(|| format!("{name} is not installed"))?;
        with.push((path, name));
    }
    let mut images = Vec::new();
    let mut script =
        "export PATH=/bin\nmd() { mdadm --create /dev/md0 --run --quiet \"$@\" </dev/null; }\n"
            .to_owned();
    script += &drives::wait_for(CASES.len() * DRIVES);
    for case in CASES {
        let first = images.len();
        images.extend(drives_of(case, workshop));
        let nodes = (first..first + DRIVES)
            .map(drives::node)
            .zip("WXYZ".chars());
        script += &nodes
            .map(|(node, letter)| format!("{letter}={node}\n"))
            .collect::<String>();
        script += &format!(
            "( set -e; {} ) >/tmp/says 2>&1\n[ $? = 0 ] && echo 'made: {}' || /bin/busybox cat /tmp/says\n",
            case.made_by, case.name
        );
        script += "mdadm --stop --scan >/dev/null 2>&1\n";
    }
    let modules = [drives::MODULES, drives::MD].concat();
    let guest = Guest {
        name: "arrays",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &modules,
        programs: &with,
        files: &[],
        script: &script,
        devices: &drives::devices(&images),
        limit: Duration::from_secs(120),
    };
    let console = guest.run()?;
    for case in CASES {
        let made = console.contains(&format!("made: {}", case.name));
        assert!(made, "{}: the guest's console:\n{console}", case.name);
    }
    Ok(())
}

/// Creates the empty images of a case.
fn drives_of(case: &Case, workshop: &ImageMaker) -> Vec<PathBuf> {
    let folder = workshop.folder_of(case.name);
    std::fs::create_dir_all(&folder).unwrap();
    let image = |n| folder.join(format!("disk{n}.img"));
    let images: Vec<PathBuf> = (0..DRIVES).map(image).collect();
    for image in &images {
        File::create(image).unwrap().set_len(DRIVE_BYTES).unwrap();
    }
    images
}
