//! File systems and swap space, compared with the output of their own tools.

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::{Kind, Rule};

use crate::image::{Image, MIB, finding, first, number, wrong};

/// Do the values read from the superblocks of ext2, ext3 and ext4 match dumpe2fs?
#[test]
fn ext_matches_dumpe2fs() {
    let (mke2fs, dumpe2fs) = (tool!("mke2fs"), tool!("dumpe2fs"));
    let cases: [(&str, &[&str]); 5] = [
        ("ext2", &["-t", "ext2", "-b", "1024"]),
        ("ext3", &["-t", "ext3", "-b", "4096"]),
        (
            "ext4",
            &[
                "-t",
                "ext4",
                "-b",
                "4096",
                "-E",
                "stride=16,stripe-width=48",
            ],
        ),
        ("ext4", &["-t", "ext4", "-b", "2048", "-O", "64bit"]),
        (
            "ext4",
            &["-t", "ext4", "-b", "4096", "-O", "bigalloc", "-C", "65536"],
        ),
    ];
    for (version, options) in cases {
        let image = Image::new(64 * MIB);
        image.run(&mke2fs, &[&["-q", "-F"], options, &["@"]].concat(), "");
        let printed = image.run(&dumpe2fs, &["-h", "@"], "");
        let stack = image.stack();
        let (layer, ext) = first(&stack, |kind| match kind {
            Kind::Ext(ext) => Some(ext),
            _ => None,
        });
        assert_eq!(
            (layer.name.as_str(), ext.version.as_str()),
            (version, version)
        );
        assert_eq!(ext.block_bytes, number(&printed, "Block size:"));
        assert_eq!(ext.blocks, number(&printed, "Block count:"));
        assert_eq!(ext.first_block, number(&printed, "First block:"));
        assert_eq!(ext.group_blocks, number(&printed, "Blocks per group:"));
        if ext.stride_blocks > 0 {
            assert_eq!(ext.stride_blocks, number(&printed, "RAID stride:"));
            assert_eq!(ext.stripe_blocks, number(&printed, "RAID stripe width:"));
        }
        let small = ext.block_bytes < 4096;
        assert_eq!(wrong(&stack), if small { vec!["fs-block"] } else { vec![] });
    }
}

/// Is a file system that is longer than its image reported?
#[test]
fn truncated() {
    let mke2fs = tool!("mke2fs");
    let image = Image::new(64 * MIB);
    image.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    std::fs::File::options()
        .write(true)
        .open(&image.path)
        .unwrap()
        .set_len(60 * MIB)
        .unwrap();
    assert_eq!(image.wrong(), ["beyond-end"]);
}

/// Do the values read from an XFS superblock match xfs_db, and are its units checked against a
/// stated array?
#[test]
fn xfs_matches_xfs_db() {
    let (mkfs, xfs_db) = (tool!("mkfs.xfs"), tool!("xfs_db"));
    let image = Image::new(1024 * MIB);
    let options = [
        "-q",
        "-f",
        "-s",
        "size=4096",
        "-d",
        "su=64k,sw=3",
        "-l",
        "su=32k",
        "@",
    ];
    image.run(&mkfs, &options, "");
    let printed = image.run(&xfs_db, &["-r", "-c", "sb 0", "-c", "print", "@"], "");
    let stack = image.stack();
    let (_, xfs) = first(&stack, |kind| match kind {
        Kind::Xfs(xfs) => Some(xfs),
        _ => None,
    });
    let printed = |word| number(&printed, &format!("{word} ="));
    assert_eq!(xfs.block_bytes, printed("blocksize"));
    assert_eq!(xfs.blocks, printed("dblocks"));
    assert_eq!(xfs.sector_bytes, printed("sectsize"));
    assert_eq!(xfs.unit_bytes, printed("unit") * xfs.block_bytes);
    assert_eq!(xfs.width_bytes, printed("width") * xfs.block_bytes);
    assert_eq!(xfs.log_unit_bytes, printed("logsunit"));
    assert_eq!(xfs.group_blocks, printed("agblocks"));
    let array = |chunk: u64, stripe: u64| StatedDrive {
        chunk_bytes: Some(chunk << 10),
        stripe_bytes: Some(stripe << 10),
        ..StatedDrive::default()
    };
    assert_eq!(wrong(&image.stack_for(&array(64, 192))), [""; 0]);
    assert_eq!(wrong(&image.stack_for(&array(128, 512))), ["xfs-unit"]);
}

/// Is XFS with sectors of 512 bytes reported on a drive with physical sectors of 4096 bytes, but
/// not on one with 512?
#[test]
fn xfs_sector() {
    let mkfs = tool!("mkfs.xfs");
    let image = Image::new(320 * MIB);
    image.run(&mkfs, &["-q", "-f", "-s", "size=512", "@"], "");
    assert_eq!(image.wrong(), ["xfs-sector"]);
    let native = StatedDrive {
        physical_bytes: Some(512),
        ..StatedDrive::default()
    };
    assert_eq!(wrong(&image.stack_for(&native)), [""; 0]);
}

/// Do the values read from a Btrfs superblock match `btrfs inspect-internal dump-super`?
#[test]
fn btrfs_matches_dump_super() {
    let (mkfs, btrfs) = (tool!("mkfs.btrfs"), tool!("btrfs"));
    let image = Image::new(256 * MIB);
    image.run(&mkfs, &["-q", "-f", "@"], "");
    let printed = image.run(&btrfs, &["inspect-internal", "dump-super", "@"], "");
    let stack = image.stack();
    let (_, found) = first(&stack, |kind| match kind {
        Kind::Btrfs(btrfs) => Some(btrfs),
        _ => None,
    });
    assert_eq!(found.sector_bytes, number(&printed, "sectorsize"));
    assert_eq!(found.node_bytes, number(&printed, "nodesize"));
    assert_eq!(found.device_bytes, number(&printed, "dev_item.total_bytes"));
    assert_eq!(found.devices, number(&printed, "num_devices"));
    assert!(printed.contains(&found.uuid), "{} in {printed}", found.uuid);
    assert_eq!(wrong(&stack), [""; 0]);
}

/// Is swap space recognized with pages of 4, 16 and 64 KiB?
#[test]
fn swap_pages() {
    let mkswap = tool!("mkswap");
    for page in [4096u64, 16_384, 65_536] {
        let image = Image::new(16 * MIB);
        image.run(&mkswap, &["-p", &page.to_string(), "@"], "");
        let stack = image.stack();
        let (_, swap) = first(&stack, |kind| match kind {
            Kind::Swap(swap) => Some(swap),
            _ => None,
        });
        assert_eq!((swap.page_bytes, swap.pages * page), (page, 16 * MIB));
        assert_eq!(wrong(&stack), [""; 0]);
    }
}

/// Is the ashift of a pool read from labels written by zpool, and is an ashift of 9 reported for
/// sectors of 4096 bytes?
#[test]
fn zfs_ashift() {
    let labels: [(&[u8], u32); 2] = [
        (include_bytes!("../data/zfs-label-ashift-9.bin"), 9),
        (include_bytes!("../data/zfs-label-ashift-12.bin"), 12),
    ];
    for (label, ashift) in labels {
        let image = Image::new(64 * MIB);
        // The first label is missing, the second is present.
        image.write((256 + 16) << 10, label);
        let stack = image.stack();
        let (_, zfs) = first(&stack, |kind| match kind {
            Kind::Zfs(zfs) => Some(zfs),
            _ => None,
        });
        assert_eq!((zfs.ashift, zfs.vdev.as_str()), (Some(ashift), "file"));
        assert_eq!(
            wrong(&stack),
            if ashift < 12 {
                vec!["zfs-ashift"]
            } else {
                vec![]
            }
        );
        // The pool to be created has the physical sectors of the drive.
        for physical_bytes in [4096_u64, 16_384] {
            let stack = image.stack_for(&StatedDrive {
                physical_bytes: Some(physical_bytes),
                ..StatedDrive::default()
            });
            let rows = traxtent_check::findings(&stack, None, None, &[]);
            let row = rows.iter().find(|row| row.finding.rule == Rule::ZfsAshift);
            let note = row.map(|row| row.fix.clone().unwrap().note);
            let is_too_small = 1 << ashift < physical_bytes;
            let option = format!("ashift={}`", physical_bytes.ilog2());
            assert_eq!(
                note.is_some_and(|note| note.contains(&option)),
                is_too_small
            );
        }
    }
}

/// Is content that is only recognized by name reported by that name, and other content as unknown?
/// Is an image of zeros without warnings and without partitions?
#[test]
fn content_that_is_not_checked() {
    let image = Image::new(4 * MIB);
    assert_eq!(wrong(&image.stack()), [""; 0]);
    assert!(
        image
            .stack()
            .layers
            .iter()
            .all(|layer| !matches!(layer.kind, Kind::Partition(_)))
    );
    image.write(0, &[0xa5; 4096]);
    let what = finding(&image.stack(), Rule::UnknownContent).what;
    assert!(what.contains("is not known"), "{what}");
    image.write(0, b"hsqs");
    let what = finding(&image.stack(), Rule::UnknownContent).what;
    assert!(what.contains("SquashFS"), "{what}");
}

/// Is a drive whose partition table is lost reported with the file system that begins where the
/// first partition did, at any usual place, and with data at another place? A blank drive is not.
#[test]
fn a_lost_partition_table() {
    let (mkfs, ext) = (tool!("mkfs.xfs"), tool!("mke2fs"));
    let bytes = 4096 * 1024 * MIB;
    for start in [63 * 512, MIB, 4 * MIB] {
        let image = Image::new(bytes);
        let part = Image::new(512 * MIB);
        part.run(&mkfs, &["-q", "@"], "");
        let superblock = part.read(0, 4096);
        image.write(start, &superblock);
        let what = finding(&image.stack(), Rule::UnknownContent).what;
        let says = format!("XFS begins at byte {start}");
        assert!(what.contains(&says), "{what}");
    }
    let part = Image::new(64 * MIB);
    part.run(&ext, &["-q", "@"], "");
    let image = Image::new(bytes);
    image.write(20 * MIB, &part.read(0, 4096));
    let what = finding(&image.stack(), Rule::UnknownContent).what;
    let says = format!("an ext file system begins at byte {}", 20 * MIB);
    assert!(what.contains(&says), "{what}");
    for at in [130 << 10, 31 * MIB, bytes - MIB, bytes - 1] {
        let image = Image::new(bytes);
        assert_eq!(wrong(&image.stack()), [""; 0]);
        image.write(at, b"x");
        let what = finding(&image.stack(), Rule::UnknownContent).what;
        assert!(what.contains(&format!("data at byte {at}")), "{what}");
    }
}

/// Is FAT, whose first sector ends like a partition table, not taken for a partition table?
#[test]
fn fat_is_no_table() {
    let mkfs = tool!("mkfs.fat");
    let image = Image::new(64 * MIB);
    image.run(&mkfs, &["@"], "");
    let what = finding(&image.stack(), Rule::UnknownContent).what;
    assert!(what.contains("FAT"), "{what}");
}

/// Is an ext4 file system with a zeroed superblock reported as damaged, and does the repair that
/// the finding names bring it back?
#[test]
fn superblock_of_zeros() {
    let (mke2fs, e2fsck) = (tool!("mke2fs"), tool!("e2fsck"));
    for (block, backup) in [("1024", "8193"), ("4096", "32768")] {
        let image = Image::new(160 * MIB);
        image.run(&mke2fs, &["-q", "-F", "-t", "ext4", "-b", block, "@"], "");
        image.write(1024, &[0; 1024]);
        let what = crate::image::finding(&image.stack(), traxtent_check::Rule::Damaged).what;
        let repair = format!("(e2fsck -b {backup} -B {block})");
        assert!(what.ends_with(&repair), "{what}");
        // e2fsck has status 1 if it has repaired something.
        let output = std::process::Command::new(&e2fsck)
            .args(["-y", "-b", backup, "-B", block])
            .arg(&image.path)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stack = image.stack();
        assert!(stack.layers.iter().any(|layer| layer.name == "ext4"));
    }
}

/// Is LUKS2 with a zeroed first header reported as damaged, and other unknown content not?
#[test]
fn luks2_header_of_zeros() {
    let image = Image::new(32 * MIB);
    image.write(0x8000, b"key slots");
    assert!(!image.wrong().contains(&"damaged"));
    image.write(0x4000, b"SKUL\xba\xbe");
    let what = crate::image::finding(&image.stack(), traxtent_check::Rule::Damaged).what;
    assert!(what.ends_with("(cryptsetup repair)"), "{what}");
    image.write(0, b"other content");
    assert!(!image.wrong().contains(&"damaged"));
}
