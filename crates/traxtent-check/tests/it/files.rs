//! Where files lie in an image.

use testkit::tool;
use traxtent_check::files::extents_in_image;
use traxtent_check::source::FileSource;
use traxtent_check::{Kind, Source};

use crate::image::{Image, MIB, first};

/// The chunks of some bytes that are not all zeros, the last one filled up.
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

/// Bytes that tell where in the file they are.
fn numbered(from: u64, count: usize) -> Vec<u8> {
    let words = (0..count as u64 / 8).flat_map(|index| (from + index + 1).to_le_bytes());
    words.collect()
}

/// Are the bytes at the extents those of the files, small, large and full of holes, by extents and by lists of blocks?
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
            std::os::unix::fs::FileExt::write_all_at(&holes, &numbered(at, 512), at).unwrap();
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
                        .take(range.start, (range.end - range.start) as usize)
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
