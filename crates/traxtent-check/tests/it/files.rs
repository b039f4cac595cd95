//! The extents of files in an image and in a mounted file system.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use testkit::tool;
use traxtent_check::files::{extents_in_image, extents_of_mounted};
use traxtent_check::source::FileSource;
use traxtent_check::target::HostPaths;
use traxtent_check::{Kind, Source};

use crate::image::{Image, MIB, first};

/// Splits bytes into chunks, the last of which is padded, and returns the chunks that are not all
/// zeros.
fn chunks(bytes: &[u8], chunk: usize) -> Vec<Vec<u8>> {
    let filled = bytes.chunks(chunk).map(|bytes| {
        let mut bytes = bytes.to_vec();
        bytes.resize(chunk, 0);
        bytes
    });
    filled
        .filter(|bytes| bytes.iter().any(|&byte| byte != 0))
        .collect()
}

/// Returns `count` bytes, in words that count up from `from` + 1.
fn numbered(from: u64, count: usize) -> Vec<u8> {
    let words = (0..count as u64 / 8).flat_map(|index| (from + index + 1).to_le_bytes());
    words.collect()
}

/// Do the extents found for small files, large files and files with holes hold the files' bytes, in
/// file systems with extents and with block lists? Are a folder, a missing file and a truncated
/// image refused?
#[test]
fn extents_hold_the_bytes() {
    let mke2fs = tool!("mke2fs");
    for (version, block) in [("ext2", 1024usize), ("ext4", 4096), ("ext4", 1024)] {
        let image = Image::new(128 * MIB);
        let folder = image.path.with_file_name("root");
        std::fs::create_dir_all(folder.join("folder")).unwrap();
        for (name, size) in [
            ("small", 104),
            ("large", 20 * MIB as usize),
            ("middle", 300_000),
        ] {
            std::fs::write(folder.join("folder").join(name), numbered(0, size)).unwrap();
        }
        let holes = std::fs::File::create(folder.join("folder/holes")).unwrap();
        for index in 0..40u64 {
            let at = index * 300_000;
            holes.write_all_at(&numbered(at, 512), at).unwrap();
        }
        let (root, size) = (folder.to_str().unwrap(), block.to_string());
        image.run(
            &mke2fs,
            &["-q", "-F", "-t", version, "-b", &size, "-d", root, "@"],
            "",
        );
        let stack = image.stack();
        let (_, ext) = first(&stack, |kind| match kind {
            Kind::Ext(ext) => Some(ext),
            _ => None,
        });
        let source: &dyn Source = &FileSource::open(&image.path).unwrap();
        for name in ["small", "large", "middle", "holes"] {
            let extents = extents_in_image(source, ext, &format!("/folder/{name}")).unwrap();
            let bytes: Vec<u8> = extents
                .iter()
                .flat_map(|range| {
                    source
                        .read(range.start, (range.end - range.start) as usize)
                        .unwrap()
                })
                .collect();
            let file = std::fs::read(folder.join("folder").join(name)).unwrap();
            assert!(
                chunks(&bytes, block) == chunks(&file, block),
                "{version}, blocks of {block}: {name}"
            );
        }
        assert!(extents_in_image(source, ext, "/folder").is_err());
        assert!(extents_in_image(source, ext, "/folder/none").is_err());
        let torn: &dyn Source = &std::fs::read(&image.path).unwrap()[..64 << 10].to_vec();
        assert!(extents_in_image(torn, ext, "/folder/large").is_err());
    }
}

/// An image mounted through a loop device, unmounted on drop.
struct Mount {
    node: String,
    point: String,
}

impl Mount {
    fn new(image: &Image) -> Result<Mount, String> {
        let run = |program: &str, words: &[&str]| {
            let output = Command::new(program).args(words).output();
            let output = output.map_err(|error| format!("{program}: {error}"))?;
            if output.status.success() {
                Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            } else {
                Err(format!(
                    "{program}: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                ))
            }
        };
        let path = image.path.to_str().unwrap();
        let point = image.path.with_file_name("mnt");
        std::fs::create_dir_all(&point).unwrap();
        let mut mount = Mount {
            node: run("losetup", &["--find", "--show", path])?,
            point: String::new(),
        };
        let point = point.to_str().unwrap();
        run("mount", &[&mount.node, point])?;
        mount.point = point.to_owned();
        Ok(mount)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !self.point.is_empty() {
            let _ = Command::new("umount").arg(&self.point).status();
        }
        let _ = Command::new("losetup")
            .args(["--detach", &self.node])
            .status();
    }
}

/// Do the extents from the kernel's FIEMAP hold the bytes of files on mounted ext4 and XFS: in one
/// piece, in many pieces, with holes, and with allocated but unwritten space? Are a folder and a
/// file that is not on a block device refused?
#[test]
fn extents_of_mounted_files_hold_the_bytes() {
    let (mke2fs, mkfs_xfs) = (tool!("mke2fs"), tool!("mkfs.xfs"));
    let _ = tool!("losetup");
    for (make, options) in [
        (&mke2fs, &["-q", "-F", "-t", "ext4", "-b", "4096", "@"][..]),
        (&mkfs_xfs, &["-q", "-f", "@"]),
    ] {
        let image = Image::new(320 * MIB);
        image.run(make, options, "");
        let mount = match Mount::new(&image) {
            Ok(mount) => mount,
            Err(why) => testkit::skip!("nothing can be mounted here: {why}"),
        };
        let file = |name: &str| Path::new(&mount.point).join(name);
        std::fs::write(file("whole"), numbered(0, 3 * MIB as usize)).unwrap();
        // Three files that grow alternately, each piece synced before the next. The last has holes.
        let [one, two, holes] =
            ["one", "two", "holes"].map(|name| std::fs::File::create(file(name)).unwrap());
        for index in 0..30u64 {
            let at = index * 40_960;
            for (file, place) in [(&one, at), (&two, at), (&holes, 3 * at)] {
                file.write_all_at(&numbered(place, 40_960), place).unwrap();
                file.sync_all().unwrap();
            }
        }
        rustix::fs::fallocate(&one, rustix::fs::FallocateFlags::empty(), 0, 4 * MIB).unwrap();
        one.sync_all().unwrap();
        let whole = std::fs::File::open(file("whole")).unwrap();
        whole.sync_all().unwrap();
        let mut pieces = 0;
        for name in ["whole", "one", "two", "holes"] {
            let found = extents_of_mounted(&file(name), &HostPaths::default()).unwrap();
            assert_eq!(found.device.to_str(), Some(mount.node.as_str()));
            let device = std::fs::File::open(&image.path).unwrap();
            let bytes: Vec<u8> = found
                .extents
                .iter()
                .flat_map(|range| {
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    device.read_exact_at(&mut bytes, range.start).unwrap();
                    bytes
                })
                .collect();
            let written = std::fs::read(file(name)).unwrap();
            assert!(
                chunks(&bytes, 4096) == chunks(&written, 4096),
                "{options:?}: {name}"
            );
            pieces = pieces.max(found.extents.len());
        }
        assert!(pieces > 5, "no file has many extents: {pieces}");
        assert!(extents_of_mounted(Path::new(&mount.point), &HostPaths::default()).is_err());
    }
    let elsewhere = extents_of_mounted(Path::new("/proc/version"), &HostPaths::default());
    assert!(elsewhere.unwrap_err().to_string().contains("block device"));
}

/// Are blocks on a file system's list of bad blocks not counted as blocks that span two tracks?
#[test]
fn excluded_blocks_do_not_cross() {
    let mke2fs = testkit::tool!("mke2fs");
    let image = crate::image::Image::new(64 << 20);
    let map = traxtent_map::TrackMap::from_sizes(std::iter::repeat_n(1001, 131));
    let mut bad: Vec<u64> = (1..131_u64)
        .map(|track| track * 1001)
        .filter(|lbn| lbn % 8 != 0)
        .map(|lbn| lbn / 8)
        .collect();
    // Blocks of the file system's own metadata cannot be excluded.
    bad.retain(|block| *block > 2000 && *block < 14_000);
    let list = image.path.with_extension("list");
    std::fs::write(
        &list,
        bad.iter()
            .map(|block| format!("{block}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let list = list.to_str().unwrap();
    image.run(
        &mke2fs,
        &["-q", "-F", "-t", "ext4", "-b", "4096", "-l", list, "@"],
        "",
    );
    let stack = image.stack();
    let (id, ext) = stack
        .iter()
        .find_map(|(id, layer)| match &layer.kind {
            traxtent_check::Kind::Ext(ext) => Some((id, ext)),
            _ => None,
        })
        .unwrap();
    let bytes = std::fs::read(&image.path).unwrap();
    let excluded = traxtent_check::files::bad_blocks_in_image(&bytes, ext).unwrap();
    let crossing = |excluded: Vec<_>| {
        let check = traxtent_check::rules::TrackCheck {
            drive: "drive.map",
            map: &map,
            sector_bytes: 512,
            extents: Vec::new(),
            excluded,
        };
        let found = traxtent_check::rules::check(&stack, Some(&check));
        found
            .iter()
            .find_map(|finding| finding.share)
            .map_or(0, |share| share.crossing)
    };
    let check = traxtent_check::rules::TrackCheck {
        drive: "drive.map",
        map: &map,
        sector_bytes: 512,
        extents: Vec::new(),
        excluded: Vec::new(),
    };
    let rows = traxtent_check::findings(&stack, Some(&check), None, &[]);
    let note = &rows[0].fix.as_ref().unwrap().note;
    let command = "`traxtent plan stack drive.map --for fs=ext4 --output DIR`";
    assert!(note.contains(command), "{note}");
    let all = crossing(Vec::new());
    let left = crossing(excluded.into_iter().map(|range| (id, range)).collect());
    assert_eq!(all - left, bad.len() as u64);
}

/// Does the advice about blocks that span two tracks refer to a misaligned partition first, and
/// does it propose a new file system only if that can exclude blocks?
#[test]
fn advice_about_crossings() {
    let (sfdisk, mkfs) = (testkit::tool!("sfdisk"), testkit::tool!("mkfs.xfs"));
    let xfs = crate::image::Image::new(320 << 20);
    xfs.run(&mkfs, &["-q", "-f", "-s", "size=4096", "@"], "");
    let bytes = std::fs::read(&xfs.path).unwrap();
    let map = traxtent_map::TrackMap::from_sizes(std::iter::repeat_n(1001, 700));
    let check = traxtent_check::rules::TrackCheck {
        drive: "drive.map",
        map: &map,
        sector_bytes: 512,
        extents: Vec::new(),
        excluded: Vec::new(),
    };
    for (start, says) in [
        (63, "may follow from partition-start: "),
        (64, "leave it: only ext2, ext3 and ext4 "),
    ] {
        let image = crate::image::Image::new(330 << 20);
        let script = format!("label: dos\nstart={start},size=655360\n");
        image.run(&sfdisk, &["-q", "@"], &script);
        image.write(start * 512, &bytes);
        let rows = traxtent_check::findings(&image.stack(), Some(&check), None, &[]);
        let last = rows.last().unwrap();
        assert_eq!(last.finding.rule.id(), "track-crossing");
        let note = &last.fix.as_ref().unwrap().note;
        assert!(note.starts_with(says), "{note}");
    }
}

/// If the track map covers only a part of a file system, is the number of blocks that are not
/// examined reported? Are extents longer than a track not counted as crossing, those that fit on
/// one are, and those beyond the map reported?
#[test]
fn a_map_of_a_region() {
    let mke2fs = testkit::tool!("mke2fs");
    let image = crate::image::Image::new(64 << 20);
    let options = ["-q", "-F", "-t", "ext4", "-b", "4096", "@"];
    image.run(&mke2fs, &options, "");
    let stack = image.stack();
    let (id, _) = stack
        .iter()
        .find(|(_, layer)| matches!(layer.kind, traxtent_check::Kind::Ext(_)))
        .unwrap();
    // Tracks are a whole number of blocks, so that no block spans two.
    let map = traxtent_map::TrackMap::from_sizes(std::iter::repeat_n(1000, 10));
    let track = 1000 * 512;
    let places = [
        0..track,
        4096..8 * track,
        track - 4096..track + 4096,
        20 * track..21 * track,
    ];
    let check = traxtent_check::rules::TrackCheck {
        drive: "drive.map",
        map: &map,
        sector_bytes: 512,
        extents: places
            .into_iter()
            .map(|bytes| traxtent_check::rules::Extent {
                layer: id,
                file: "f".to_owned(),
                bytes,
            })
            .collect(),
        excluded: Vec::new(),
    };
    let found = traxtent_check::rules::check(&stack, Some(&check));
    let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    let covers = "because the track map covers only LBNs 0 to 9999";
    let blocks = format!(
        "0 of the 1250 blocks of {} span a track boundary (0.00 %); not examined: 15134, {covers}",
        stack.title(id)
    );
    let extents = format!(
        "1 of the 2 extents of f that fit on a track span a track boundary (50 %); longer than a track: 1; not examined: 1, {covers}"
    );
    assert_eq!(said, [blocks, extents]);
}
