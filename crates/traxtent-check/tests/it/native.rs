//! Images of drives with logical sectors of 4096 bytes or physical sectors of more. Tools count
//! sectors of 512 bytes in such files, so the commands attach the images.

use std::path::Path;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::report::ReportRow;
use traxtent_check::{Kind, Rule, Stack, findings};

use crate::fixes::run_commands;
use crate::gallery::is_root;
use crate::image::{Image, MIB, wrong};
use crate::tables::write_mbr;

const SECTOR: u64 = 4096;

/// The name of a damage, and the code that causes it.
type Damage<'a> = (&'a str, &'a dyn Fn(&Image));

/// Creates an image with a GPT for sectors of 4096 bytes. Each partition is given by its first and
/// last sector.
fn gpt(fdisk: &Path, bytes: u64, partitions: &[(u64, u64)]) -> Image {
    let image = Image::new(bytes);
    let new = |(number, (first, last)): (usize, &(u64, u64))| {
        format!("n\n{}\n{first}\n{last}\n", number + 1)
    };
    let partitions: String = partitions.iter().enumerate().map(new).collect();
    image.run(fdisk, &["-b", "4096", "@"], &format!("g\n{partitions}w\n"));
    image
}

fn native(physical_bytes: u64) -> StatedDrive {
    StatedDrive {
        logical_bytes: Some(SECTOR),
        physical_bytes: Some(physical_bytes),
        ..StatedDrive::default()
    }
}

fn physical(physical_bytes: u64) -> StatedDrive {
    StatedDrive {
        physical_bytes: Some(physical_bytes),
        ..StatedDrive::default()
    }
}

/// Returns the findings. Asserts that no tool but losetup gets the name of an image whose sectors
/// do not have 512 bytes.
fn rows_of(image: &Image, stated: &StatedDrive) -> (Stack, Vec<ReportRow>) {
    let stack = image.stack_for(stated);
    let rows = findings(&stack, None, None, &[]);
    let path = image.path.to_str().unwrap();
    let is_native = matches!(&stack.layers[0].kind, Kind::Disk(disk) if disk.logical_bytes > 512);
    let fixes = rows.iter().filter_map(|row| row.fix.as_ref());
    for fix in fixes.filter(|_| is_native) {
        let quoted = fix.note.split('`').skip(1).step_by(2);
        let mut commands = fix.commands.iter().map(String::as_str).chain(quoted);
        let is_attached = |command: &str| {
            !command.contains(path)
                || command.contains("=$(losetup --find --show --sector-size 4096 ")
        };
        assert!(commands.all(is_attached), "{fix:#?}");
    }
    (stack, rows)
}

/// Returns the first fix with commands.
fn first_commands(rows: &[ReportRow]) -> Option<(Rule, &[String])> {
    let mut fixes = rows.iter().filter_map(|row| {
        let commands = row.fix.as_ref()?.commands.as_slice();
        (!commands.is_empty()).then_some((row.finding.rule, commands))
    });
    fixes.next()
}

/// Runs the commands of one finding after another until none has commands. Returns the rules of the
/// findings that had commands.
fn run_all(image: &Image, stated: &StatedDrive) -> Vec<Rule> {
    let mut done = Vec::new();
    loop {
        let (_, rows) = rows_of(image, stated);
        let Some((rule, commands)) = first_commands(&rows) else {
            return done;
        };
        assert!(done.len() < 8, "{done:?}: {rows:#?}");
        let result = run_commands(image.path.parent().unwrap(), commands);
        result.unwrap_or_else(|why| panic!("{}: {why}", rule.id()));
        done.push(rule);
    }
}

fn note_of(rows: &[ReportRow], rule: Rule) -> &str {
    let row = rows.iter().find(|row| row.finding.rule == rule);
    let row = row.unwrap_or_else(|| panic!("no finding {}: {rows:#?}", rule.id()));
    &row.fix.as_ref().expect("there is advice").note
}

/// Returns the first byte and the length of each partition.
fn partitions(stack: &Stack) -> Vec<(u64, u64)> {
    let layers = stack.layers.iter();
    let partitions = layers.filter(|layer| matches!(layer.kind, Kind::Partition(_)));
    let places = partitions.map(|layer| (layer.on[0].start, layer.bytes));
    places.collect()
}

fn pattern() -> Vec<u8> {
    (0..64 << 10).map(|n| (n % 251) as u8).collect()
}

/// Does the printed repair keep the partitions of a table for sectors of 4096 bytes, and what they
/// hold, whatever is damaged?
#[test]
fn tables_are_repaired() {
    let fdisk = tool!("fdisk");
    tool!("sgdisk");
    if !Path::new("/dev/loop-control").exists() || !is_root() {
        testkit::skip!("only root may attach loop devices");
    }
    let zeros = |image: &Image, first: u64, sectors: usize| {
        image.write(first * SECTOR, &vec![0; sectors * SECTOR as usize]);
    };
    let resize = |image: &Image, bytes| {
        let file = std::fs::File::options().write(true).open(&image.path);
        file.unwrap().set_len(bytes).unwrap();
    };
    let damages: [Damage<'_>; 8] = [
        ("no primary header", &|image| zeros(image, 1, 1)),
        ("damaged entries", &|image| {
            image.write(2 * SECTOR + 56, b"x")
        }),
        ("no backup header", &|image| zeros(image, 65_535, 1)),
        ("no MBR", &|image| zeros(image, 0, 1)),
        ("no MBR and header", &|image| zeros(image, 0, 2)),
        ("no MBR, header and entries", &|image| zeros(image, 0, 6)),
        ("from a smaller drive", &|image| resize(image, 300 * MIB)),
        ("from a larger drive", &|image| resize(image, 250 * MIB)),
    ];
    for (name, damage) in damages {
        let image = gpt(&fdisk, 256 * MIB, &[(512, 20_511), (32_768, 60_000)]);
        let starts = [512 * SECTOR, 32_768 * SECTOR];
        starts.iter().for_each(|&at| image.write(at, &pattern()));
        let whole = partitions(&image.stack());
        assert_eq!(whole.len(), 2);
        damage(&image);
        let mut damaged = image.wrong();
        damaged.dedup();
        assert_eq!(damaged, ["table-damaged"], "{name}");
        let done = run_all(&image, &StatedDrive::default());
        assert_eq!(done, [Rule::TableDamaged], "{name}");
        let stack = image.stack();
        assert_eq!(
            (partitions(&stack), wrong(&stack)),
            (whole, vec![]),
            "{name}"
        );
        for at in starts {
            assert!(image.read(at, 64 << 10) == pattern(), "{name}");
        }
    }
}

/// Do the printed commands move and shorten partitions in sectors of 4096 bytes, with what they
/// hold?
#[test]
fn partitions_are_moved() {
    let (fdisk, mke2fs) = (tool!("fdisk"), tool!("mke2fs"));
    tool!("sfdisk");
    if !Path::new("/dev/loop-control").exists() || !is_root() {
        testkit::skip!("only root may attach loop devices");
    }
    let mbr = |first, sectors| {
        let image = Image::new(256 * MIB);
        write_mbr(&image, &[(first, sectors)]);
        image
    };
    let striped = StatedDrive {
        chunk_bytes: Some(64 << 10),
        stripe_bytes: Some(192 << 10),
        ..StatedDrive::default()
    };
    let flash = StatedDrive {
        erase_bytes: Some(3 * MIB),
        ..StatedDrive::default()
    };
    let table: &[(u64, u64)] = &[(512, 20_511), (32_768, 60_000)];
    for (image, stated, expected, places) in [
        (
            mbr(257, 1001),
            native(16 << 10),
            Rule::PartitionStart,
            vec![(260, 1001)],
        ),
        (
            gpt(&fdisk, 256 * MIB, table),
            striped,
            Rule::PartitionStripe,
            vec![(528, 20_000), (32_784, 27_233)],
        ),
        (
            gpt(&fdisk, 256 * MIB, table),
            flash,
            Rule::PartitionErase,
            vec![(768, 20_000), (33_024, 27_233)],
        ),
        (
            gpt(&fdisk, 256 * MIB, &[(512, 20_512)]),
            physical(16 << 10),
            Rule::PartitionEnd,
            vec![(512, 20_000)],
        ),
    ] {
        let before = partitions(&image.stack_for(&stated));
        let is_end = expected == Rule::PartitionEnd;
        for (start, _) in before.iter().filter(|_| !is_end) {
            image.write(*start, &pattern());
        }
        let done = run_all(&image, &stated);
        assert!(done.contains(&expected), "{done:?}");
        let stack = image.stack_for(&stated);
        let places: Vec<_> = places
            .iter()
            .map(|(first, count)| (first * SECTOR, count * SECTOR))
            .collect();
        assert_eq!(partitions(&stack), places);
        assert_eq!(wrong(&stack), [""; 0]);
        for (start, _) in places.iter().filter(|_| !is_end) {
            assert!(image.read(*start, 64 << 10) == pattern(), "{expected:?}");
        }
    }
    // Without space after it, the file system is shrunk first, through a loop device of the
    // partition.
    let image = mbr(257, 65_536 - 257);
    let part = Image::new((65_536 - 257) * SECTOR);
    part.run(&mke2fs, &["-q", "-F", "-t", "ext4", "-b", "4096", "@"], "");
    image.write(257 * SECTOR, &std::fs::read(&part.path).unwrap());
    let stated = native(16 << 10);
    assert_eq!(run_all(&image, &stated), [Rule::PartitionStart; 2]);
    let stack = image.stack_for(&stated);
    assert_eq!(partitions(&stack)[0].0, 260 * SECTOR);
    assert_eq!(wrong(&stack), ["fs-block"]);
}

/// Are layers in parts of an image recreated or encrypted anew through loop devices with its
/// sectors?
#[test]
fn contents_are_recreated() {
    let (fdisk, mke2fs, xfs) = (tool!("fdisk"), tool!("mke2fs"), tool!("mkfs.xfs"));
    let cryptsetup = tool!("cryptsetup");
    if !Path::new("/dev/loop-control").exists() || !is_root() {
        testkit::skip!("only root may attach loop devices");
    }
    let cheap = [
        "--pbkdf",
        "pbkdf2",
        "--pbkdf-force-iterations",
        "1000",
        "@",
        "-",
    ];
    let luks2 = [
        "luksFormat",
        "-q",
        "--type",
        "luks2",
        "--sector-size",
        "512",
    ];
    let luks2 = [&luks2[..], &cheap].concat();
    let luks1 = ["luksFormat", "-q", "--type", "luks1"];
    let luks1 = [&luks1[..], &cheap].concat();
    for (tool, options, bytes, rule) in [
        (
            &mke2fs,
            &["-q", "-F", "-b", "1024", "@"][..],
            32 * MIB,
            Rule::FsBlock,
        ),
        (&xfs, &["-q", "-f", "@"], 320 * MIB, Rule::XfsSector),
        (&cryptsetup, &luks1, 24 * MIB, Rule::LuksSector),
        (&cryptsetup, &luks2, 24 * MIB, Rule::LuksSector),
    ] {
        let part = Image::new(bytes);
        part.run(tool, options, "secret");
        let image = gpt(&fdisk, bytes + 8 * MIB, &[(512, 511 + bytes / SECTOR)]);
        image.write(512 * SECTOR, &std::fs::read(&part.path).unwrap());
        assert_eq!(image.wrong(), [rule.id()]);
        assert_eq!(run_all(&image, &StatedDrive::default()), [rule]);
        assert_eq!(image.wrong(), [""; 0]);
        assert_eq!(partitions(&image.stack()), [(512 * SECTOR, bytes)]);
    }
}

/// If loop devices cannot have the sectors of an image on every machine, is there no command?
#[test]
fn sectors_larger_than_those_of_loop_devices() {
    let image = Image::new(64 * MIB);
    write_mbr(&image, &[(65, 1000)]);
    let stated = StatedDrive {
        logical_bytes: Some(16 << 10),
        ..physical(64 << 10)
    };
    let (_, rows) = rows_of(&image, &stated);
    assert_eq!(first_commands(&rows), None);
    let note = note_of(&rows, Rule::PartitionStart);
    assert!(note.contains("sfdisk --move-data -N 1 DRIVE"), "{note}");
}

/// Is no command printed that creates blocks or sectors of 4096 bytes on larger physical sectors,
/// and is a misaligned partition moved nevertheless?
#[test]
fn blocks_on_large_physical_sectors() {
    let (mke2fs, xfs, btrfs) = (tool!("mke2fs"), tool!("mkfs.xfs"), tool!("mkfs.btrfs"));
    let cryptsetup = tool!("cryptsetup");
    let luks = ["luksFormat", "-q", "--type", "luks2", "--pbkdf", "pbkdf2"];
    let cheap = ["--pbkdf-force-iterations", "1000", "--sector-size"];
    let luks = |sector| [&luks[..], &cheap, &[sector, "@", "-"]].concat();
    let large = physical(16 << 10);
    for (tool, options, rule, says) in [
        (
            &mke2fs,
            vec!["-q", "-F", "-b", "1024", "@"],
            Rule::FsBlock,
            "memory pages",
        ),
        (
            &mke2fs,
            vec!["-q", "-F", "-b", "4096", "@"],
            Rule::FsBlock,
            "memory pages",
        ),
        (&btrfs, vec!["-q", "-f", "@"], Rule::FsBlock, "memory pages"),
        (&xfs, vec!["-q", "-f", "@"], Rule::XfsSector, "memory pages"),
        (
            &cryptsetup,
            luks("512"),
            Rule::LuksSector,
            "4096 bytes or less",
        ),
        (
            &cryptsetup,
            luks("4096"),
            Rule::LuksSector,
            "4096 bytes or less",
        ),
    ] {
        let image = Image::new(400 * MIB);
        image.run(tool, &options, "secret");
        let (_, rows) = rows_of(&image, &large);
        assert_eq!(first_commands(&rows), None, "{options:?}");
        let note = note_of(&rows, rule);
        assert!(note.contains(says), "{note}");
    }
    let image = Image::new(400 * MIB);
    image.run(&xfs, &["-q", "-f", "-s", "size=4096", "@"], "");
    let (_, rows) = rows_of(&image, &large);
    let (rule, commands) = first_commands(&rows).unwrap();
    assert_eq!((rule, commands.len()), (Rule::XfsLogUnit, 1));
    run_commands(image.path.parent().unwrap(), commands).unwrap();
    assert_eq!(wrong(&image.stack_for(&large)), ["xfs-sector"]);
    let image = Image::new(64 * MIB);
    write_mbr(&image, &[(65, 65_536)]);
    let part = Image::new(32 * MIB);
    part.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    image.write(65 * 512, &std::fs::read(&part.path).unwrap());
    let rows = findings(&image.stack_for(&large), None, None, &[]);
    let (rule, commands) = first_commands(&rows).unwrap();
    assert_eq!(rule, Rule::PartitionStart);
    assert!(commands[0].starts_with("echo '96,65536' | sfdisk --move-data "));
}

/// If a GPT was written for another sector size, is no command printed for its partitions or the
/// table, even if the finding is ignored?
#[test]
fn no_commands_for_a_table_of_another_sector_size() {
    let (sfdisk, fdisk) = (tool!("sfdisk"), tool!("fdisk"));
    let small = Image::new(64 * MIB);
    let script = "label: gpt\nstart=102049,size=9000\n";
    small.run(&sfdisk, &["-q", "@"], script);
    let large = gpt(&fdisk, 64 * MIB, &[(512, 8000)]);
    large.write(SECTOR, &[0; SECTOR as usize]);
    let logical = |bytes| StatedDrive {
        logical_bytes: Some(bytes),
        ..StatedDrive::default()
    };
    for (image, logical, rule) in [
        (small, logical(SECTOR), Rule::PartitionStart),
        (large, logical(512), Rule::TableDamaged),
    ] {
        let stack = image.stack_for(&logical);
        for ignored in [&[][..], &[Rule::TableSectorSize]] {
            let rows = findings(&stack, None, None, ignored);
            if ignored.is_empty() {
                assert_eq!(rows[0].finding.rule, Rule::TableSectorSize);
            }
            assert_eq!(first_commands(&rows), None);
            let note = note_of(&rows, rule);
            assert!(
                note.contains("repair the damage (table-sector-size) first"),
                "{note}"
            );
        }
    }
}
