//! LVM2 on loop devices: physical and logical volumes written by its own tools.
//!
//! `--driverloaded n` lets lvcreate write metadata on a kernel without device mapper. In this mode
//! lvcreate refuses RAID and pools, so they are not covered here.

use std::path::{Path, PathBuf};

use testkit::{skip, tool};
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::LogicalVolume;
use traxtent_check::plan::fix::fix;
use traxtent_check::{Kind, Rule, Stack, findings};

use crate::image::{Image, MIB, examine_images, finding, run, wrong};

/// Loop devices over images, detached on drop.
struct Loops {
    losetup: PathBuf,
    nodes: Vec<String>,
}

impl Loops {
    fn over(losetup: PathBuf, images: &[PathBuf]) -> Option<Loops> {
        let mut loops = Loops {
            losetup,
            nodes: Vec::new(),
        };
        for image in images {
            let output = std::process::Command::new(&loops.losetup)
                .args(["--find", "--show"])
                .arg(image)
                .output()
                .expect("losetup runs");
            if !output.status.success() {
                return None;
            }
            loops
                .nodes
                .push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
        }
        Some(loops)
    }

    /// Runs an LVM command, in which `NODES` stands for the loop devices.
    fn lvm(&self, lvm: &Path, words: &str) -> String {
        let filters: String = self
            .nodes
            .iter()
            .map(|node| format!("\"a|^{node}$|\","))
            .collect();
        let config = format!(
            "devices {{ filter=[{filters}\"r|.*|\"] use_devicesfile=0 }} activation {{ udev_sync=0 udev_rules=0 }} \
             backup {{ backup=0 archive=0 }}"
        );
        let words = words.replace("NODES", &self.nodes.join(" "));
        let mut words: Vec<&str> = words.split(' ').collect();
        words.splice(1..1, ["-y", "--config", &config]);
        run(lvm, Path::new(""), &words, "")
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for node in &self.nodes {
            let _ = std::process::Command::new(&self.losetup)
                .args(["-d", node])
                .status();
        }
    }
}

fn volume<'a>(stack: &'a Stack, name: &str) -> (&'a traxtent_check::Layer, &'a LogicalVolume) {
    let layer = stack.layers.iter().find(|layer| layer.name == name);
    match layer.map(|layer| (layer, &layer.kind)) {
        Some((layer, Kind::LogicalVolume(volume))) => (layer, volume),
        other => panic!("{name} is {other:?} in {stack:#?}"),
    }
}

/// Does the data of each physical volume begin where LVM says? Are a linear and a striped volume
/// found with their sizes, members and stripes, and is the content of a volume examined?
#[test]
fn linear_and_striped() {
    let (lvm, losetup, mke2fs) = (tool!("lvm"), tool!("losetup"), tool!("mke2fs"));
    let image = Image::new(128 * MIB);
    let paths = [image.path.clone(), image.sibling("other.img", 128 * MIB)];
    let Some(loops) = Loops::over(losetup, &paths) else {
        skip!("no loop device is available");
    };
    loops.lvm(&lvm, "pvcreate NODES");
    let group = format!("traxtent{}", std::process::id());
    loops.lvm(&lvm, &format!("vgcreate {group} NODES"));
    let create = "lvcreate -an -Zn -Wn --driverloaded n";
    loops.lvm(&lvm, &format!("{create} -L 16M -n lin {group}"));
    loops.lvm(&lvm, &format!("{create} -L 32M -i2 -I64k -n str {group}"));
    let first_extent = loops.lvm(&lvm, "pvs --noheadings --units b --nosuffix -o pe_start");
    drop(loops);

    let stack = examine_images(&paths, &StatedDrive::default());
    let starts = stack.layers.iter().filter_map(|layer| match &layer.kind {
        Kind::PhysicalVolume(volume) => Some(volume.data_start.to_string()),
        _ => None,
    });
    assert_eq!(
        starts.collect::<Vec<_>>(),
        first_extent.split_whitespace().collect::<Vec<_>>()
    );
    let (linear, stated) = volume(&stack, &format!("{group}/lin"));
    assert_eq!(
        (stated.segment.as_str(), linear.bytes, linear.on.len()),
        ("linear", 16 * MIB, 1)
    );
    let (striped, stated) = volume(&stack, &format!("{group}/str"));
    assert_eq!(
        (stated.chunk_bytes, stated.stripe_bytes),
        (64 << 10, 128 << 10)
    );
    assert_eq!((striped.bytes, striped.on.len()), (32 * MIB, 2));
    let places = [striped.on[0], striped.on[1]];
    assert_eq!(wrong(&stack), [""; 0]);

    // A file system on each volume, made without stripe options.
    let place = linear.on[0];
    let other = Image::new(16 * MIB);
    other.run(&mke2fs, &["-q", "-F", "-b", "4096", "@"], "");
    let bytes = std::fs::read(&other.path).unwrap();
    image.write(place.start, &bytes);
    for (index, chunk) in bytes.chunks(64 << 10).enumerate() {
        let path = &paths[usize::from(places[index % 2].layer != place.layer)];
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let at = places[index % 2].start + (index as u64 / 2) * (64 << 10);
        std::os::unix::fs::FileExt::write_all_at(&file, chunk, at).unwrap();
    }
    let stack = examine_images(&paths, &StatedDrive::default());
    assert!(
        stack
            .layers
            .iter()
            .any(|layer| layer.name == "ext4" || layer.name == "ext2")
    );
    assert_eq!(wrong(&stack), [""; 0]);
}

/// If the image of one physical volume is not named, does the finding of each volume that lies on
/// it ask for the images of the group?
#[test]
fn missing_physical_volume() {
    let (lvm, losetup) = (tool!("lvm"), tool!("losetup"));
    let image = Image::new(64 * MIB);
    let paths = [image.path.clone(), image.sibling("other.img", 64 * MIB)];
    let Some(loops) = Loops::over(losetup, &paths) else {
        skip!("no loop device is available");
    };
    loops.lvm(&lvm, "pvcreate NODES");
    let group = format!("traxtent_part{}", std::process::id());
    loops.lvm(&lvm, &format!("vgcreate {group} NODES"));
    let create = "lvcreate -an -Zn -Wn --driverloaded n";
    loops.lvm(&lvm, &format!("{create} -L 32M -i2 -I64k -n str {group}"));
    loops.lvm(&lvm, &format!("{create} -l 100%FREE -n lin {group}"));
    drop(loops);
    let stack = examine_images(&paths[1..], &StatedDrive::default());
    let advised: Vec<String> = findings(&stack, None, None, &[])
        .into_iter()
        .filter(|row| row.finding.rule == Rule::UnknownContent)
        .filter_map(|row| row.fix)
        .map(|fix| fix.note)
        .collect();
    let says = format!("name the images of all physical volumes of the group {group} together");
    assert_eq!(advised, [says.clone(), says]);
    let whole = examine_images(&paths, &StatedDrive::default());
    assert_eq!(wrong(&whole), [""; 0]);
}

/// Does the latest metadata of a group count if a volume has older metadata, or metadata that LVM
/// ignores, in whatever order the volumes are named? Is older metadata reported?
#[test]
fn metadata_of_several_ages() {
    let (lvm, losetup) = (tool!("lvm"), tool!("losetup"));
    let image = Image::new(64 * MIB);
    let mut paths = vec![
        image.path.clone(),
        image.sibling("second.img", 64 * MIB),
        image.sibling("third.img", 64 * MIB),
    ];
    let Some(loops) = Loops::over(losetup, &paths) else {
        skip!("no loop device is available");
    };
    loops.lvm(&lvm, "pvcreate NODES");
    let group = format!("traxtent_ages{}", std::process::id());
    loops.lvm(&lvm, &format!("vgcreate {group} NODES"));
    // The metadata on the first volume stays as it is.
    loops.lvm(
        &lvm,
        &format!("pvchange --metadataignore y {}", loops.nodes[0]),
    );
    let create = "lvcreate -an -Zn -Wn --driverloaded n -l 1";
    loops.lvm(&lvm, &format!("{create} -n one {group} {}", loops.nodes[0]));
    std::fs::copy(&paths[1], paths[1].with_file_name("old.img")).unwrap();
    loops.lvm(&lvm, &format!("{create} -n two {group} {}", loops.nodes[1]));
    drop(loops);
    let older = |paths: &[PathBuf]| {
        let stack = examine_images(paths, &StatedDrive::default());
        volume(&stack, &format!("{group}/one"));
        let (two, _) = volume(&stack, &format!("{group}/two"));
        assert_eq!(two.on.len(), 1, "{two:#?}");
        let found = traxtent_check::rules::check(&stack, None).into_iter();
        let notes = found.filter(|found| found.rule == Rule::OlderMetadata);
        (
            stack.clone(),
            notes.map(|found| found.what).collect::<Vec<_>>(),
        )
    };
    for _ in 0..3 {
        let (stack, notes) = older(&paths);
        assert_eq!(notes, [""; 0]);
        let (one, _) = volume(&stack, &format!("{group}/one"));
        assert_eq!(one.on.len(), 1);
        paths.rotate_left(1);
    }
    // An old copy of the second volume.
    paths.insert(0, paths[1].with_file_name("old.img"));
    for _ in 0..4 {
        let (stack, notes) = older(&paths);
        let [note] = notes.as_slice() else {
            panic!("{notes:?}")
        };
        assert!(
            note.contains("old.img has version ") && note.contains(&group),
            "{note}"
        );
        let (two, _) = volume(&stack, &format!("{group}/two"));
        let below = stack.layer(stack.layer(two.on[0].layer).on[0].layer);
        assert!(below.name.ends_with("second.img"), "{}", below.name);
        paths.rotate_left(1);
    }
}

/// Returns the commands printed for data that does not begin at a physical sector.
fn commands(image: &Image) -> Vec<String> {
    let stack = image.stack();
    let fix = fix(&finding(&stack, Rule::DataStart), &stack, &[], None);
    fix.expect("there is advice").commands
}

/// Is a physical volume reported if its data does not begin at a physical sector, or at a stripe of
/// the array below? Is a command printed only if it works as printed, outside a volume group?
#[test]
fn data_start() {
    let (lvm, losetup) = (tool!("lvm"), tool!("losetup"));
    let image = Image::new(128 * MIB);
    let Some(loops) = Loops::over(losetup, std::slice::from_ref(&image.path)) else {
        skip!("no loop device is available");
    };
    loops.lvm(
        &lvm,
        "pvcreate --dataalignment 64k --dataalignmentoffset 3k NODES",
    );
    assert_eq!(image.wrong(), ["data-start"]);
    let printed = commands(&image);
    assert!(
        printed.iter().any(|line| line.starts_with("pvcreate ")),
        "{printed:?}"
    );
    // Without a further step, pvcreate refuses a physical volume of a group.
    loops.lvm(&lvm, "vgcreate traxtent_test_group NODES");
    assert_eq!(image.wrong(), ["data-start"]);
    assert_eq!(commands(&image), [""; 0]);
    // Nothing sets a variable for the text.
    let stack = image.stack();
    let note = fix(&finding(&stack, Rule::DataStart), &stack, &[], None)
        .unwrap()
        .note;
    assert!(
        note.contains("(`pvcreate --dataalignment 1024k DEVICE`)")
            && note.ends_with("; DEVICE stands for the device of the physical volume"),
        "{note}"
    );
    loops.lvm(&lvm, "vgremove traxtent_test_group");
    loops.lvm(&lvm, "pvcreate -ff --dataalignment 1m NODES");
    assert_eq!(image.wrong(), [""; 0]);
    let array = StatedDrive {
        chunk_bytes: Some(512 << 10),
        stripe_bytes: Some(1536 << 10),
        ..StatedDrive::default()
    };
    assert_eq!(wrong(&image.stack_for(&array)), ["data-stripe"]);
    loops.lvm(&lvm, "pvcreate -ff --dataalignment 1536k NODES");
    assert_eq!(wrong(&image.stack_for(&array)), [""; 0]);
}
