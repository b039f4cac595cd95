//! LUKS devices made by cryptsetup.

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::Luks;
use traxtent_check::{Kind, Rule};

use crate::image::{Image, MIB, finding, first, wrong};

/// Arguments of cryptsetup for few key iterations, which take little time.
const CHEAP: [&str; 6] = [
    "-q",
    "luksFormat",
    "--key-file",
    "-",
    "--pbkdf-force-iterations",
    "1000",
];

/// Further arguments for LUKS2 with sectors of 4096 bytes.
const LUKS2: [&str; 7] = [
    "--type",
    "luks2",
    "--pbkdf",
    "pbkdf2",
    "--sector-size",
    "4096",
    "@",
];

fn luks(stack: &traxtent_check::Stack) -> Luks {
    let (_, luks) = first(stack, |kind| match kind {
        Kind::Luks(luks) => Some(luks),
        _ => None,
    });
    luks.clone()
}

/// Are the version and the sector size of a LUKS1 and a LUKS2 device found, and does the start of
/// the data match what cryptsetup prints?
#[test]
fn header_matches_luks_dump() {
    let cryptsetup = tool!("cryptsetup");
    let image = Image::new(64 * MIB);
    image.run(
        &cryptsetup,
        &[&CHEAP[..], &["--type", "luks1", "@"]].concat(),
        "key",
    );
    let printed = image.run(&cryptsetup, &["luksDump", "@"], "");
    let stack = image.stack();
    let found = luks(&stack);
    assert_eq!((found.version, found.sector_bytes), (1, 512));
    assert_eq!(
        found.data_start,
        512 * crate::image::number(&printed, "Payload offset:")
    );
    assert!(printed.contains(&found.uuid));
    assert_eq!(wrong(&stack), ["luks-sector"]);

    image.run(&cryptsetup, &[&CHEAP[..], &LUKS2].concat(), "key");
    let printed = image.run(&cryptsetup, &["luksDump", "@"], "");
    let stack = image.stack();
    let found = luks(&stack);
    assert_eq!(
        (found.version, found.sector_bytes, found.data_bytes),
        (2, 4096, None)
    );
    assert_eq!(found.data_start, crate::image::number(&printed, "offset:"));
    assert_eq!(wrong(&stack), [""; 0]);
}

/// Are commands that convert LUKS1 printed only if `cryptsetup convert` succeeds, for several sizes
/// of keys, at the first position of the data with room for it and one step before?
#[test]
fn conversion_needs_room() {
    let cryptsetup = tool!("cryptsetup");
    // (bits of a key, first sector of the data, whether it can be converted)
    for (key, data, converts) in [
        ("512", "4040", false),
        ("512", "4088", false),
        ("512", "4096", true),
        ("256", "2104", false),
        ("256", "2112", true),
    ] {
        let image = Image::new(64 * MIB);
        let options = ["--type", "luks1", "-s", key, "--offset", data, "@"];
        image.run(&cryptsetup, &[&CHEAP[..], &options].concat(), "key");
        let rows = traxtent_check::findings(&image.stack(), None, None, &[]);
        let fix = rows.iter().find(|row| row.finding.rule == Rule::LuksSector);
        let fix = fix.and_then(|row| row.fix.as_ref()).unwrap();
        assert_eq!(!fix.commands.is_empty(), converts, "{key} {data}: {fix:?}");
        assert_eq!(
            fix.note.contains("`cryptsetup convert` to LUKS2 fails"),
            !converts
        );
        let convert = std::process::Command::new(&cryptsetup)
            .args(["convert", "-q", "--type", "luks2"])
            .arg(&image.path)
            .output()
            .unwrap();
        assert_eq!(
            convert.status.success(),
            converts,
            "{key} {data}: {convert:?}"
        );
    }
}

/// Is a device whose length is not a multiple of its sector size reported
/// (fedora-coreos-tracker 1384)?
#[test]
fn unaligned_end() {
    let cryptsetup = tool!("cryptsetup");
    let image = Image::new(64 * MIB);
    image.run(&cryptsetup, &[&CHEAP[..], &LUKS2].concat(), "key");
    std::fs::File::options()
        .write(true)
        .open(&image.path)
        .unwrap()
        .set_len(64 * MIB - 512)
        .unwrap();
    assert_eq!(image.wrong(), ["luks-end"]);
    let what = finding(&image.stack(), Rule::LuksEnd).what;
    assert!(
        what.contains("3584 extra bytes after the last one"),
        "{what}"
    );
}

/// Is data that does not begin at a physical sector reported? Is a misaligned partition only noted
/// if the start of the data compensates for its misalignment?
#[test]
fn data_start() {
    let (cryptsetup, sgdisk) = (tool!("cryptsetup"), tool!("sgdisk"));
    let image = Image::new(64 * MIB);
    image.run(
        &cryptsetup,
        &[
            &CHEAP[..],
            &["--type", "luks1", "--align-payload", "2049", "@"],
        ]
        .concat(),
        "key",
    );
    let off = finding(&image.stack(), Rule::DataStart).off.unwrap();
    assert_eq!(off.by % 512, 0);
    assert_ne!(off.by, 0);
    // The header of that device, in a partition whose misalignment cancels that of the data.
    let header = std::fs::read(&image.path).unwrap();
    let shift = 8 - luks(&image.stack()).data_start / 512 % 8;
    let disk = Image::new(96 * MIB);
    let start = 2048 + shift;
    disk.run(
        &sgdisk,
        &["-a", "1", "-n", &format!("1:{start}:+40M"), "@"],
        "",
    );
    disk.write(start * 512, &header[..4 << 20]);
    let stack = disk.stack();
    assert_eq!(wrong(&stack), ["luks-sector"]);
    let compensated = finding(&stack, Rule::PartitionStart);
    assert_eq!(compensated.severity, traxtent_check::Severity::Info);
    assert!(
        compensated.what.contains("is aligned nevertheless"),
        "{}",
        compensated.what
    );
}

/// Is a stack free of the key material of a header?
#[test]
fn no_key_material() {
    let cryptsetup = tool!("cryptsetup");
    let image = Image::new(64 * MIB);
    image.run(
        &cryptsetup,
        &[&CHEAP[..], &["--type", "luks2", "--pbkdf", "pbkdf2", "@"]].concat(),
        "key",
    );
    let text = serde_json::to_string(&image.stack_for(&StatedDrive::default())).unwrap();
    for word in ["salt", "keyslot", "digest", "iterations", "kdf"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}
