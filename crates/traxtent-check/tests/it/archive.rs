//! The archive that `--collect` writes and `check` reads.

use testkit::tool;
use traxtent_check::collect::{ArchiveError, StackArchive};
use traxtent_check::rules;

use crate::image::{Image, MIB};

fn archive() -> Option<StackArchive> {
    let sfdisk = testkit::tool("sfdisk")?;
    let image = Image::new(64 * MIB);
    image.run(
        &sfdisk,
        &["-q", "@"],
        "label: gpt\nfirst-lba: 34\nstart=34,size=8192\nstart=16384,size=8192\n",
    );
    Some(StackArchive::new("a-host".to_owned(), image.stack()))
}

/// Is a collected stack the same after writing and reading, and are its findings the same?
#[test]
fn comes_back() {
    let _ = tool!("sfdisk");
    let archive = archive().unwrap();
    let bytes = archive.write();
    assert!(StackArchive::recognize(&bytes));
    let read = StackArchive::read(&bytes).unwrap();
    assert_eq!(read, archive);
    assert_eq!(
        rules::check(&read.stack, None),
        rules::check(&archive.stack, None)
    );
}

/// Are other versions, references to later layers, sectors of 0 bytes and missing keys refused with
/// the reason?
#[test]
fn refused() {
    let _ = tool!("sfdisk");
    let text = String::from_utf8(archive().unwrap().write()).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} in {text}");
        StackArchive::read(text.replacen(from, to, 1).as_bytes()).unwrap_err()
    };
    assert!(matches!(
        changed("\"version\": 1", "\"version\": 2"),
        ArchiveError::Version { version: 2, .. }
    ));
    assert!(
        changed("\"layer\": 0", "\"layer\": 77")
            .to_string()
            .contains(", which does not come before it")
    );
    assert!(
        changed("\"physical_bytes\": 4096", "\"physical_bytes\": 0")
            .to_string()
            .contains("physical sector of 0")
    );
    assert!(matches!(
        changed("\"host\"", "\"guest\""),
        ArchiveError::Json(_)
    ));
}
