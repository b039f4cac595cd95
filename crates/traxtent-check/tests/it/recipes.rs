//! Planned recipes, run in a guest with the real tools. `check` must report no warning or fault in
//! the results, except about the drives themselves.
//!
//! The guest is an emulated machine, because md, device mapper and partitions of drives need a
//! kernel of their own. Shell functions replace some of the tools. `cryptsetup` supplies a
//! passphrase and uses few iterations. `pvcreate`, `vgcreate` and `lvcreate` do not ask for
//! confirmation. The others run the real programs instead of those built into busybox.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::guest::Guest;
use traxtent_check::drive::StatedDrive;
use traxtent_check::plan::{self, DriveProperties, Recipe, StackSpec};
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Kind, Severity, findings};
use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile;
use traxtent_units::Lbn;

use crate::drives;

/// A drive and the stack to create on it.
struct Trial {
    /// A built-in drive, or `None` for one of 1 GiB whose tracks are unknown.
    drive: Option<&'static str>,
    /// The stack, in the form of `plan stack --for`.
    want: &'static str,
    /// Parts of the names of layers that the result must contain.
    layers: &'static [&'static str],
}

const fn trial(
    drive: Option<&'static str>,
    want: &'static str,
    layers: &'static [&'static str],
) -> Trial {
    Trial {
        drive,
        want,
        layers,
    }
}

const TRIALS: &[Trial] = &[
    trial(None, "fs=ext4", &["GPT", "ext4"]),
    trial(None, "fs=ext2,with=parted,table=mbr", &["MBR", "ext2"]),
    trial(None, "fs=xfs,with=sgdisk", &["GPT", "XFS"]),
    trial(None, "fs=btrfs,with=parted", &["GPT", "Btrfs"]),
    trial(None, "fs=swap,table=mbr", &["MBR", "swap"]),
    trial(None, "fs=ext4,table=none", &["ext4"]),
    trial(None, "fs=ext3,luks", &["GPT", "LUKS2"]),
    trial(None, "fs=xfs,lvm", &["GPT", "physical volume", "XFS"]),
    trial(
        None,
        "fs=ext4,raid=5x64k,disks=4",
        &["md member", "array", "ext4"],
    ),
    trial(
        None,
        "fs=xfs,raid=6x64k,lvm",
        &["array", "physical volume", "XFS"],
    ),
    trial(
        None,
        "fs=ext4,raid=5x64k,disks=4,lvm,luks",
        &["array", "physical volume", "LUKS2"],
    ),
    trial(None, "fs=ext4,raid=10x128k,with=sgdisk", &["array", "ext4"]),
    trial(None, "fs=xfs,raid=0x512k", &["array", "XFS"]),
    trial(None, "fs=ext4,raid=1", &["array", "ext4"]),
    trial(Some("atlas10k2"), "fs=ext4", &["GPT", "ext4"]),
    trial(
        Some("hp-c3323a"),
        "fs=ext2,block=1024,with=parted,table=mbr",
        &["MBR", "ext2"],
    ),
    trial(
        Some("atlas10k"),
        "fs=ext4,raid=1,lvm",
        &["array", "physical volume", "ext4"],
    ),
    trial(Some("wd10ears-jumper"), "fs=ext4", &["GPT", "ext4"]),
];

/// The size of the drive whose tracks are unknown.
const PLAIN_BYTES: u64 = 1 << 30;

impl Trial {
    fn properties(&self) -> DriveProperties {
        let Some(name) = self.drive else {
            return DriveProperties {
                name: "plain".to_owned(),
                logical_bytes: 512,
                physical_bytes: 4096,
                lowest_aligned: Lbn(0),
                lbns: PLAIN_BYTES / 512,
                tracks: None,
            };
        };
        let profile = profile::builtin(name).unwrap();
        let tracks =
            TrackMap::from_sizes(Geometry::build(&profile.geometry).unwrap().track_sizes());
        DriveProperties {
            name: name.to_owned(),
            logical_bytes: profile.sector.logical_bytes,
            physical_bytes: profile.sector.physical_bytes,
            lowest_aligned: Lbn(u64::from(profile.sector.lowest_aligned_lbn)),
            lbns: tracks.end().0,
            tracks: Some(tracks.into()),
        }
    }

    fn stated(&self) -> StatedDrive {
        match self.drive {
            Some(name) => StatedDrive::of(&profile::builtin(name).unwrap()),
            None => StatedDrive {
                physical_bytes: Some(4096),
                ..StatedDrive::default()
            },
        }
    }
}

/// The programs that recipes run, with their names in the guest.
const PROGRAMS: &[(&str, &str)] = &[
    ("sfdisk", "sfdisk"),
    ("parted", "parted"),
    ("sgdisk", "sgdisk"),
    ("partx", "partx"),
    ("mdadm", "mdadm"),
    ("lvm", "lvm"),
    ("cryptsetup", "cryptsetup"),
    ("mke2fs", "mke2fs"),
    ("e2fsck", "e2fsck"),
    ("mkfs.xfs", "mkfs.xfs"),
    ("mkfs.btrfs", "mkfs.btrfs"),
    ("mkswap", "mkswap"),
    ("blockdev", "blockdev"),
];

/// The shell code that runs before all recipes.
const PREAMBLE: &str = r#"
export PATH=/bin LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1
$B mkdir -p /etc/lvm /run/lvm /run/cryptsetup /dev/mapper
printf 'activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 }\nglobal { use_lvmlockd=0 }\ndevices { obtain_device_list_from_udev=0 use_devicesfile=0 external_device_info_source="none" }\n' >/etc/lvm/lvm.conf
for name in mke2fs e2fsck mkswap blockdev; do eval "$name() { /bin/$name \"\$@\"; }"; done
for name in pvcreate vgcreate lvcreate; do eval "$name() { lvm $name --yes \"\$@\" </dev/null; }"; done
printf secret >/key
cryptsetup() {
  case $1 in
    luksFormat) shift; /bin/cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /key "$@" ;;
    *) /bin/cryptsetup --key-file /key "$@" ;;
  esac
}
"#;

/// Kernel modules for the device mapper, RAID 10 and encryption.
const MAPPER: &[&str] = &[
    "dm-mod",
    "raid10",
    "crypto_simd",
    "cryptd",
    "ecb",
    "xts",
    "essiv",
    "dm-crypt",
];

/// Does every recipe run to its end with the real tools, and is the result free of warnings and
/// faults, except about the drive itself? Outside a soak, only every second recipe is tried,
/// because the guest is emulated.
#[test]
fn recipes_run_and_check_clean() {
    let step = if testkit::repeats(1) > 1 { 1 } else { 2 };
    let trials: Vec<&Trial> = TRIALS.iter().step_by(step).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut images = Vec::new();
    let mut script = PREAMBLE.to_owned();
    let mut lists: Vec<PathBuf> = Vec::new();
    let mut recipes = Vec::new();
    let wants: Vec<StackSpec> = trials
        .iter()
        .map(|trial| trial.want.parse().unwrap())
        .collect();
    let disks = wants.iter().map(|want| want.disks as usize).sum();
    script += &drives::wait_for(disks);
    for (number, (trial, want)) in trials.iter().zip(&wants).enumerate() {
        let properties = trial.properties();
        let first = images.len();
        for disk in 0..want.disks {
            let image = folder.path().join(format!("disk-{number}-{disk}.img"));
            let file = File::create(&image).unwrap();
            file.set_len(properties.lbns * u64::from(properties.logical_bytes))
                .unwrap();
            images.push(image);
        }
        let devices: Vec<String> = (first..images.len()).map(|n| format!("DISK{n}")).collect();
        let list = format!("/bin/list-{number}");
        let recipe = plan::plan_stack(&properties, want, &devices, &list).unwrap();
        if let Some(bad) = &recipe.bad_blocks {
            let path = folder.path().join(format!("list-{number}"));
            fs::write(&path, bad.list.lines()).unwrap();
            lists.push(path);
        }
        script += &script_of(number, &recipe, first..images.len());
        recipes.push((recipe, first..images.len()));
    }
    let console = match boot(&images, &lists, &script) {
        Ok(console) => console,
        Err(missing) => testkit::skip!("{missing}"),
    };
    for (number, trial) in trials.iter().enumerate() {
        assert!(
            console.contains(&format!("made {number}.")),
            "{}: the guest's console:\n{console}",
            trial.want
        );
    }
    for (trial, (recipe, images_of)) in trials.iter().zip(&recipes) {
        assert_no_warnings(trial, recipe, &images[images_of.clone()]);
    }
}

/// Is a stack refused if its drives are too small for one of its layers, and planned at the
/// smallest size? Do mkfs.xfs and mkfs.btrfs, with the options of the recipe, have the same bound?
#[test]
fn drives_too_small_for_a_layer() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    for (want, drive_bytes, device_bytes, says) in [
        ("fs=xfs", 300 * MIB, 300 * MIB, "xfs needs 300 MiB"),
        ("fs=xfs,luks", 316 * MIB, 0, "xfs needs 300 MiB"),
        (
            "fs=xfs,raid=0x512k",
            (64 << 20) + 513 * MIB / 2,
            513 * MIB,
            "xfs needs 513 MiB, but 512 MiB are left for it",
        ),
        ("fs=btrfs", 109 * MIB, 109 * MIB, "btrfs needs 109 MiB"),
        ("fs=ext4", MIB, MIB, "ext4 needs 1 MiB"),
        ("fs=ext4,luks", 17 * MIB, 0, "ext4 needs 1 MiB"),
        ("fs=swap,lvm", 5 * MIB, 0, "a physical volume needs 5 MiB"),
        ("raid=1", 65 * MIB, 0, "a member of the array needs 65 MiB"),
        (
            "raid=5x4m",
            68 * MIB,
            0,
            "a member of the array needs 68 MiB",
        ),
    ] {
        let spec: StackSpec = format!("{want},table=none").parse().unwrap();
        let plan = |bytes: u64| {
            let properties = DriveProperties {
                name: "small".to_owned(),
                logical_bytes: 512,
                physical_bytes: 4096,
                lowest_aligned: Lbn(0),
                lbns: bytes / 512,
                tracks: None,
            };
            let devices: Vec<String> = (0..spec.disks).map(|n| format!("DISK{n}")).collect();
            plan::plan_stack(&properties, &spec, &devices, "list")
        };
        let recipe = plan(drive_bytes).unwrap();
        let refused = plan(drive_bytes - 4096).unwrap_err().to_string();
        assert!(refused.contains(says), "{want}: {refused}");
        if !want.starts_with("fs=xfs") && !want.starts_with("fs=btrfs") || device_bytes == 0 {
            continue;
        }
        let step = recipe
            .steps
            .iter()
            .find(|step| step.what.contains(" in blocks of "));
        let words: Vec<&str> = step.unwrap().commands[0].split(' ').collect();
        let (options, program) = (&words[1..words.len() - 1], words[0]);
        let Some(tool) = testkit::tool(program) else {
            continue;
        };
        // On stripes, the bound of mkfs.xfs is below the next whole MiB.
        let short = if want.contains("raid") { MIB } else { 4096 };
        for (bytes, fits) in [(device_bytes, true), (device_bytes - short, false)] {
            let image = folder.path().join("small.img");
            File::create(&image).unwrap().set_len(bytes).unwrap();
            let made = std::process::Command::new(&tool)
                .args(options)
                .arg("-f")
                .arg(&image)
                .output();
            let made = made.unwrap();
            assert_eq!(made.status.success(), fits, "{want} {bytes}: {made:?}");
        }
    }
}

/// Returns the recipe as a script that prints whether it succeeded, and then releases its devices.
/// The steps that run `traxtent` are omitted.
fn script_of(number: usize, recipe: &Recipe, disks: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for step in recipe
        .steps
        .iter()
        .filter(|step| step.program != "traxtent")
    {
        text += &format!("{}\n", step.commands.join("\n"));
    }
    // The kernel finds drives in no fixed order, so the names are variables that the guest sets.
    let mut names = String::new();
    for n in disks.clone().rev() {
        names += &format!("D{n}={}\n", drives::node(n));
        text = text.replace(&format!("DISK{n}p1"), &format!("${{D{n}}}1"));
        text = text.replace(&format!("DISK{n}"), &format!("$D{n}"));
    }
    format!(
        "{names}( set -e\n{text}) >/tmp/says 2>&1\n\
         if [ $? = 0 ]; then echo 'made {number}.'; else echo 'failed {number}'; $B cat /tmp/says; fi\n\
         [ -e /dev/mapper/data ] && /bin/cryptsetup close data; lvm vgchange -an >/dev/null 2>&1; \
         lvm vgrename vg0 made{number} >/dev/null 2>&1; \
         mdadm --stop --scan >/dev/null 2>&1\n"
    )
}

fn boot(images: &[PathBuf], lists: &[PathBuf], script: &str) -> Result<String, String> {
    let mut programs: Vec<(PathBuf, String)> = Vec::new();
    for (name, place) in PROGRAMS {
        let path = testkit::tool(name).ok_or_else(|| format!("{name} is not installed"))?;
        programs.push((path, (*place).to_owned()));
    }
    for list in lists {
        let name = list.file_name().unwrap().to_string_lossy().into_owned();
        programs.push((list.clone(), name));
    }
    let programs: Vec<(&Path, &str)> = programs
        .iter()
        .map(|(path, name)| (path.as_path(), name.as_str()))
        .collect();
    let modules = [drives::MODULES, drives::MD, MAPPER].concat();
    let guest = Guest {
        name: "recipes",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &modules,
        programs: &programs,
        files: &[],
        script,
        devices: &drives::devices(images),
        limit: Duration::from_secs(240),
    };
    guest.run()
}

/// Asserts that all expected layers are found, and that no warning or fault is reported, except
/// about the drive itself.
fn assert_no_warnings(trial: &Trial, recipe: &Recipe, images: &[PathBuf]) {
    let stack = examine_targets(images, &trial.stated(), &HostPaths::default()).unwrap();
    let names: Vec<String> = stack
        .layers
        .iter()
        .map(|layer| layer.name.clone())
        .collect();
    for layer in trial.layers {
        assert!(
            names.iter().any(|name| name.contains(layer)),
            "{}: no {layer} in {names:?}",
            trial.want
        );
    }
    let findings: Vec<String> = findings(&stack, None, None, &[])
        .into_iter()
        .map(|row| row.finding)
        .filter(|finding| finding.severity >= Severity::Warning)
        // Findings about the drive itself cannot be fixed by a recipe.
        .filter(|finding| !matches!(stack.layer(finding.layer).kind, Kind::Disk(_)))
        .map(|finding| format!("{}: {}", finding.rule.id(), finding.what))
        .collect();
    assert!(
        findings.is_empty(),
        "{} on {:?}: {findings:#?}\n{recipe:#?}",
        trial.want,
        trial.drive
    );
}
