//! Tables and signatures that remain from an earlier use of a drive, most of them written by real
//! tools. No printed fix may move or overwrite data that is still in use.

use std::fs;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::plan::fix::fix;
use traxtent_check::{Fix, Kind, Rule, Stack, rules};

use crate::image::{Image, MIB, examine_images, finding, wrong};

const SECTORS: u64 = 64 * MIB / 512;

/// Creates an image of 64 MiB with a GPT. It has one partition and those that `options` of sgdisk
/// add.
fn gpt(sgdisk: &std::path::Path, options: &[&str]) -> Image {
    let image = Image::new(64 * MIB);
    let arguments = [&["-n", "1:2048:+8M"], options, &["@"]].concat();
    image.run(sgdisk, &arguments, "");
    image
}

fn wipe_primary(image: &Image) {
    image.write(512, &[0; 33 * 512]);
}

fn wipe_backup(image: &Image) {
    image.write((SECTORS - 33) * 512, &[0; 33 * 512]);
}

fn fix_of(stack: &Stack, rule: Rule) -> Fix {
    fix(&finding(stack, rule), stack, &[], None).expect("there is advice")
}

/// Returns every command that is printed for a stack.
fn commands(stack: &Stack) -> Vec<String> {
    let findings = rules::check(stack, None);
    let fixes = findings
        .iter()
        .filter_map(|finding| fix(finding, stack, &[], None));
    fixes.flat_map(|fix| fix.commands).collect()
}

/// Runs the last wipefs command in a note. Its backups go to a temporary home directory.
fn run_wipefs(note: &str) {
    let mut words = note.split('`').filter(|word| word.starts_with("wipefs "));
    let home = tempfile::tempdir().unwrap();
    let command = words.next_back().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", command])
        .env("HOME", home.path())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

fn has_partitions(stack: &Stack) -> bool {
    let mut layers = stack.layers.iter();
    layers.any(|layer| matches!(layer.kind, Kind::Partition(_)))
}

/// Is a protective or hybrid MBR without either copy of its GPT reported as a remnant, without a
/// command? Does only the hybrid one have partitions? Does the wipefs command in the note remove
/// the protective one?
#[test]
fn mbr_without_its_gpt() {
    let sgdisk = tool!("sgdisk");
    for hybrid in [&[][..], &["-n", "2:20480:+8M", "-h", "1:2"]] {
        let image = gpt(&sgdisk, hybrid);
        wipe_primary(&image);
        wipe_backup(&image);
        let stack = image.stack();
        assert!(wrong(&stack).contains(&"table-remnant"), "{stack:#?}");
        assert_eq!(has_partitions(&stack), !hybrid.is_empty());
        assert_eq!(commands(&stack), [""; 0]);
        let note = fix_of(&stack, Rule::TableRemnant).note;
        assert!(
            note.contains("--load-backup") && note.contains("wipefs"),
            "{note}"
        );
        if testkit::tool("wipefs").is_some() && hybrid.is_empty() {
            run_wipefs(&note);
            assert_eq!(wrong(&image.stack()), [""; 0]);
        }
    }
}

/// Does the wipefs command in the note remove a GPT from an image on which a file system was
/// created later, and keep the file system?
#[test]
fn table_under_a_file_system() {
    let (sgdisk, mke2fs, _) = (tool!("sgdisk"), tool!("mke2fs"), tool!("wipefs"));
    let image = gpt(&sgdisk, &[]);
    // mke2fs removes the backup at the end, but most programs do not.
    let content = Image::new(32 * MIB);
    content.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    image.write(0, &fs::read(&content.path).unwrap());
    let stack = image.stack();
    let note = fix_of(&stack, Rule::Remnant).note;
    assert!(note.contains(" --force "), "{note}");
    run_wipefs(&note);
    let stack = image.stack();
    let found = rules::check(&stack, None);
    assert!(found.is_empty(), "{found:#?}");
    let mut layers = stack.layers.iter();
    assert!(layers.any(|layer| matches!(layer.kind, Kind::Ext(_))));
}

/// If one copy of a table is damaged and the other is intact, is a repair the only command printed?
/// Does it repair the table?
#[test]
fn damaged_table_is_repaired() {
    let sgdisk = tool!("sgdisk");
    for damage in [
        |image: &Image| image.write(1024 + 32, &[1]),
        |image: &Image| image.write(512 + 41, &[1]),
        wipe_primary,
        wipe_backup,
        |image: &Image| image.write((SECTORS - 1) * 512 + 41, &[1]),
        |image: &Image| image.write((SECTORS - 33) * 512 + 32, &[1]),
    ] {
        let image = gpt(&sgdisk, &[]);
        damage(&image);
        let stack = image.stack();
        let printed = commands(&stack);
        let repair = format!("sgdisk --move-second-header {}", image.path.display());
        assert_eq!(printed, [repair]);
        image.run(&sgdisk, &["--move-second-header", "@"], "");
        assert_eq!(image.wrong(), [""; 0]);
    }
}

/// Do the printed commands restore the table, with the same partitions, after the start of a drive
/// was overwritten: only the MBR, also the header, or also the entries?
#[test]
fn wiped_start() {
    let sgdisk = tool!("sgdisk");
    tool!("sfdisk");
    for sectors in [1, 2, 34] {
        let image = gpt(&sgdisk, &["-n", "2:20480:+8M"]);
        let before = fs::read(&image.path).unwrap();
        image.write(0, &vec![0; sectors * 512]);
        let rows = traxtent_check::findings(&image.stack(), None, None, &[]);
        let fixes = rows.into_iter().filter_map(|row| row.fix);
        let printed: Vec<String> = fixes.flat_map(|fix| fix.commands).collect();
        assert_eq!(printed.len(), 2, "{printed:#?}");
        for command in printed {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin; {command}")]);
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{command}: {output:?}");
        }
        assert_eq!(image.wrong(), [""; 0], "{sectors}");
        let after = fs::read(&image.path).unwrap();
        // The bytes before 446 hold boot code and the disk signature, which is a random number.
        assert!(before[446..] == after[446..], "{sectors}");
    }
}

/// Is no command printed for a table without an intact copy, whether headers or entries have wrong
/// checksums or the primary copy is gone?
#[test]
fn no_copy_is_intact() {
    let sgdisk = tool!("sgdisk");
    let first_header = |image: &Image| image.write(512 + 41, &[1]);
    let first_entries = |image: &Image| image.write(1024 + 32, &[1]);
    let last_header = |image: &Image| image.write((SECTORS - 1) * 512 + 41, &[1]);
    let last_entries = |image: &Image| image.write((SECTORS - 33) * 512 + 32, &[1]);
    let first: [&dyn Fn(&Image); 3] = [&first_header, &first_entries, &wipe_primary];
    let last: [&dyn Fn(&Image); 2] = [&last_header, &last_entries];
    for (first, last) in first
        .iter()
        .flat_map(|first| last.map(|last| (first, last)))
    {
        let image = gpt(&sgdisk, &[]);
        first(&image);
        last(&image);
        let stack = image.stack();
        assert!(wrong(&stack).contains(&"table-damaged"), "{stack:#?}");
        assert_eq!(commands(&stack), [""; 0]);
        let note = fix_of(&stack, Rule::TableDamaged).note;
        assert!(note.contains("no copy"), "{note}");
    }
}

/// Is no command printed if both copies of a GPT are intact but differ? Do the commands and keys in
/// the note keep either copy, and does looking at them change nothing? If the primary copy is also
/// damaged, is the remedy that for a damaged one, from the copy whose partitions are shown?
#[test]
fn copies_that_differ() {
    let (sgdisk, gdisk) = (tool!("sgdisk"), tool!("gdisk"));
    let image = gpt(&sgdisk, &["-n", "2:32768:+8M"]);
    let whole = fs::read(&image.path).unwrap();
    image.run(&sgdisk, &["-d", "2", "@"], "");
    let primary = fs::read(&image.path).unwrap()[..34 * 512].to_vec();
    let differing = [&primary, &whole[34 * 512..]].concat();
    let partitions = |stack: &Stack| {
        let mut numbers: Vec<u32> = Vec::new();
        for layer in &stack.layers {
            if let Kind::Partition(partition) = &layer.kind {
                numbers.push(partition.number);
            }
        }
        numbers
    };
    image.write(0, &differing);
    let stack = image.stack();
    assert_eq!(partitions(&stack), [1]);
    assert_eq!(commands(&stack), [""; 0]);
    let note = fix_of(&stack, Rule::TableDamaged).note;
    for words in [
        "decide first which copy is right",
        "`sgdisk --print ",
        "`sgdisk --move-second-header ",
        "after `r`, `c`, `y` and `p`",
    ] {
        assert!(note.contains(words), "{note}");
    }
    let looked = image.run(&gdisk, &["@"], "r\nc\ny\np\nq\n");
    assert!(looked.contains("   2           32768 "), "{looked}");
    image.run(&sgdisk, &["--print", "@"], "");
    assert!(fs::read(&image.path).unwrap() == differing);
    image.run(&sgdisk, &["--move-second-header", "@"], "");
    let stack = image.stack();
    assert_eq!((partitions(&stack), wrong(&stack)), (vec![1], vec![]));
    image.write(0, &differing);
    image.run(&gdisk, &["@"], "r\nc\ny\np\nw\ny\n");
    let stack = image.stack();
    assert_eq!((partitions(&stack), wrong(&stack)), (vec![1, 2], vec![]));
    image.write(0, &differing);
    image.write(512 + 41, &[1]);
    let stack = image.stack();
    assert_eq!(partitions(&stack), [1, 2]);
    assert_eq!(wrong(&stack), ["table-damaged"]);
    let what = finding(&stack, Rule::TableDamaged).what;
    assert!(what.contains("shown are those of its backup"), "{what}");
    let fix = fix_of(&stack, Rule::TableDamaged);
    assert_eq!(fix.commands.len(), 1, "{fix:?}");
    assert!(
        fix.commands[0].starts_with("sgdisk --move-second-header "),
        "{fix:?}"
    );
    assert!(fix.note.contains("check first"), "{fix:?}");
}

/// Is no command printed for a truncated drive if a partition extends beyond its end?
#[test]
fn truncated_drive() {
    let sgdisk = tool!("sgdisk");
    let image = gpt(&sgdisk, &["-n", "2:20480:0"]);
    let file = fs::File::options().write(true).open(&image.path).unwrap();
    file.set_len(32 * MIB).unwrap();
    let stack = image.stack();
    assert_eq!(commands(&stack), [""; 0]);
    let note = fix_of(&stack, Rule::TableDamaged).note;
    assert!(note.contains("restore its length"), "{note}");
}

/// Is a GPT reported as a remnant, without a command, under newer content: an MBR with partitions,
/// or a file system on the whole drive?
#[test]
fn gpt_under_newer_content() {
    let (sgdisk, sfdisk, fat) = (tool!("sgdisk"), tool!("sfdisk"), tool!("mkfs.vfat"));
    let image = gpt(&sgdisk, &[]);
    image.write(0, &[0; 34 * 512]);
    image.run(
        &sfdisk,
        &["-q", "--wipe", "never", "@"],
        "label: dos\nstart=2048,size=20480,type=83\n",
    );
    let stack = image.stack();
    assert_eq!(wrong(&stack), ["remnant"]);
    assert!(has_partitions(&stack));
    assert_eq!(commands(&stack), [""; 0]);

    let image = gpt(&sgdisk, &[]);
    image.run(&fat, &["-I", "@"], "");
    let stack = image.stack();
    assert_eq!(wrong(&stack), [""; 0], "the kernel ignores the GPT");
    assert!(finding(&stack, Rule::Remnant).what.contains("holds FAT"));
    assert_eq!(commands(&stack), [""; 0]);
}

/// Is a Btrfs on a drive that was partitioned later reported as a remnant? Does the wipefs command
/// in the note remove only the remnant?
#[test]
fn file_system_under_a_table() {
    let (sgdisk, _) = (tool!("sgdisk"), tool!("wipefs"));
    let btrfs = tool!("mkfs.btrfs");
    let image = Image::new(128 * MIB);
    image.run(&btrfs, &["-q", "@"], "");
    image.run(&sgdisk, &["-n", "1:2048:+8M", "@"], "");
    let stack = image.stack();
    assert_eq!(wrong(&stack), ["remnant"]);
    let note = fix_of(&stack, Rule::Remnant).note;
    assert!(note.contains("--types btrfs"), "{note}");
    assert!(!note.contains("--force"), "{note}");
    run_wipefs(&note);
    let stack = image.stack();
    assert_eq!(wrong(&stack), [""; 0]);
    assert!(has_partitions(&stack));
}

/// Does an intact table take precedence over an md superblock near the end of the drive, a remnant
/// of an array of whole drives?
#[test]
fn superblock_of_a_former_array() {
    let sgdisk = tool!("sgdisk");
    let image = gpt(&sgdisk, &[]);
    // Version 0.90, at the last multiple of 64 KiB that is at least 64 KiB before the end.
    let mut superblock = [0; 4096];
    let mut put = |word: usize, value: u32| {
        superblock[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
    };
    let kib = (64 * MIB - (64 << 10)) >> 10;
    for (word, value) in [
        (0, 0xa92b_4efc),
        (2, 90),
        (5, 7),
        (7, 1),
        (8, kib as u32),
        (9, 2),
        (10, 2),
    ] {
        put(word, value);
    }
    image.write(64 * MIB - (64 << 10), &superblock);
    let stack = image.stack();
    assert!(has_partitions(&stack), "{stack:#?}");
    assert_eq!(wrong(&stack), ["remnant"]);
    assert!(
        fix_of(&stack, Rule::Remnant)
            .note
            .contains("linux_raid_member")
    );
}

/// Is an md superblock of version 1.0, at the end of the drive, a remnant if newer content reaches
/// the end of the drive: a partition, or a file system? Is the drive still a member if its file
/// system has the size of the array?
#[test]
fn superblock_at_the_end() {
    let (sfdisk, mke2fs) = (tool!("sfdisk"), tool!("mke2fs"));
    let sector = SECTORS - 16;
    // The array keeps space for a bitmap, so its data ends well before the superblock.
    let data_sectors = SECTORS - 512;
    let superblock = {
        let mut bytes = [0; 512];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0xa92b_4efcu32.to_le_bytes());
        put(4, &1u32.to_le_bytes());
        put(16, b"sixteen bytes id");
        put(72, &1u32.to_le_bytes());
        put(80, &data_sectors.to_le_bytes());
        put(92, &2u32.to_le_bytes());
        put(136, &data_sectors.to_le_bytes());
        put(144, &sector.to_le_bytes());
        bytes
    };
    let with = |create: &dyn Fn(&Image)| {
        let image = Image::new(64 * MIB);
        create(&image);
        image.write(sector * 512, &superblock);
        image.stack()
    };
    let is_member = |stack: &Stack| {
        let mut layers = stack.layers.iter();
        layers.any(|layer| matches!(layer.kind, Kind::MdMember(_)))
    };
    let partition = with(&|image| {
        let all = format!("label: dos\nstart=2048,size={},type=83\n", SECTORS - 2048);
        image.run(&sfdisk, &["-q", "@"], &all);
    });
    let file_system = with(&|image| {
        image.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    });
    for stack in [partition, file_system] {
        assert!(!is_member(&stack), "{stack:#?}");
        assert_eq!(wrong(&stack), ["remnant"]);
        let what = finding(&stack, Rule::Remnant).what;
        assert!(
            what.contains("a superblock of md, version 1.0, at the end"),
            "{what}"
        );
        let note = fix_of(&stack, Rule::Remnant).note;
        assert!(note.contains("--types linux_raid_member"), "{note}");
    }
    let blocks = (data_sectors / 8).to_string();
    let array = with(&|image| {
        image.run(&mke2fs, &["-q", "-F", "-b", "4096", "@", &blocks], "");
    });
    assert!(is_member(&array), "{array:#?}");
}

/// Is no command printed for a hybrid ISO image? Its partitions are parts of the image.
#[test]
fn hybrid_iso() {
    let sfdisk = tool!("sfdisk");
    let image = Image::new(64 * MIB);
    image.run(
        &sfdisk,
        &["-q", "@"],
        "label: dos\nstart=64,size=40000,type=17,bootable\nstart=41001,size=8192,type=ef\n",
    );
    image.write(32_768, b"\x01CD001\x01");
    let stack = image.stack();
    assert_eq!(wrong(&stack), ["partition-start"]);
    assert_eq!(commands(&stack), [""; 0]);
    let note = fix_of(&stack, Rule::PartitionStart).note;
    assert!(note.contains("hybrid ISO image"), "{note}");
}

/// Is the boot sector of FAT on a whole drive not taken for a partition table? Is an intact hybrid
/// MBR not reported, but mentioned in the advice for a partition that has to be moved?
#[test]
fn boot_sectors() {
    let (sgdisk, fat) = (tool!("sgdisk"), tool!("mkfs.vfat"));
    let image = Image::new(64 * MIB);
    image.run(&fat, &["@"], "");
    assert_eq!(image.wrong(), [""; 0]);
    assert!(!has_partitions(&image.stack()));

    let image = Image::new(64 * MIB);
    image.run(
        &sgdisk,
        &["-a", "1", "-n", "1:2049:+8M", "-h", "1", "@"],
        "",
    );
    let stack = examine_images(std::slice::from_ref(&image.path), &StatedDrive::default());
    assert_eq!(wrong(&stack), ["partition-start"]);
    let note = fix_of(&stack, Rule::PartitionStart).note;
    assert!(note.contains("sgdisk --hybrid"), "{note}");
}

/// Is an image in a format other than raw reported as such, and is this the only finding, even if
/// the file has a GPT where a raw image would have one, and a length different from the stated
/// drive's?
#[test]
fn images_of_other_formats() {
    let sgdisk = tool!("sgdisk");
    let end = 64 * MIB - 512;
    for (at, signature, format) in [
        (0, &b"QFI\xfb\0\0\0\x03"[..], "qcow2"),
        (0x40, b"\x7f\x10\xda\xbe", "vdi"),
        (0, b"KDMV", "vmdk"),
        (0, b"# Disk DescriptorFile\n", "vmdk"),
        (0, b"vhdxfile", "vhdx"),
        (0, b"conectix", "vpc"),
        (end, b"conectix", "vpc"),
    ] {
        let image = gpt(&sgdisk, &[]);
        image.write(at, signature);
        let stack = image.stack_for(&StatedDrive {
            capacity_bytes: Some(32 * MIB),
            ..StatedDrive::default()
        });
        let found = rules::check(&stack, None);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(wrong(&stack), [""; 0], "a note, and exit status 0");
        let note = fix_of(&stack, Rule::UnknownContent).note;
        for part in [
            format!("qemu-nbd --read-only --format={format} "),
            format!("qemu-img convert -f {format} -O raw "),
        ] {
            assert!(note.contains(&part), "{note}");
        }
    }
}
