//! File systems of this kernel on a served drive, aligned and not.

use std::path::Path;

use tempfile::TempDir;
use traxtent_lab::Bench;
use traxtent_lab::alignment::{FileSystem, Machine, Phase, missing, times};

/// Does ext4 take the drive longer where its partition begins amid a physical sector, to have 40 MiB of small files
/// written and a large one; and does it lose less in reading than in writing them?
#[test]
fn ext4_on_a_drive_of_large_sectors() {
    if let Some(reason) = missing() {
        testkit::skip!("{reason}");
    }
    let _ = testkit::tool!("nbdkit");
    let folder = TempDir::new().unwrap();
    let bench = Bench::new("wd10ears", 1).unwrap();
    let run = || {
        let traxtent = Path::new(env!("CARGO_BIN_EXE_traxtent"));
        let ext4 = (Machine::Host, FileSystem::Ext4);
        times(&bench, ext4, 40, 0, traxtent, folder.path()).unwrap()
    };
    let measured = run();
    eprintln!("{measured:?}");
    let ratio = |phases: &[Phase]| {
        let index = |phase| Phase::ALL.iter().position(|known| known == phase).unwrap();
        let sum = |times: &[f64]| -> f64 { phases.iter().map(|phase| times[index(phase)]).sum() };
        sum(&measured.unaligned) / sum(&measured.aligned)
    };
    // How a busy kernel cuts what it writes back is its own affair: making the file system, and the copy by itself, are left
    // to the experiment.
    let written = ratio(&[Phase::Extract, Phase::Copy]);
    assert!(written > 1.15, "{measured:?}");
    for phase in [Phase::ReadTree, Phase::ReadTarball] {
        assert!(ratio(&[phase]) < written, "{phase:?}: {measured:?}");
    }
    // What has been recorded is not recorded again, and takes the same time again.
    let again = run();
    assert_eq!(again.aligned, measured.aligned);
    assert_eq!(again.unaligned, measured.unaligned);
}
