//! Partition tables written by sfdisk, fdisk, parted and sgdisk.

use std::path::PathBuf;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::{PartitionRole, Scheme};
use traxtent_check::{Kind, Rule, Stack};

use crate::image::{Image, MIB, examine_images, finding, first};

fn partitions(stack: &Stack) -> Vec<(u32, u64, u64)> {
    let layers = stack.layers.iter();
    let found = layers.filter_map(|layer| match &layer.kind {
        Kind::Partition(partition) => {
            Some((partition.number, partition.first_sector, partition.sectors))
        }
        _ => None,
    });
    found.collect()
}

/// Returns the partitions as sfdisk lists them.
fn listed(image: &Image, sfdisk: &std::path::Path) -> Vec<(u32, u64, u64)> {
    let text = image.run(sfdisk, &["--dump", "@"], "");
    let name = image.path.to_str().unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let parse = |line: &str| {
        let (number, fields) = line.split_once(':').unwrap();
        let field = |key: &str| {
            let mut fields = fields.split(',');
            let value = fields
                .find_map(|field| field.trim().strip_prefix(key))
                .unwrap();
            value.trim().parse().unwrap()
        };
        (
            number.trim().parse().unwrap(),
            field("start="),
            field("size="),
        )
    };
    lines.map(parse).collect()
}

/// Are primary, extended and logical partitions found as sfdisk lists them, and are exactly the
/// misaligned primary and logical ones reported (paper A)?
#[test]
fn mbr_matches_sfdisk() {
    let sfdisk = tool!("sfdisk");
    let image = Image::new(200 * MIB);
    let script = "label: dos\nstart=63,size=20480,type=83\nstart=20801,size=200000,type=5\n\
                  start=20863,size=20000\nstart=43008,size=20480\nstart=65536,size=8192,type=82\n";
    image.run(&sfdisk, &["-q", "@"], script);
    let stack = image.stack();
    assert_eq!(partitions(&stack), listed(&image, &sfdisk));
    let (_, table) = first(&stack, |kind| match kind {
        Kind::Table(table) => Some(table),
        _ => None,
    });
    assert_eq!((table.scheme, table.damage.len()), (Scheme::Mbr, 0));
    let starts: Vec<&str> = traxtent_check::rules::check(&stack, None)
        .iter()
        .filter(|finding| finding.rule == Rule::PartitionStart)
        .map(|finding| stack.layer(finding.layer).name.as_str())
        .collect();
    assert_eq!(starts, ["partition 1", "partition 5"]);
    let role = |name: &str| match &stack
        .layers
        .iter()
        .find(|layer| layer.name == name)
        .unwrap()
        .kind
    {
        Kind::Partition(partition) => partition.role,
        _ => unreachable!(),
    };
    assert_eq!(
        (role("partition 2"), role("partition 6")),
        (PartitionRole::Extended, PartitionRole::Logical)
    );
}

/// Is a partition at sector 34 of a GPT, the first usable one, reported as 1 KiB into a physical
/// sector, and one at 40 as aligned? These are the two partitions of paper A.
#[test]
fn sectors_34_and_40() {
    let sgdisk = tool!("sgdisk");
    for (start, wrong) in [(34, true), (40, false)] {
        let image = Image::new(64 * MIB);
        let place = format!("1:{start}:{}", start + 8191);
        image.run(&sgdisk, &["-a", "1", "-n", &place, "@"], "");
        let stack = image.stack();
        assert_eq!(partitions(&stack), [(1, start, 8192)]);
        assert_eq!(
            image.wrong(),
            if wrong {
                vec!["partition-start"]
            } else {
                vec![]
            }
        );
        if wrong {
            let off = finding(&stack, Rule::PartitionStart).off.unwrap();
            assert_eq!((off.at, off.every, off.by), (34 * 512, 4096, 1024));
        }
    }
}

/// Does the same table have different findings on a drive with 512-byte sectors, a 512e drive, a
/// drive with a jumper, and a drive with erase blocks?
#[test]
fn findings_depend_on_the_drive() {
    let sgdisk = tool!("sgdisk");
    let image = Image::new(64 * MIB);
    image.run(
        &sgdisk,
        &["-a", "1", "-n", "1:2048:+8M", "-n", "2:20487:+8M", "@"],
        "",
    );
    let findings_on = |stated: StatedDrive| crate::image::wrong(&image.stack_for(&stated));
    let physical = |bytes| StatedDrive {
        physical_bytes: Some(bytes),
        ..StatedDrive::default()
    };
    assert_eq!(findings_on(physical(512)), [""; 0]);
    assert_eq!(findings_on(physical(4096)), ["partition-start"]);
    let jumper = StatedDrive {
        first_aligned_byte: Some(7 * 512),
        ..physical(4096)
    };
    let stack = image.stack_for(&jumper);
    assert_eq!(
        crate::image::wrong(&stack),
        ["partition-start", "alignment-offset"]
    );
    let off = finding(&stack, Rule::PartitionStart);
    assert_eq!(
        stack.layer(off.layer).name,
        "partition 1",
        "20487 is 7 more than a multiple of 8"
    );
    let erase = StatedDrive {
        erase_bytes: Some(3 * MIB),
        ..physical(512)
    };
    assert_eq!(findings_on(erase), ["partition-erase", "partition-erase"]);
}

/// Is a GPT for 4096-byte sectors reported on a drive with 512-byte sectors, and vice versa? If no
/// sector size is stated, is it taken from the table?
#[test]
fn gpt_of_another_sector_size() {
    let (fdisk, parted) = (tool!("fdisk"), tool!("parted"));
    let image = Image::new(256 * MIB);
    image.run(&fdisk, &["-b", "4096", "@"], "g\nn\n1\n256\n4351\nw\n");
    let of = |logical| StatedDrive {
        logical_bytes: Some(logical),
        physical_bytes: Some(4096),
        ..StatedDrive::default()
    };
    assert_eq!(crate::image::wrong(&image.stack_for(&of(4096))), [""; 0]);
    assert_eq!(
        crate::image::wrong(&image.stack_for(&of(512))),
        ["table-sector-size"]
    );
    assert_eq!(
        image.wrong(),
        [""; 0],
        "the sector size of an image is taken from its table"
    );
    let logical_alone = StatedDrive {
        logical_bytes: Some(512),
        ..StatedDrive::default()
    };
    assert_eq!(
        crate::image::wrong(&image.stack_for(&logical_alone)),
        ["table-sector-size"],
        "unless it is stated"
    );
    // A stated physical sector does not state the logical one, but limits it.
    let with_physical = |bytes| {
        let stated = StatedDrive {
            physical_bytes: Some(bytes),
            ..StatedDrive::default()
        };
        let stack = image.stack_for(&stated);
        let Kind::Disk(disk) = &stack.layers[0].kind else {
            panic!("{stack:#?}")
        };
        let sizes = (disk.logical_bytes, disk.physical_bytes);
        (sizes, crate::image::wrong(&stack))
    };
    assert_eq!(with_physical(16_384), ((4096, 16_384), vec![]));
    assert_eq!(with_physical(4096), ((4096, 4096), vec![]));
    assert_eq!(with_physical(512), ((512, 512), vec!["table-sector-size"]));
    let other = Image::new(256 * MIB);
    other.run(
        &parted,
        &["-s", "@", "mklabel", "gpt", "mkpart", "a", "1MiB", "9MiB"],
        "",
    );
    assert_eq!(crate::image::wrong(&other.stack_for(&of(512))), [""; 0]);
    assert_eq!(
        crate::image::wrong(&other.stack_for(&of(4096))),
        ["table-sector-size"]
    );
}

/// Are a drive that has grown, a truncated image, wrong entries and a lost header reported, and are
/// the partitions found if only the backup is left?
#[test]
fn damaged_gpt() {
    let sgdisk = tool!("sgdisk");
    let image = Image::new(64 * MIB);
    image.run(&sgdisk, &["-n", "1:2048:+8M", "@"], "");
    let damage = |image: &Image| {
        let stack = image.stack();
        let (_, table) = first(&stack, |kind| match kind {
            Kind::Table(table) => Some(table),
            _ => None,
        });
        table.damage.join("; ")
    };
    assert_eq!(damage(&image), "");
    let file = std::fs::File::options()
        .write(true)
        .open(&image.path)
        .unwrap();
    file.set_len(80 * MIB).unwrap();
    assert!(
        damage(&image).contains("smaller drive"),
        "{}",
        damage(&image)
    );
    file.set_len(60 * MIB).unwrap();
    assert!(
        damage(&image).contains("larger drive"),
        "{}",
        damage(&image)
    );
    file.set_len(64 * MIB).unwrap();
    image.write(1024 + 32, &[1]);
    assert!(
        damage(&image).contains("checksum of its entries"),
        "{}",
        damage(&image)
    );
    // Otherwise, the partitions are those of the backup.
    image.write(64 * MIB - 512, &[0; 512]);
    image.write(1024 + 40, &u64::MAX.to_le_bytes());
    let end = format!(
        "partition 1 ends in sector {}, beyond the end of any drive",
        u64::MAX
    );
    assert!(damage(&image).contains(&end), "{}", damage(&image));
    image.run(&sgdisk, &["-Z", "@"], "");
    image.run(&sgdisk, &["-n", "1:2048:+8M", "@"], "");
    image.write(512, &[0; 512]);
    assert!(
        damage(&image).contains("only its backup"),
        "{}",
        damage(&image)
    );
    assert_eq!(partitions(&image.stack()), [(1, 2048, 16_384)]);
}

/// If one copy of a GPT is damaged, are the partitions those of the intact copy, as sgdisk and
/// sfdisk list them, and does one finding name the copy and the reason? If neither is intact, are
/// they those of the primary copy?
#[test]
fn partitions_of_the_intact_copy() {
    let sgdisk = tool!("sgdisk");
    let sfdisk = tool!("sfdisk");
    const LAST: u64 = 64 * MIB / 512 - 1;
    let header_crc = |image: &Image| image.write(512 + 16, &[0; 4]);
    let header = |image: &Image| image.write(512 + 24, &[0xff; 64]);
    // The first partition then begins in sector 4096.
    let entries = |image: &Image| image.write(1024 + 32, &4096u64.to_le_bytes());
    let no_entries = |image: &Image| image.write(1024, &[0; 4096]);
    let of_backup = |image: &Image| image.write((LAST - 32) * 512 + 32, &8192u64.to_le_bytes());
    type Damage<'a> = &'a dyn Fn(&Image);
    let cases: [(&[Damage], u64, &str); 7] = [
        (&[], 2048, ""),
        (
            &[&header_crc],
            2048,
            "the checksum of its header is wrong, so",
        ),
        (&[&header], 2048, "the checksum of its header is wrong, so"),
        (
            &[&entries],
            2048,
            "the checksum of its entries is wrong, so",
        ),
        (
            &[&no_entries],
            2048,
            "the checksum of its entries is wrong, so",
        ),
        (
            &[&of_backup],
            2048,
            "its backup in sector 131071 is damaged",
        ),
        (
            &[&entries, &of_backup],
            4096,
            "its backup in sector 131071 is damaged",
        ),
    ];
    for (number, (damages, start, problem)) in cases.into_iter().enumerate() {
        let image = Image::new(64 * MIB);
        image.run(&sgdisk, &["-n", "1:2048:+8M", "-n", "2:32768:+8M", "@"], "");
        damages.iter().for_each(|damage| damage(&image));
        let stack = image.stack();
        let expected = [(1, start, 18_432 - start), (2, 32_768, 16_384)];
        assert_eq!(partitions(&stack), expected, "case {number}");
        if start == 2048 {
            assert_eq!(listed(&image, &sfdisk), expected, "case {number}");
        }
        let rows = traxtent_check::findings(&stack, None, None, &[]);
        let of_table: Vec<&str> = rows
            .iter()
            .filter(|row| row.finding.rule == Rule::TableDamaged)
            .map(|row| row.finding.what.as_str())
            .collect();
        let shown = format!("so the partitions shown are those of its backup in sector {LAST}");
        let is_backup = problem.ends_with(", so");
        assert_eq!(of_table.is_empty(), problem.is_empty(), "case {number}");
        assert!(
            problem.is_empty() || of_table.iter().any(|what| what.contains(problem)),
            "case {number}: {of_table:?}"
        );
        assert_eq!(
            of_table.iter().filter(|what| what.contains(&shown)).count(),
            usize::from(is_backup),
            "case {number}: {of_table:?}"
        );
        if is_backup {
            assert_eq!(of_table.len(), 1, "{of_table:?}");
        }
    }
}

/// Are copies of a GPT that are both intact but differ reported once, as sgdisk reports them, with
/// the difference, and are the partitions those of the primary copy? Are copies that agree not
/// reported?
#[test]
fn intact_copies_that_differ() {
    let sgdisk = tool!("sgdisk");
    let usable = "the usable sectors are 40 to 131038 in the primary copy, but 34 to 131038 in the";
    let cases: [(&[&str], &str); 9] = [
        (&[], ""),
        (
            &["-d", "2"],
            "partition 2, sectors 32768 to 49151, is only in the backup;",
        ),
        (
            &["-n", "3:65536:+8M"],
            "partition 3, sectors 65536 to 81919, is only in the primary copy;",
        ),
        (
            &["-d", "2", "-n", "2:32768:+4M"],
            "partition 2 is sectors 32768 to 40959 in the primary copy, but sectors 32768 to 49151 in \
             the backup;",
        ),
        (
            &["-t", "1:8200", "-c", "2:data"],
            "partition 1 differs in these properties: type; partition 2 differs in these properties: \
             name;",
        ),
        (
            &["-u", "1:R", "-A", "1:set:2"],
            "partition 1 differs in these properties: GUID, attributes;",
        ),
        (
            &["-U", "11111111-2222-3333-4444-555555555555"],
            "the GUID of the drive is 11111111-2222-3333-4444-555555555555 in the primary copy, but",
        ),
        (&["-U", "keep usable"], usable),
        (
            &[
                "-d", "1", "-n", "3::+1M", "-n", "4::+1M", "-n", "5::+1M", "-n", "6::+1M", "-n",
                "7::+1M", "-n", "8::+1M",
            ],
            "; there are 2 more differences;",
        ),
    ];
    for (changes, difference) in cases {
        let image = Image::new(64 * MIB);
        image.run(&sgdisk, &["-n", "1:2048:+8M", "-n", "2:32768:+8M", "@"], "");
        if difference == usable {
            set_first_usable(&image, 40);
        } else {
            change_primary(&image, &sgdisk, changes);
        }
        let stack = image.stack();
        let verdict = image.run(&sgdisk, &["-v", "@"], "");
        if difference.is_empty() {
            assert_eq!(crate::image::wrong(&stack), [""; 0]);
            assert!(verdict.contains("No problems found"), "{verdict}");
            continue;
        }
        assert_eq!(
            crate::image::wrong(&stack),
            ["table-damaged"],
            "{changes:?}"
        );
        let what = finding(&stack, Rule::TableDamaged).what;
        assert!(what.contains(difference), "{changes:?}: {what}");
        let shown = "the partitions shown are those of the primary copy";
        assert!(what.contains(shown), "{what}");
    }
}

/// Changes the primary copy of a GPT with sgdisk, and leaves the backup as it is.
fn change_primary(image: &Image, sgdisk: &std::path::Path, changes: &[&str]) {
    let before = std::fs::read(&image.path).unwrap();
    image.run(sgdisk, &[changes, &["@"]].concat(), "");
    let after = std::fs::read(&image.path).unwrap();
    image.write(0, &before);
    image.write(0, &after[..34 * 512]);
}

/// Changes the first usable sector in the primary header, and its checksum.
fn set_first_usable(image: &Image, first: u64) {
    let mut header = std::fs::read(&image.path).unwrap()[512..512 + 92].to_vec();
    header[40..48].copy_from_slice(&first.to_le_bytes());
    header[16..20].fill(0);
    let checksum = crc32fast::hash(&header);
    header[16..20].copy_from_slice(&checksum.to_le_bytes());
    image.write(512, &header);
}

/// Does reading a circular chain of logical partitions end, with a finding?
#[test]
fn circular_chain() {
    let sfdisk = tool!("sfdisk");
    let image = Image::new(64 * MIB);
    let script =
        "label: dos\nstart=2048,size=100000,type=5\nstart=4096,size=8192\nstart=16384,size=8192\n";
    image.run(&sfdisk, &["-q", "@"], script);
    // The link from the first table to the second now points to the first.
    let first_table = 2048 * 512u64;
    let mut link = [0; 16];
    link[4] = 5;
    link[12] = 1;
    image.write(first_table + 446 + 16, &link);
    let stack = image.stack();
    assert_eq!(crate::image::wrong(&stack), ["table-damaged"]);
    assert!(
        finding(&stack, Rule::TableDamaged)
            .what
            .contains("the chain of logical partitions loops back to sector")
    );
}

/// Are partitions that overlap, or that extend beyond the end of the drive, reported?
#[test]
fn overlapping_or_beyond_the_end() {
    let image = Image::new(64 * MIB);
    write_mbr(&image, &[(2048, 8192), (4096, 8192), (100_000, 200_000)]);
    let wrong = image.wrong();
    let overlaps = wrong
        .iter()
        .filter(|id| **id == "partition-overlap")
        .count();
    assert_eq!(
        overlaps, 2,
        "one that overlaps, one beyond the end: {wrong:?}"
    );
    // The content of a partition beyond the end is not called damaged: the table is wrong.
    assert!(!wrong.contains(&"damaged"), "{wrong:?}");
}

/// Writes an MBR with Linux partitions at the given sectors and of the given lengths.
pub(crate) fn write_mbr(image: &Image, partitions: &[(u32, u32)]) {
    let mut sector = [0; 512];
    for (index, (first, count)) in partitions.iter().enumerate() {
        let at = 446 + 16 * index;
        sector[at + 4] = 0x83;
        sector[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        sector[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    image.write(0, &sector);
}

/// Does the fix of a partition count in sectors of its own drive, even if a drive with another
/// sector size is examined first?
#[test]
fn fixes_count_in_sectors_of_their_drive() {
    let fdisk = tool!("fdisk");
    let other = Image::new(32 * MIB);
    other.run(&fdisk, &["-b", "4096", "@"], "g\nn\n1\n256\n4351\nw\n");
    let image = Image::new(16 * MIB);
    write_mbr(&image, &[(63, 8192)]);
    let fix = |paths: &[PathBuf]| {
        let stack = examine_images(paths, &StatedDrive::default());
        let mut rows = traxtent_check::findings(&stack, None, None, &[]).into_iter();
        let row = rows.find(|row| row.finding.rule == Rule::PartitionStart);
        row.expect("sector 63 is misaligned").fix
    };
    let alone = fix(std::slice::from_ref(&image.path));
    assert!(alone.is_some());
    assert_eq!(fix(&[other.path.clone(), image.path.clone()]), alone);
}

/// On a drive with overlapping partitions or a truncated file system, is the damage the first
/// finding, and is no command printed, even if the damage is ignored?
#[test]
fn damage_comes_first() {
    let mke2fs = tool!("mke2fs");
    let ext = |bytes| {
        let image = Image::new(bytes);
        image.run(&mke2fs, &["-q", "-F", "-t", "ext4", "-b", "1024", "@"], "");
        image
    };
    let content = std::fs::read(&ext(8 * MIB).path).unwrap();
    let overlapping = Image::new(64 * MIB);
    write_mbr(&overlapping, &[(2048, 16_384), (16_384, 32_768)]);
    overlapping.write(2048 * 512, &content);
    // The second file system begins in the last blocks of the first.
    overlapping.write(16_384 * 512, &content);
    let truncated = ext(16 * MIB);
    let file = std::fs::File::options().write(true).open(&truncated.path);
    file.unwrap().set_len(12 * MIB).unwrap();
    for (image, damage) in [
        (overlapping, Rule::PartitionOverlap),
        (truncated, Rule::BeyondEnd),
    ] {
        let stack = image.stack();
        for ignored in [&[][..], &[damage]] {
            let rows = traxtent_check::findings(&stack, None, None, ignored);
            if ignored.is_empty() {
                assert_eq!(rows[0].finding.rule, damage);
            }
            let blocks: Vec<_> = rows
                .iter()
                .filter(|row| row.finding.rule == Rule::FsBlock)
                .collect();
            assert!(!blocks.is_empty(), "{rows:#?}");
            for row in blocks {
                let fix = row.fix.as_ref().unwrap();
                assert!(fix.note.contains(damage.id()), "{fix:?}");
            }
            let fixes = rows.iter().filter_map(|row| row.fix.as_ref());
            let commands: Vec<_> = fixes.flat_map(|fix| &fix.commands).collect();
            assert_eq!(commands, [""; 0], "{rows:#?}");
        }
    }
}

/// Does a check leave an image and its modification time unchanged?
#[test]
fn nothing_is_written() {
    let sfdisk = tool!("sfdisk");
    let image = Image::new(64 * MIB);
    image.run(
        &sfdisk,
        &["-q", "@"],
        "label: gpt\nfirst-lba: 34\nstart=34,size=8192\n",
    );
    let state = || {
        let changed = std::fs::metadata(&image.path).unwrap().modified().unwrap();
        (std::fs::read(&image.path).unwrap(), changed)
    };
    let before = state();
    assert_eq!(image.wrong(), ["partition-start"]);
    assert!(before == state(), "the image has changed");
}
