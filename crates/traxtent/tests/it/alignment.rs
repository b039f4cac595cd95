//! The ext4 of this host's kernel on a served drive, aligned and unaligned.

use std::path::Path;

use tempfile::TempDir;
use traxtent_lab::Bench;
use traxtent_lab::alignment::{FileSystem, KernelHost, Phase, times, unavailable_reason};

/// If the partition of ext4 begins within a physical sector, does the drive take longer to write 40
/// MiB of small files and a large one, and is the loss smaller for reading than for writing? Does a
/// recorded workload take the same time again?
#[test]
fn ext4_on_a_drive_of_large_sectors() {
    if let Some(reason) = unavailable_reason() {
        testkit::skip!("{reason}");
    }
    let folder = TempDir::new().unwrap();
    let bench = Bench::new("wd10ears", 1).unwrap();
    let run = || {
        let traxtent = Path::new(env!("CARGO_BIN_EXE_traxtent"));
        let ext4 = (KernelHost::Host, FileSystem::Ext4);
        times(&bench, ext4, 40, 0, traxtent, folder.path()).unwrap()
    };
    let measured = run();
    eprintln!("{measured:?}");
    let ratio = |phases: &[Phase]| {
        let index = |phase| Phase::ALL.iter().position(|known| known == phase).unwrap();
        let sum = |times: &[f64]| -> f64 { phases.iter().map(|phase| times[index(phase)]).sum() };
        sum(&measured.unaligned) / sum(&measured.aligned)
    };
    // How a busy kernel divides its write-back is unpredictable. Creating the file system, and the
    // copy alone, are left to the experiment.
    let written = ratio(&[Phase::Extract, Phase::Copy]);
    assert!(written > 1.15, "{measured:?}");
    for phase in [Phase::ReadTree, Phase::ReadTarball] {
        assert!(ratio(&[phase]) < written, "{phase:?}: {measured:?}");
    }
    let again = run();
    assert_eq!(again.aligned, measured.aligned);
    assert_eq!(again.unaligned, measured.unaligned);
}
