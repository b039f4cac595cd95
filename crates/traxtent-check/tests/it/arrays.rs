//! md arrays: superblocks built word by word, which mdadm must read in the same way, and the
//! contents of the arrays.

use std::path::PathBuf;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::{Array, MdMember, RaidLevel};
use traxtent_check::{Kind, Stack};

use crate::image::{Image, MIB, examine_images, first, run, wrong};

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
}

impl Superblock {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0xa92b_4efcu32.to_le_bytes());
        put(4, &1u32.to_le_bytes());
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
};

/// Creates the members of an array, one image each, with these bytes as their data.
fn members(superblock: Superblock, data: &[Vec<u8>]) -> (Image, Vec<PathBuf>) {
    let image = Image::new(64 * MIB);
    let mut paths = Vec::new();
    for member in 0..superblock.members {
        let path = image.sibling(&format!("member{member}.img"), 64 * MIB);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let write =
            |at, bytes: &[u8]| std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
        write(
            superblock.super_sector * 512,
            &Superblock {
                member,
                ..superblock
            }
            .bytes(),
        );
        if let Some(data) = data.get(member as usize) {
            write(superblock.data_sector * 512, data);
        }
        paths.push(path);
    }
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
