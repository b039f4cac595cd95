//! md arrays: superblocks built word by word, which mdadm must read in the same way, and the
//! contents of the arrays.

use std::path::PathBuf;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::{Array, MdMember, RaidLevel};
use traxtent_check::plan::fix::fix;
use traxtent_check::{Kind, Rule, Stack};

use crate::image::{Image, MIB, examine_images, finding, first, run, wrong};

/// The fields of a version 1 superblock that the tests vary or check.
#[derive(Clone, Copy)]
struct Superblock {
    level: i32,
    layout: u32,
    chunk_sectors: u32,
    members: u32,
    member: u32,
    data_sector: u64,
    data_sectors: u64,
    super_sector: u64,
    events: u64,
    features: u32,
}

impl Superblock {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0xa92b_4efcu32.to_le_bytes());
        put(4, &1u32.to_le_bytes());
        put(8, &self.features.to_le_bytes());
        put(16, b"sixteen bytes id");
        put(32, b"host:0");
        put(72, &self.level.to_le_bytes());
        put(76, &self.layout.to_le_bytes());
        put(80, &self.data_sectors.to_le_bytes());
        put(88, &self.chunk_sectors.to_le_bytes());
        put(92, &self.members.to_le_bytes());
        put(128, &self.data_sector.to_le_bytes());
        put(136, &self.data_sectors.to_le_bytes());
        put(144, &self.super_sector.to_le_bytes());
        put(160, &self.member.to_le_bytes());
        put(200, &self.events.to_le_bytes());
        put(220, &self.members.to_le_bytes());
        for role in 0..self.members {
            put(256 + 2 * role as usize, &(role as u16).to_le_bytes());
        }
        let end = 256 + 2 * self.members as usize;
        let whole = bytes[..end / 4 * 4].chunks_exact(4);
        let mut sum: u64 = whole
            .map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())))
            .sum();
        if end % 4 == 2 {
            sum += u64::from(u16::from_le_bytes([bytes[end - 2], bytes[end - 1]]));
        }
        let sum = ((sum & 0xffff_ffff) + (sum >> 32)) as u32;
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

const MEMBER: Superblock = Superblock {
    level: 5,
    layout: 2,
    chunk_sectors: 1024,
    members: 3,
    member: 0,
    data_sector: 2048,
    data_sectors: 126_976,
    super_sector: 8,
    events: 100,
    features: 0,
};

/// The feature bits of an array that is being reshaped, and of a RAID 0 whose layout is stated.
const RESHAPE: u32 = 4;
const STATED_LAYOUT: u32 = 4096;

/// Creates the image of one member beside another image, with these bytes as its data.
fn sibling(image: &Image, name: &str, superblock: Superblock, data: &[u8]) -> PathBuf {
    let sectors = (superblock.data_sector + superblock.data_sectors).max(64 * MIB / 512);
    let path = image.sibling(name, sectors * 512);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let write =
        |at, bytes: &[u8]| std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
    write(superblock.super_sector * 512, &superblock.bytes());
    write(superblock.data_sector * 512, data);
    path
}

/// Creates the members of an array, one image each, with these bytes as their data.
fn members(superblock: Superblock, data: &[Vec<u8>]) -> (Image, Vec<PathBuf>) {
    let image = Image::new(64 * MIB);
    let path = |member: u32| {
        let data = data.get(member as usize).map_or(&[][..], Vec::as_slice);
        let own = Superblock {
            member,
            ..superblock
        };
        sibling(&image, &format!("member{member}.img"), own, data)
    };
    let paths = (0..superblock.members).map(path).collect();
    (image, paths)
}

fn member(stack: &Stack) -> &MdMember {
    first(stack, |kind| match kind {
        Kind::MdMember(member) => Some(member),
        _ => None,
    })
    .1
}

fn array(stack: &Stack) -> &Array {
    first(stack, |kind| match kind {
        Kind::Array(array) => Some(array),
        _ => None,
    })
    .1
}

/// Do version, level, chunk, data offset and role match what mdadm prints, in versions 1.0, 1.1 and
/// 1.2?
#[test]
fn superblock_matches_mdadm() {
    let mdadm = tool!("mdadm");
    let last = 64 * MIB / 512;
    for (version, super_sector, data_sector) in
        [("1.0", last - 16, 0), ("1.1", 0, 2048), ("1.2", 8, 2048)]
    {
        let superblock = Superblock {
            super_sector,
            data_sector,
            ..MEMBER
        };
        let (_image, paths) = members(superblock, &[]);
        let printed = run(&mdadm, &paths[1], &["--examine", "@"], "");
        let says = |words: &str| assert!(printed.contains(words), "no {words:?} in {printed}");
        let stack = examine_images(&paths[1..2], &StatedDrive::default());
        let found = member(&stack);
        says(&format!(
            "Version : {}",
            if version == "1.0" {
                "1.0"
            } else {
                &found.version
            }
        ));
        assert_eq!(found.version, version);
        says("Raid Level : raid5");
        assert_eq!((found.level, found.members), (RaidLevel::Raid5, 3));
        says("Chunk Size : 512K");
        assert_eq!(found.chunk_bytes, 512 << 10);
        if data_sector > 0 {
            says("Data Offset : 2048 sectors");
        }
        assert_eq!(found.data_start, data_sector * 512);
        says("Device Role : Active device 1");
        assert_eq!(found.role, Some(1));
        says("correct");
        assert_eq!(array(&stack).stripe_bytes, MIB);
    }
}

/// Is the command for misaligned members of an array given once, with all options and with a
/// placeholder for every member?
#[test]
fn misaligned_members_are_recreated() {
    let superblock = Superblock {
        data_sector: 2047,
        ..MEMBER
    };
    let (_folder, paths) = members(superblock, &[]);
    let stack = examine_images(&paths, &StatedDrive::default());
    let rows = traxtent_check::findings(&stack, None, None, &[]);
    let notes: Vec<&str> = rows
        .iter()
        .filter(|row| row.finding.rule == traxtent_check::Rule::DataStart)
        .map(|row| row.fix.as_ref().unwrap().note.as_str())
        .collect();
    let command = "`mdadm --create /dev/md0 --level=5 --raid-devices=3 --chunk=512K \
                   --data-offset=65536K DEVICE DEVICE DEVICE`, where each DEVICE stands for";
    assert!(notes[0].contains(command), "{notes:#?}");
    // The layout is stated unless it is the default. No command recreates another level.
    for (level, layout, members, says) in [
        (5, 0, 3, Some("--level=5 --layout=left-asymmetric --raid")),
        (6, 2, 4, Some("--level=6 --raid")),
        (10, 0x102, 4, Some("--level=10 --raid")),
        (10, 0x201, 4, Some("--level=10 --layout=f2 --raid")),
        (10, 0x1_0201, 4, Some("--level=10 --layout=o2 --raid")),
        (-1, 0, 2, Some("--level=linear --raid")),
        (5, 99, 3, None),
        (-4, 0, 2, None),
    ] {
        let superblock = Superblock {
            level,
            layout,
            members,
            ..superblock
        };
        let (_folder, paths) = self::members(superblock, &[]);
        let stack = examine_images(&paths, &StatedDrive::default());
        let note = fix(&finding(&stack, Rule::DataStart), &stack, &[], None)
            .unwrap()
            .note;
        match says {
            Some(says) => assert!(note.contains(says), "{note}"),
            None => assert!(!note.contains("mdadm"), "{note}"),
        }
    }
    assert!(!notes[0].contains("$part") && !notes[0].contains("capitals"));
    let reference = "the same as for the first of these members above";
    assert_eq!(notes[1..], [reference; 2]);
}

/// Are missing members named in a note, by traxtent's numbers and by mdadm's? Is there no note if
/// all members are given?
#[test]
fn missing_members() {
    let (_folder, paths) = members(MEMBER, &[]);
    let notes = |paths: &[PathBuf]| -> Vec<String> {
        let stack = examine_images(paths, &StatedDrive::default());
        let found = traxtent_check::rules::check(&stack, None).into_iter();
        found
            .filter(|finding| finding.rule == traxtent_check::Rule::ArrayIncomplete)
            .map(|finding| finding.what)
            .collect()
    };
    assert_eq!(notes(&paths), [""; 0]);
    let one = notes(&[paths[0].clone(), paths[2].clone()]);
    let [one] = one.as_slice() else {
        panic!("{one:?}")
    };
    assert!(
        one.starts_with("member 2 of 3 of array 73697874 (RaidDevice 1 of mdadm)"),
        "{one}"
    );
    let two = notes(&paths[1..2]);
    assert!(two[0].starts_with("members 1, 3 of 3 of"), "{two:?}");
    assert!(two[0].contains("RaidDevice 0, 2"), "{two:?}");
}

/// Do the values read from a version 0.90 superblock match what mdadm prints?
#[test]
fn superblock_0_90_matches_mdadm() {
    let mdadm = tool!("mdadm");
    let image = Image::new(64 * MIB);
    let mut words = [0u32; 1024];
    words[0] = 0xa92b_4efc;
    words[2] = 90;
    (words[5], words[13], words[14], words[15]) =
        (0x0123_4567, 0x89ab_cdef, 0xfedc_ba98, 0x7654_3210);
    (words[7], words[8], words[9], words[10]) = (5, (64 << 10) - 64, 3, 3);
    (words[64], words[65]) = (2, 65_536);
    (words[992], words[995], words[996]) = (1, 1, 6);
    let sum: u64 = words.iter().map(|&word| u64::from(word)).sum();
    words[38] = ((sum & 0xffff_ffff) + (sum >> 32)) as u32;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.write(64 * MIB - (64 << 10), &bytes);
    let printed = image.run(&mdadm, &["--examine", "@"], "");
    let stack = image.stack();
    let found = member(&stack);
    for words in [
        "Version : 0.90",
        "Raid Level : raid5",
        "Chunk Size : 64K",
        "Raid Devices : 3",
        "correct",
    ] {
        assert!(printed.contains(words), "{words} in {printed}");
    }
    assert_eq!(
        (found.version.as_str(), found.level, found.chunk_bytes),
        ("0.90", RaidLevel::Raid5, 65_536)
    );
    assert_eq!(
        (found.members, found.role, found.data_start),
        (3, Some(1), 0)
    );
    assert_eq!(found.used_bytes, 64 * MIB - (64 << 10));
}

/// Is a file system on a RAID 5 found by assembling its chunks, and checked against the chunk and
/// the stripe?
#[test]
fn file_system_in_raid_5() {
    let mke2fs = tool!("mke2fs");
    let small = Superblock {
        chunk_sectors: 8,
        ..MEMBER
    };
    let findings_with = |options: &str| {
        let file_system = Image::new(32 * MIB);
        file_system.run(&mke2fs, &["-q", "-F", "-b", "4096", "-E", options, "@"], "");
        let bytes = std::fs::read(&file_system.path).unwrap();
        // Left-symmetric: parity moves down from the last member, and data begins after it.
        let mut data = vec![Vec::new(); 3];
        for (row, chunks) in bytes.chunks(2 * 4096).enumerate() {
            let parity = 2 - row % 3;
            data[parity].extend([0; 4096]);
            for (index, chunk) in chunks.chunks(4096).enumerate() {
                data[(parity + 1 + index) % 3].extend(chunk);
            }
        }
        let (_image, paths) = members(small, &data);
        let stack = examine_images(&paths, &StatedDrive::default());
        first(&stack, |kind| match kind {
            Kind::Ext(ext) => Some(ext),
            _ => None,
        });
        wrong(&stack)
    };
    assert_eq!(findings_with("stride=1,stripe-width=2"), [""; 0]);
    assert_eq!(
        findings_with("stride=4,stripe-width=8"),
        ["ext-stride", "ext-stride"]
    );
}

/// Is each member reported if the members' data does not begin at a physical sector? Is the array
/// reported if its chunk is smaller than a physical sector?
#[test]
fn misaligned_members() {
    let off = Superblock {
        data_sector: 2049,
        ..MEMBER
    };
    let (_image, paths) = members(off, &[]);
    assert_eq!(
        wrong(&examine_images(&paths, &StatedDrive::default())),
        ["data-start"; 3]
    );
    let (_image, paths) = members(MEMBER, &[]);
    assert_eq!(
        wrong(&examine_images(&paths, &StatedDrive::default())),
        [""; 0]
    );
    let large = StatedDrive {
        physical_bytes: Some(MIB),
        ..StatedDrive::default()
    };
    assert!(wrong(&examine_images(&paths, &large)).contains(&"chunk-size"));
}

/// Is a partition that begins at a chunk but not at a full stripe reported on RAID 5 but not on
/// RAID 0?
#[test]
fn partition_on_stripes() {
    let sgdisk = tool!("sgdisk");
    for (level, members_count, expected) in [(5, 4, vec!["partition-stripe"]), (0, 3, vec![])] {
        let superblock = Superblock {
            level,
            layout: if level == 5 { 2 } else { 0 },
            members: members_count,
            ..MEMBER
        };
        // The partition table is made on an image as long as the array, which has 3 data chunks per
        // stripe and members of 62 MiB.
        let table = Image::new(3 * 62 * MIB);
        table.run(&sgdisk, &["-a", "1", "-n", "1:1024:+64M", "@"], "");
        let bytes = std::fs::read(&table.path).unwrap();
        let first_chunk = bytes[..512 << 10].to_vec();
        let (_image, paths) = members(superblock, &[first_chunk]);
        let mut wrong = wrong(&examine_images(&paths, &StatedDrive::default()));
        // The end of the array, with the backup of its table, was not written.
        wrong.retain(|id| *id != "table-damaged");
        assert_eq!(wrong, expected, "level {level}");
    }
}

/// Is the file system of a linear array or a RAID 0 whose members differ in length found in its
/// full length, in both layouts of a RAID 0 with several zones and with the members in any order?
/// Is nothing called damaged if the layout is unknown, or if a member is missing?
#[test]
fn members_of_different_lengths() {
    let mke2fs = tool!("mke2fs");
    let file_system = Image::new(24 * MIB);
    file_system.run(&mke2fs, &["-q", "-F", "-b", "1024", "-g", "256", "@"], "");
    let bytes = std::fs::read(&file_system.path).unwrap();
    let chunk = 64 << 10;
    let lengths = [11_u64, 4, 9];
    // The member of each chunk of a RAID 0, for which the number of the chunk in its zone or in the
    // array counts.
    let striped = |is_original: bool| {
        let mut data = vec![Vec::new(); 3];
        let (mut row, mut first) = (0, 0);
        for end in [4, 9, 11].map(|mib| mib * MIB / chunk) {
            let zone: Vec<usize> = (0..3)
                .filter(|&member| lengths[member] * MIB / chunk > row)
                .collect();
            let count = (end - row) as usize * zone.len();
            for index in 0..count {
                let number = if is_original { first + index } else { index };
                let at = (first + index) * chunk as usize;
                data[zone[number % zone.len()]].extend(&bytes[at..at + chunk as usize]);
            }
            (row, first) = (end, first + count);
        }
        data
    };
    let ends = [11, 15, 24].map(|mib| mib * MIB as usize);
    let joined = vec![
        bytes[..ends[0]].to_vec(),
        bytes[ends[0]..ends[1]].to_vec(),
        bytes[ends[1]..].to_vec(),
    ];
    for (level, layout, features, data) in [
        (-1, 0, 0, joined),
        (0, 1, STATED_LAYOUT, striped(true)),
        (0, 2, STATED_LAYOUT, striped(false)),
        (0, 2, 0, striped(false)),
    ] {
        let image = Image::new(MIB);
        let superblock = |member: usize| Superblock {
            level,
            layout,
            features,
            chunk_sectors: (chunk / 512) as u32,
            member: member as u32,
            data_sectors: lengths[member] * MIB / 512,
            ..MEMBER
        };
        let path = |member| {
            let name = format!("member{member}.img");
            sibling(&image, &name, superblock(member), &data[member])
        };
        let paths: Vec<PathBuf> = (0..3).map(path).collect();
        let stack = examine_images(&paths, &StatedDrive::default());
        let layer = first(&stack, |kind| match kind {
            Kind::Array(array) => Some(array),
            _ => None,
        })
        .0;
        assert_eq!(layer.bytes, 24 * MIB, "level {level}");
        let (ext, _) = first(&stack, |kind| match kind {
            Kind::Ext(ext) => Some(ext),
            _ => None,
        });
        assert_eq!(ext.bytes, 24 * MIB);
        let of_length = |stack: &Stack| {
            let mut wrong = wrong(stack);
            wrong.retain(|id| *id != "fs-block" && *id != "ext-stride");
            wrong
        };
        assert_eq!(of_length(&stack), [""; 0]);
        let some = examine_images(&paths[1..], &StatedDrive::default());
        assert_eq!(of_length(&some), [""; 0]);
        let some = examine_images(&paths[..2], &StatedDrive::default());
        assert_eq!(of_length(&some), [""; 0]);
        assert!(
            finding(&some, Rule::UnknownContent)
                .what
                .contains("all members")
        );
    }
}

/// Is an old copy of a member reported and not used, whether it is named first or last? Is a member
/// that missed only one update used?
#[test]
fn older_members() {
    let (image, mut paths) = members(MEMBER, &[]);
    let old = Superblock {
        member: 1,
        events: 50,
        chunk_sectors: 128,
        ..MEMBER
    };

    paths.insert(0, sibling(&image, "old.img", old, &[]));
    let examined = |image: &Image, paths: &[PathBuf]| {
        let stack = examine_images(paths, &StatedDrive::default());
        let notes = traxtent_check::rules::check(&stack, None).into_iter();
        let notes: Vec<String> = notes
            .filter(|found| [Rule::OlderMetadata, Rule::ArrayIncomplete].contains(&found.rule))
            .map(|found| {
                found
                    .what
                    .replace(image.path.parent().unwrap().to_str().unwrap(), "")
            })
            .collect();
        (array(&stack).chunk_bytes, notes)
    };
    let says = "the md member in /old.img is older than other members of its array (events 50 of \
                100), so it is not used";
    for _ in 0..2 {
        assert_eq!(examined(&image, &paths), (512 << 10, vec![says.to_owned()]));
        paths.rotate_left(1);
    }
    // Without the current member 1, it is missing.
    paths.retain(|path| !path.ends_with("member1.img"));
    let (_, notes) = examined(&image, &paths);
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("member 2 of 3 of array")),
        "{notes:?}"
    );
    assert!(notes.contains(&says.to_owned()), "{notes:?}");
    // The advice is to name the others only if none was given in vain.
    for (paths, says) in [
        (
            &paths[..],
            "a member that was given is not used (see older-metadata)",
        ),
        (&paths[..1], "name the images of all members together"),
    ] {
        let rows = traxtent_check::findings(
            &examine_images(paths, &StatedDrive::default()),
            None,
            None,
            &[],
        );
        let row = rows
            .iter()
            .find(|row| row.finding.rule == Rule::ArrayIncomplete);
        let fix = row.and_then(|row| row.fix.as_ref()).unwrap();
        assert!(fix.note.starts_with(says), "{}", fix.note);
    }
    let (image, mut paths) = members(MEMBER, &[]);
    let third = Superblock {
        member: 2,
        ..MEMBER
    };
    let late = Superblock {
        events: 99,
        ..third
    };
    paths[2] = sibling(&image, "member2.img", late, &[]);
    assert_eq!(examined(&image, &paths).1, [""; 0]);
    // A second copy with as many events.
    paths[2] = sibling(&image, "member2.img", third, &[]);
    paths.push(sibling(&image, "copy.img", third, &[]));
    let says = "the md member in /copy.img has the role of the md member in /member2.img in the same \
                array, so it is not used";
    assert_eq!(examined(&image, &paths).1, [says]);
}

/// Is the content of an array that is being reshaped not examined, with the reason, and is there no
/// command for the array?
#[test]
fn reshape() {
    let superblock = Superblock {
        features: RESHAPE,
        data_sector: 2049,
        chunk_sectors: 1,
        ..MEMBER
    };
    let (_folder, paths) = members(superblock, &[]);
    let stack = examine_images(&paths, &StatedDrive::default());
    assert!(
        finding(&stack, Rule::UnknownContent)
            .what
            .contains("it is being reshaped")
    );
    for rule in [Rule::DataStart, Rule::ChunkSize] {
        let fix = fix(&finding(&stack, rule), &stack, &[], None).unwrap();
        assert!(
            fix.note.contains("let the reshape of the array end first"),
            "{fix:?}"
        );
        assert_eq!(fix.commands, [""; 0]);
    }
}
