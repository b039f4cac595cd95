//! The commands printed to fix a finding, run with the real tools on the images of the gallery. Is
//! the finding gone afterwards?
//!
//! Shell functions replace four of the tools. `sfdisk` does not inform the kernel, `pvcreate` uses
//! only the given device, and `cryptsetup` supplies a passphrase and uses few iterations. `e2fsck`,
//! `pvcreate` and `cryptsetup` do not ask for confirmation.

use std::path::{Path, PathBuf};
use std::process::Command;

use traxtent_check::drive::StatedDrive;
use traxtent_check::report::ReportRow;
use traxtent_check::stack::Kind;
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Layer, LayerId, Rule, Severity, Stack, findings};
use traxtent_units::Rng;

use crate::gallery::cases::CASES;
use crate::gallery::{Case, CreatedCase, ImageMaker, is_root};
use crate::image::{Image, MIB};

/// The shell code that runs before all commands.
const PREAMBLE: &str = r#"
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1 LVM_SYSTEM_DIR="$PWD/lvm"
sfdisk() { command sfdisk --no-reread --no-tell-kernel "$@"; }
e2fsck() { command e2fsck -y "$@"; }
pvcreate() {
  mkdir -p lvm
  for device in "$@"; do :; done
  printf 'devices { use_devicesfile=0 filter=["a|^%s$|","r|.*|"] }\nactivation { udev_sync=0 udev_rules=0 }\n' "$device" >lvm/lvm.conf
  command pvcreate --driverloaded n --yes -ff "$@"
}
cryptsetup() {
  case $1 in
    luksFormat) shift; printf secret | command cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file - "$@" ;;
    reencrypt) printf secret | command cryptsetup -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file - "$@" ;;
    *) command cryptsetup -q "$@" ;;
  esac
}
"#;

/// Cases whose commands are not run here, with the reason.
const NOT_RUN: &[(&str, &str)] = &[];

fn examine_images(images: &[PathBuf], case: &Case) -> (Stack, Vec<ReportRow>) {
    let stack = examine_targets(images, &case.drive.stated(), &HostPaths::default()).unwrap();
    let mut findings = findings(&stack, None, None, &[]);
    findings.retain(|row| row.finding.severity >= Severity::Warning);
    (stack, findings)
}

/// Returns the names of the layers above the drive, in order. If commands leave them unchanged, the
/// data that was moved is still found.
fn layer_names(stack: &Stack) -> Vec<String> {
    let layers = stack.layers.iter().skip(1);
    layers.map(|layer| layer.name.clone()).collect()
}

/// Returns whether the fix's note says that the commands recreate a layer without its content, or
/// convert it, so that the layers change.
fn is_recreated(row: &ReportRow) -> bool {
    let fix = row.fix.as_ref();
    fix.is_some_and(|fix| {
        fix.note.contains("copy the data away") || fix.note.contains("LUKS1 has sectors of 512 bytes: close the device, back up its header, convert it to LUKS2 and re-encrypt it")
    })
}

fn commands(row: &ReportRow) -> &[String] {
    row.fix.as_ref().map_or(&[], |fix| fix.commands.as_slice())
}

/// Runs commands, and returns their output as an error if they fail.
pub(crate) fn run_commands(folder: &Path, commands: &[String]) -> Result<(), String> {
    let output = Command::new("sh")
        .args(["-c", &format!("{PREAMBLE}\n{}", commands.join(" &&\n"))])
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "{commands:#?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Is every finding that has commands gone after they have run, and are the layers unchanged,
/// unless the fix's note says that they are recreated or converted?
#[test]
fn printed_commands_fix_findings() {
    if !Path::new("/dev/loop-control").exists() || !is_root() {
        testkit::skip!("partitions of images need loop devices, which only root may attach");
    }
    let folder = tempfile::tempdir().unwrap();
    let workshop = ImageMaker::new(folder.path());
    let (mut fixed, mut without, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES.iter().filter(|case| !case.findings.is_empty()) {
        if let Some((_, why)) = NOT_RUN.iter().find(|(name, _)| *name == case.name) {
            without.push(format!("{}: {why}", case.name));
            continue;
        }
        let images = match workshop.make(case.name, case.made_by) {
            CreatedCase::Images(images) => images,
            CreatedCase::Unavailable(why) => {
                without.push(format!("{}: {why}", case.name));
                continue;
            }
        };
        let own = workshop.folder_of(case.name);
        // One finding at a time, lowest layer first, because a fix may move other layers.
        let mut tries = 0;
        loop {
            let (stack, mut found) = examine_images(&images, case);
            found.retain(|row| !commands(row).is_empty());
            found.sort_by_key(|row| row.finding.layer);
            let Some(first) = found.first() else { break };
            tries += 1;
            let line = format!(
                "{}: {} at {}",
                case.name,
                first.finding.rule.id(),
                stack.title(first.finding.layer)
            );
            let result = run_commands(&own, commands(first));
            let (changed, after) = examine_images(&images, case);
            if !is_recreated(first) && layer_names(&stack) != layer_names(&changed) {
                failures.push(format!(
                    "{line}: {:?} became {:?}",
                    layer_names(&stack),
                    layer_names(&changed)
                ));
                break;
            }
            let is_same = |other: &ReportRow| {
                other.finding.rule == first.finding.rule
                    && other.finding.layer == first.finding.layer
            };
            if let Err(why) = result {
                failures.push(format!("{line}: {why}"));
                break;
            }
            // Some commands only prepare the next ones: the file system is shrunk first.
            let fix = first
                .fix
                .as_ref()
                .expect("a finding with commands has a fix");
            let is_step = fix.note.contains("then check again");
            if (after.iter().any(is_same) && !is_step) || tries > 8 {
                failures.push(format!("{line}: not fixed by {:#?}", commands(first)));
                break;
            }
            fixed.push(line);
        }
        let (_, left) = examine_images(&images, case);
        without.extend(
            left.iter()
                .filter(|row| commands(row).is_empty())
                .map(|row| format!("{}: {} has no commands", case.name, row.finding.rule.id())),
        );
    }
    println!("{} fixed: {fixed:#?}\nnot: {without:#?}", fixed.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let is_equipped = !without.iter().any(|why| why.ends_with("is not installed"));
    assert!(fixed.len() >= 25 || !is_equipped, "{fixed:#?}");
}

/// Does a report have commands for only one finding per drive? Otherwise, a command could rely on a
/// state that an earlier one has changed.
#[test]
fn one_sequence_per_drive() {
    let sfdisk = testkit::tool!("sfdisk");
    let mke2fs = testkit::tool!("mke2fs");
    let image = Image::new(64 * MIB);
    image.run(
        &sfdisk,
        &["-q", "@"],
        "label: dos\nstart=63,size=16001\nstart=40001,size=16001\n",
    );
    image.run(
        &mke2fs,
        &["-q", "-F", "-b", "1024", "-E", "offset=32256", "@", "8000"],
        "",
    );
    let rows = findings(&image.stack(), None, None, &[]);
    let with_commands: Vec<_> = rows
        .iter()
        .filter(|row| !commands(row).is_empty())
        .collect();
    assert_eq!(with_commands.len(), 1, "{rows:#?}");
    assert_eq!(with_commands[0].finding.rule, Rule::PartitionStart);
    let says_check_again = |rule| {
        let mut of_rule = rows.iter().filter(|row| row.finding.rule == rule);
        of_rule.any(|row| {
            row.fix
                .as_ref()
                .is_some_and(|fix| fix.note.contains("check again"))
        })
    };
    for rule in [Rule::FsBlock, Rule::PartitionEnd, Rule::PartitionStart] {
        assert!(says_check_again(rule), "{rule:?}: {rows:#?}");
    }
}

/// Does one move satisfy the grids of physical sectors, chunks, full stripes and erase blocks? Is a
/// file system whose blocks are too small not moved, because it has to be created anew?
#[test]
fn one_move_for_all_grids() {
    let sfdisk = testkit::tool!("sfdisk");
    let image = Image::new(64 * MIB);
    image.run(&sfdisk, &["-q", "@"], "label: dos\nstart=65,size=40000\n");
    for (chunk, stripe, erase, sector) in [
        (None, None, None, 72),
        (Some(64 << 10), None, None, 128),
        (Some(64 << 10), Some(192 << 10), None, 384),
        (Some(64 << 10), Some(192 << 10), Some(512 << 10), 3072),
    ] {
        let stated = StatedDrive {
            chunk_bytes: chunk,
            stripe_bytes: stripe,
            erase_bytes: erase,
            ..StatedDrive::default()
        };
        let paths = [image.path.clone()];
        let stack = examine_targets(&paths, &stated, &HostPaths::default()).unwrap();
        let rows = findings(&stack, None, None, &[]);
        let moves: Vec<&String> = rows.iter().flat_map(commands).collect();
        assert_eq!(moves.len(), 1, "{rows:#?}");
        let to = format!("echo '{sector},40000' | sfdisk --move-data ");
        assert!(moves[0].starts_with(&to), "{moves:?}");
    }
    let mke2fs = testkit::tool!("mke2fs");
    let small = ["-q", "-F", "-b", "1024", "-E", "offset=33280", "@", "20000"];
    image.run(&mke2fs, &small, "");
    let rows = findings(&image.stack(), None, None, &[]);
    assert!(rows.iter().flat_map(commands).next().is_none(), "{rows:#?}");
    let start = rows
        .iter()
        .find(|row| row.finding.rule == Rule::PartitionStart);
    let note = &start.unwrap().fix.as_ref().unwrap().note;
    assert!(note.contains("in any case (fs-block): "), "{note}");
    assert!(note.contains("`mke2fs -t ext2 -b 4096`"), "{note}");
    assert!(note.contains("from sector 72,"), "{note}");
}

/// Is a partition moved with its whole length if and only if sfdisk accepts that? The space after
/// it is varied by a sector around the distance of the move, and around the smallest space that
/// sfdisk recognizes: between two partitions, and at the end of the drive.
#[test]
fn moves_that_fit_exactly() {
    let sfdisk = testkit::tool!("sfdisk");
    const SECTORS: u64 = 4000;
    for (label, first) in [("label: gpt\nfirst-lba: 34", 34), ("label: dos", 63)] {
        // The second start needs a move by one sector.
        for start in [first, 71] {
            let distance = 8 - start % 8;
            for (space, is_last) in (0..=distance + 3).flat_map(|n| [(n, false), (n, true)]) {
                let after = start + SECTORS + space;
                let table = if first == 34 { 33 } else { 0 };
                let image = Image::new((after + table + if is_last { 0 } else { 4096 }) * 512);
                let mut script = format!("{label}\nstart={start},size={SECTORS}\n");
                if !is_last {
                    script += &format!("start={after},size=2048\n");
                }
                image.run(&sfdisk, &["-q", "@"], &script);
                let content: Vec<u8> = (0..SECTORS * 512).map(|n| (n % 251) as u8).collect();
                image.write(start * 512, &content);
                let rows = findings(&image.stack(), None, None, &[]);
                let moved = format!("{},{SECTORS}", start + distance);
                let is_printed = rows.iter().flat_map(commands).any(|command| {
                    command.starts_with(&format!("echo '{moved}' | sfdisk --move-data "))
                });
                let mut child = Command::new(&sfdisk)
                    .args(["-q", "--move-data", "-N", "1"])
                    .arg(&image.path)
                    .stdin(std::process::Stdio::piped())
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .unwrap();
                let mut input = child.stdin.take().unwrap();
                std::io::Write::write_all(&mut input, moved.as_bytes()).unwrap();
                drop(input);
                let is_moved = child.wait().unwrap().success();
                let case = format!("{label}, start {start}, space {space}, last {is_last}");
                assert_eq!(is_printed, is_moved, "{case}: {rows:#?}");
                assert_eq!(
                    is_moved,
                    space >= distance.max(if is_last { 3 } else { 2 }),
                    "{case}"
                );
                let at = if is_moved { start + distance } else { start } * 512;
                let bytes = std::fs::read(&image.path).unwrap();
                let at = at as usize;
                assert!(bytes[at..at + content.len()] == content[..], "{case}");
            }
        }
    }
}

/// Do the printed commands, run one after the other, align all partitions of random tables, with
/// their contents? Is none shortened, although they begin directly after one another, if there is
/// space after the last one?
#[test]
fn moves_one_after_the_other() {
    let sfdisk = testkit::tool!("sfdisk");
    let seed = 1;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for label in ["gpt", "dos"] {
        for round in 0..6 {
            // The bound on the number of sectors between two partitions.
            let gaps = [1, 4, 21][round % 3];
            let mut at = 2049 + rng.below(7);
            let mut script = format!("label: {label}\n");
            let mut contents = Vec::new();
            for number in 0..2 + rng.below(3) {
                // An aligned partition is not moved, and could be in the way of the others.
                at += rng.below(gaps);
                at += u64::from(at.is_multiple_of(8));
                let length = 2000 + rng.below(500);
                script += &format!("start={at},size={length}\n");
                contents.push((at, vec![b'a' + number as u8; length as usize * 512]));
                at += length;
            }
            let image = Image::new((at + 200) * 512);
            image.run(&sfdisk, &["-q", "@"], &script);
            for (start, content) in &contents {
                image.write(start * 512, content);
            }
            let mut steps = Vec::new();
            let stack = loop {
                let stack = image.stack();
                let rows = findings(
                    &stack,
                    None,
                    None,
                    &[Rule::PartitionEnd, Rule::UnknownContent],
                );
                let step: Vec<&String> = rows.iter().flat_map(commands).collect();
                let [command] = step[..] else {
                    assert!(rows.is_empty(), "{script}{steps:#?}\n{rows:#?}");
                    break stack;
                };
                assert!(steps.len() < 2 * contents.len(), "{script}{steps:#?}");
                assert!(command.contains("--move-data"), "{script}{rows:#?}");
                assert!(!command.contains("&&"), "{script}{rows:#?}");
                let status = Command::new("sh").args(["-ec", command]).output().unwrap();
                assert!(status.status.success(), "{script}{command}: {status:?}");
                steps.push(command.clone());
            };
            let bytes = std::fs::read(&image.path).unwrap();
            let partitions = stack.layers.iter().filter_map(|layer| match &layer.kind {
                Kind::Partition(partition) => Some(partition),
                _ => None,
            });
            for (partition, (_, content)) in partitions.zip(&contents) {
                let start = partition.first_sector as usize * 512;
                let end = start + partition.sectors as usize * 512;
                assert!(bytes[start..end] == content[..], "{script}{steps:#?}");
            }
        }
    }
}

/// If the last partition fills the drive, do the partitions before it wait for it, instead of
/// becoming shorter? Is the space before the first one used, for all of them?
#[test]
fn which_partition_moves_first() {
    let sfdisk = testkit::tool!("sfdisk");
    let advice = |script: &str| -> Vec<String> {
        let image = Image::new(8 * MIB);
        image.run(&sfdisk, &["-q", "@"], &format!("label: dos\n{script}"));
        for sector in 2048..16384 {
            image.write(sector * 512, &[0x5a; 512]);
        }
        let rows = findings(
            &image.stack(),
            None,
            None,
            &[Rule::PartitionEnd, Rule::UnknownContent],
        );
        let advice = |row: &ReportRow| {
            let fix = row.fix.as_ref().unwrap();
            let command = fix.commands.first().unwrap_or(&fix.note);
            command.replace(&image.path.display().to_string(), "@")
        };
        rows.iter().map(advice).collect()
    };
    let waits = |number, place| {
        format!(
            "partition {number} {place} it is misaligned too, and makes room when it is moved: follow its advice first, then check again"
        )
    };
    // Before sector 2048, nothing is moved to. Each partition makes room for those before it.
    let full = advice("start=2047,size=4000\nstart=6047,size=4000\nstart=10047\n");
    assert_eq!(full[..2], [waits(2, "after"), waits(3, "after")]);
    assert!(
        full[2].contains("recreate the partition from sector 10056"),
        "{full:?}"
    );
    let space = advice("start=2055,size=4000\nstart=6055,size=4000\nstart=10055\n");
    let first = "echo '2048,4000' | sfdisk --move-data -N 1 @".to_owned();
    assert_eq!(space, [first, waits(1, "before"), waits(2, "before")]);
    let before = advice("start=2055,size=4001\nstart=6064\n");
    assert_eq!(before, ["echo '2056,4001' | sfdisk --move-data -N 1 @"]);
    let before = advice("start=2048,size=4000\nstart=6055\n");
    assert_eq!(before, ["echo '6048,10329' | sfdisk --move-data -N 2 @"]);
    let first = advice("start=2055\n");
    assert_eq!(first, ["echo '2048,14329' | sfdisk --move-data -N 1 @"]);
}

/// Is it said that a boot sector keeps the old start, if the content that a command moves has one
/// with that field?
#[test]
fn boot_sectors_keep_the_old_start() {
    let sfdisk = testkit::tool!("sfdisk");
    for (offset, signature, says) in [
        (3, &b"NTFS    "[..], Some("`partclone.ntfsfixboot -w`")),
        (3, b"EXFAT   ", Some("install the boot loader")),
        (0x36, b"FAT16   ", Some("install the boot loader")),
        (0x52, b"FAT32   ", Some("install the boot loader")),
        (3, b"-FVE-FS-", None),
    ] {
        let image = Image::new(32 * MIB);
        image.run(&sfdisk, &["-q", "@"], "label: dos\nstart=63,size=40000\n");
        image.write(63 * 512 + offset, signature);
        let rows = findings(&image.stack(), None, None, &[]);
        let row = rows
            .iter()
            .find(|row| row.finding.rule == Rule::PartitionStart)
            .unwrap();
        assert!(commands(row)[0].contains("--move-data"), "{row:#?}");
        let note = &row.fix.as_ref().unwrap().note;
        assert_eq!(note.contains("its old start"), says.is_some(), "{note}");
        assert!(note.contains(says.unwrap_or_default()), "{note}");
    }
}

/// If a partition's start is misaligned too, is no command printed that shortens it, whether the
/// fix of the start has commands, is advice, or is ignored? Is one printed if the start is aligned?
#[test]
fn the_end_follows_from_the_start() {
    let sfdisk = testkit::tool!("sfdisk");
    let logical = "label: dos\nstart=2048,size=120000,type=5\nstart=";
    for (label, start, is_aligned) in [
        ("label: dos\nstart=", 4111, false),
        ("label: dos\nstart=", 4112, true),
        (logical, 4111, false),
        (logical, 4112, true),
    ] {
        // Another length would end with a physical sector after either start.
        let image = Image::new(64 * MIB);
        image.run(
            &sfdisk,
            &["-q", "@"],
            &format!("{label}{start},size=40002\n"),
        );
        for ignored in [&[][..], &[Rule::PartitionStart]] {
            let rows = findings(&image.stack(), None, None, ignored);
            let end = rows
                .iter()
                .find(|row| row.finding.rule == Rule::PartitionEnd)
                .unwrap();
            let case = format!("{label}{start}, {ignored:?}: {rows:#?}");
            if is_aligned {
                assert_eq!(commands(end).len(), 1, "{case}");
                assert!(commands(end)[0].starts_with("echo ',40000' |"), "{case}");
            } else {
                assert_eq!(commands(end), [""; 0], "{case}");
                let note = &end.fix.as_ref().unwrap().note;
                assert!(note.contains("start"), "{case}");
                assert!(note.contains("then check again"), "{case}");
            }
        }
    }
}

/// If a partition with LUKS does not end with a physical sector, does one finding have the remedy,
/// and the other one refer to it? cryptsetup refuses larger sectors for such a length.
#[test]
fn one_remedy_for_the_end_of_luks() {
    let sfdisk = testkit::tool!("sfdisk");
    let cryptsetup = testkit::tool!("cryptsetup");
    let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
    let format = ["luksFormat", "-q", "--type", "luks2", "--sector-size"];
    for (sector_bytes, extra_sectors, rule, has_commands) in [
        ("4096", 3, Rule::LuksEnd, true),
        ("512", 3, Rule::LuksSector, false),
        ("512", 0, Rule::LuksSector, true),
    ] {
        let part = Image::new(32 * MIB);
        let arguments = [&format[..], &[sector_bytes], &cheap, &["@", "-"]].concat();
        part.run(&cryptsetup, &arguments, "secret");
        let image = Image::new(64 * MIB);
        let sectors = 32 * MIB / 512 + extra_sectors;
        let script = format!("label: dos\nstart=2048,size={sectors}\n");
        image.run(&sfdisk, &["-q", "@"], &script);
        image.write(MIB, &std::fs::read(&part.path).unwrap());
        let rows = findings(&image.stack(), None, None, &[]);
        let of = |rule| rows.iter().find(|row| row.finding.rule == rule);
        let remedy = of(rule).unwrap();
        assert_eq!(!commands(remedy).is_empty(), has_commands, "{rows:#?}");
        let end = of(Rule::PartitionEnd);
        assert_eq!(end.is_some(), extra_sectors != 0, "{rows:#?}");
        if let Some(end) = end {
            let note = &end.fix.as_ref().unwrap().note;
            assert_eq!(commands(end), [""; 0], "{rows:#?}");
            let is_referred = has_commands || note.contains("luks-sector shortens");
            assert!(is_referred && !note.contains("leave it"), "{rows:#?}");
        }
    }
}

/// Are no commands printed for logical partitions, whose numbers change when one is deleted?
#[test]
fn logical_partitions_are_left_alone() {
    let sfdisk = testkit::tool!("sfdisk");
    let image = Image::new(64 * MIB);
    let script = "label: dos\nstart=2048,size=120000,type=5\nstart=4111,size=40000\n";
    image.run(&sfdisk, &["-q", "@"], script);
    let rows = findings(&image.stack(), None, None, &[]);
    let starts: Vec<_> = rows
        .iter()
        .filter(|row| row.finding.rule == Rule::PartitionStart)
        .collect();
    assert_eq!(starts.len(), 1, "{rows:#?}");
    for row in starts {
        assert_eq!(commands(row), [""; 0]);
        assert!(
            row.fix.as_ref().unwrap().note.contains("renumbers"),
            "{row:#?}"
        );
    }
}

/// Does the advice for a misaligned partition without free space after it suit its content? There
/// are no commands for XFS, swap and LUKS, because they are not shrunk.
#[test]
fn contents_that_cannot_shrink() {
    let sfdisk = testkit::tool!("sfdisk");
    let xfs = testkit::tool!("mkfs.xfs");
    let mkswap = testkit::tool!("mkswap");
    let cryptsetup = testkit::tool!("cryptsetup");
    let luks = [
        "luksFormat",
        "-q",
        "--type",
        "luks1",
        "--pbkdf-force-iterations",
        "1000",
        "@",
        "-",
    ];
    let bytes = 400 * MIB;
    for (tool, options, says) in [
        (
            &xfs,
            &["-q", "-f", "-s", "size=4096", "@"][..],
            "cannot shrink",
        ),
        (&mkswap, &["@"], "(`echo '64,819192' | sfdisk -N 1 "),
        (&cryptsetup, &luks, "records no length"),
    ] {
        let part = Image::new(bytes);
        part.run(tool, options, "secret");
        let image = Image::new(bytes + 2 * MIB);
        // The partition leaves no room after it.
        let script = format!("label: dos\nstart=63,size={}\n", bytes / 512);
        image.run(&sfdisk, &["-q", "@"], &script);
        image.write(63 * 512, &std::fs::read(&part.path).unwrap());
        let file = std::fs::File::options()
            .write(true)
            .open(&image.path)
            .unwrap();
        file.set_len(63 * 512 + bytes).unwrap();
        let rows = findings(&image.stack(), None, None, &[]);
        let start = rows
            .iter()
            .find(|row| row.finding.rule == Rule::PartitionStart)
            .unwrap();
        assert_eq!(commands(start), [""; 0]);
        let note = &start.fix.as_ref().unwrap().note;
        assert!(note.contains(says) && !note.contains("resize2fs"), "{note}");
        // No command changes what is recreated.
        assert!(rows.iter().flat_map(commands).next().is_none(), "{rows:#?}");
    }
}

/// Is a misaligned partition moved although there is a warning about its content whose fix is to
/// create that anew? Do the advice of both findings agree, and is the warning the only finding
/// after the move?
#[test]
fn a_warning_about_the_content_keeps_the_move() {
    let sfdisk = testkit::tool!("sfdisk");
    let xfs = testkit::tool!("mkfs.xfs");
    let image = Image::new(420 * MIB);
    let script = "label: dos\nstart=63,size=819200\n";
    image.run(&sfdisk, &["-q", "@"], script);
    let part = Image::new(400 * MIB);
    part.run(&xfs, &["-q", "-f", "-s", "size=512", "@"], "");
    image.write(63 * 512, &std::fs::read(&part.path).unwrap());
    let rows = findings(&image.stack(), None, None, &[]);
    let note = |rule| {
        let row = rows.iter().find(|row| row.finding.rule == rule);
        row.unwrap().fix.as_ref().unwrap().note.as_str()
    };
    let start = note(Rule::PartitionStart);
    let instead = "; if the XFS in partition 1 is created anew (xfs-sector), recreate the partition instead of moving it";
    assert!(start.ends_with(instead), "{start}");
    let steps = "recreate the partition from sector 64, create the layers in it anew, the file system with `mkfs.xfs -f -s size=4096`, copy the data back";
    assert!(note(Rule::XfsSector).contains(steps), "{rows:#?}");
    assert_eq!(rows[0].finding.rule, Rule::PartitionStart);
    assert!(commands(&rows[0])[0].contains("sfdisk --move-data"));
    run_commands(Path::new("."), commands(&rows[0])).unwrap();
    assert_eq!(image.wrong(), ["xfs-sector"]);
}

/// If the end of a misaligned partition would be misaligned at the new place, do the commands
/// shorten it too, unless its content reaches into the last physical sector?
#[test]
fn the_end_is_aligned_with_the_move() {
    let (sfdisk, mke2fs) = (testkit::tool!("sfdisk"), testkit::tool!("mke2fs"));
    for (label, start, space, blocks, moved) in [
        ("gpt", 4111, 2048, "5000", Some("4112,40000")),
        ("dos", 4111, 0, "5000", Some("4104,40000")),
        ("dos", 4111, 2048, "20001", None),
    ] {
        let image = Image::new((start + 40003 + space) * 512);
        // In the first case, the end is aligned before the move.
        let size = if label == "gpt" { 40001 } else { 40003 };
        let script = format!("label: {label}\nstart={start},size={size}\n");
        image.run(&sfdisk, &["-q", "@"], &script);
        let at = format!("offset={}", start * 512);
        let block = if blocks == "5000" { "4096" } else { "1024" };
        image.run(
            &mke2fs,
            &["-q", "-F", "-b", block, "-E", &at, "@", blocks],
            "",
        );
        let rows = findings(&image.stack(), None, None, &[Rule::FsBlock]);
        let printed = commands(&rows[0]).concat();
        match moved {
            Some(moved) => {
                let to = format!("echo '{moved}' | sfdisk --move-data -N 1 ");
                assert!(printed.contains(&to), "{rows:#?}");
                run_commands(Path::new("."), commands(&rows[0])).unwrap();
                let rows = findings(&image.stack(), None, None, &[]);
                assert!(rows.is_empty(), "{rows:#?}");
            }
            None => assert!(
                printed.starts_with("echo '4112,40003' | sfdisk --move-data"),
                "{rows:#?}"
            ),
        }
    }
}

/// Are stripe parameters of ext and XFS checked against a drive only if its chunk and its stripe
/// are both stated, and does no command state a parameter of 0?
#[test]
fn half_stated_stripes() {
    let mke2fs = testkit::tool!("mke2fs");
    let mkfs = testkit::tool!("mkfs.xfs");
    let ext = Image::new(64 * MIB);
    ext.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    let xfs = Image::new(320 * MIB);
    xfs.run(&mkfs, &["-q", "-f", "-s", "size=4096", "@"], "");
    let (chunk, stripe) = (Some(64 << 10), Some(192 << 10));
    for (image, rule, says) in [
        (&ext, Rule::ExtStride, "stride=16,stripe_width=48 "),
        (&xfs, Rule::XfsUnit, "-d su=64k,sw=3 "),
    ] {
        for (chunk_bytes, stripe_bytes) in [(chunk, None), (None, stripe), (chunk, stripe)] {
            let stated = StatedDrive {
                chunk_bytes,
                stripe_bytes,
                ..StatedDrive::default()
            };
            let rows = findings(&image.stack_for(&stated), None, None, &[]);
            let row = rows.iter().find(|row| row.finding.rule == rule);
            let are_both = chunk_bytes.is_some() && stripe_bytes.is_some();
            assert_eq!(row.is_some(), are_both, "{rows:#?}");
            assert!(
                row.is_none_or(|row| commands(row)[0].contains(says)),
                "{row:#?}"
            );
        }
    }
}

/// If the file system in a LUKS device must be created anew in any case, is the device recreated
/// with larger sectors instead of re-encrypted, before the file system is?
#[test]
fn luks_below_a_file_system_that_is_created_anew() {
    let (cryptsetup, mke2fs) = (testkit::tool!("cryptsetup"), testkit::tool!("mke2fs"));
    let image = Image::new(400 * MIB);
    let format = "luksFormat -q --type luks2 --sector-size 512 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 @ -";
    let words: Vec<&str> = format.split(' ').collect();
    image.run(&cryptsetup, &words, "secret");
    let small = Image::new(8 * MIB);
    small.run(&mke2fs, &["-q", "-F", "-b", "1024", "@"], "");
    let mut stack = image.stack();
    let is_luks = |layer: &Layer| matches!(layer.kind, Kind::Luks(_));
    let luks = LayerId(stack.layers.iter().position(is_luks).unwrap());
    let mut file_system = small.stack().layers.remove(1);
    file_system.on[0].layer = luks;
    file_system.on[0].start = 16 * MIB;
    stack.layers.truncate(luks.0 + 1);
    stack.layers.push(file_system);
    let rows = findings(&stack, None, None, &[]);
    assert!(rows.iter().flat_map(commands).next().is_none(), "{rows:#?}");
    for (rule, says) in [
        (
            Rule::LuksSector,
            "`cryptsetup luksFormat --type luks2 --sector-size 4096`",
        ),
        (Rule::FsBlock, "the advice for luks-sector"),
    ] {
        let row = rows.iter().find(|row| row.finding.rule == rule).unwrap();
        let note = &row.fix.as_ref().unwrap().note;
        assert!(note.contains(says), "{note}");
    }
    let rows = findings(&stack, None, None, &[Rule::FsBlock]);
    assert!(rows.iter().flat_map(commands).next().is_some(), "{rows:#?}");
    // A file system with only a warning is kept.
    let xfs = Image::new(320 * MIB);
    xfs.run(
        &testkit::tool!("mkfs.xfs"),
        &["-q", "-f", "-s", "size=512", "@"],
        "",
    );
    let place = stack.layers.pop().unwrap().on;
    stack.layers.push(Layer {
        on: place,
        ..xfs.stack().layers.remove(1)
    });
    let rows = findings(&stack, None, None, &[Rule::BeyondEnd]);
    let is_luks = |row: &&ReportRow| row.finding.rule == Rule::LuksSector;
    let row = rows.iter().find(is_luks).unwrap();
    let note = &row.fix.as_ref().unwrap().note;
    assert!(
        commands(row)[1].starts_with("cryptsetup reencrypt"),
        "{rows:#?}"
    );
    assert!(
        note.contains("; if the XFS in LUKS2 is created anew (xfs-sector), recreate"),
        "{note}"
    );
}

/// If the content of a misaligned partition is aligned nevertheless, is the partition left where it
/// is?
#[test]
fn a_compensated_start_is_left() {
    let (sfdisk, cryptsetup) = (testkit::tool!("sfdisk"), testkit::tool!("cryptsetup"));
    let luks = Image::new(64 * MIB);
    let format =
        "luksFormat -q --type luks1 --align-payload 4097 --pbkdf-force-iterations 1000 @ -";
    let words: Vec<&str> = format.split(' ').collect();
    luks.run(&cryptsetup, &words, "secret");
    let image = Image::new(70 * MIB);
    image.run(&sfdisk, &["-q", "@"], "label: dos\nstart=63,size=131072\n");
    image.write(63 * 512, &std::fs::read(&luks.path).unwrap());
    let rows = findings(&image.stack(), None, None, &[]);
    assert!(rows.iter().flat_map(commands).next().is_none(), "{rows:#?}");
    for rule in [Rule::PartitionStart, Rule::PartitionEnd] {
        let row = rows.iter().find(|row| row.finding.rule == rule).unwrap();
        let note = &row.fix.as_ref().unwrap().note;
        assert!(note.starts_with("leave it: "), "{rule:?}: {note}");
    }
}
