//! A software build similar to SSH-build (paper T, section 5.3): unpack, configure, compile.
//!
//! The paper names SSH 1.2.27 and the phases, but gives no numbers. All numbers here are assumed,
//! in proportion to that package: a megabyte compressed, about 400 files in a dozen directories,
//! about 200 of them compiled, and a hundred compiler tests. In the paper, cache hits and small
//! writes dominate the elapsed time. Here, the processor times are large enough to dominate it.

use traxtent_units::Rng;
use traxtent_units::Span;

use super::file::FileId;
use super::simulated_host::SimulatedHost;

const KB: u64 = 1024;
/// The number of files in the archive.
const FILES: usize = 420;
/// The number of directories into which they are unpacked.
const DIRECTORIES: u64 = 12;
/// The number of files that are compiled.
const COMPILED: usize = 200;
/// The number of compiler tests.
const TESTS: u32 = 100;
/// The number of other files that are read for each file that is compiled.
const HEADERS: usize = 25;
/// The number of programs that are linked.
const PROGRAMS: u32 = 6;

/// The processor time in milliseconds for each file that is unpacked.
const UNPACK_MS: f64 = 5.0;
/// The same for each test.
const TEST_MS: f64 = 150.0;
/// The same for each file that is compiled.
const COMPILE_MS: f64 = 150.0;
/// The same for each program that is linked.
const LINK_MS: f64 = 500.0;

/// Runs the three phases.
pub fn build(host: &mut SimulatedHost, seed: u64) {
    let mut rng = Rng::new(seed);
    let archive_home = host.directory(0);
    let archive = host.existing(archive_home, 1024 * KB);
    let directories: Vec<FileId> = (0..DIRECTORIES).map(|at| host.directory(at)).collect();
    let files = unpack(host, archive, &directories, &mut rng);
    configure(host, directories[0], &mut rng);
    compile(host, &files, &directories, &mut rng);
}

fn unpack(
    host: &mut SimulatedHost,
    archive: FileId,
    directories: &[FileId],
    rng: &mut Rng,
) -> Vec<(FileId, u64)> {
    super::apps::scan(host, archive, 1024 * KB);
    (0..FILES)
        .map(|at| {
            host.spend(Span::from_ms(UNPACK_MS));
            let bytes = KB + rng.below(30 * KB);
            let directory = directories[at % directories.len()];
            (host.make(directory, bytes), bytes)
        })
        .collect()
}

/// Runs the tests. Each test writes a source, compiles it, and removes the source and the program.
fn configure(host: &mut SimulatedHost, directory: FileId, rng: &mut Rng) {
    for _ in 0..TESTS {
        let source = host.make(directory, KB);
        host.spend(Span::from_ms(TEST_MS));
        let program = host.make(directory, 4 * KB + rng.below(12 * KB));
        host.remove(source);
        host.remove(program);
    }
}

fn compile(
    host: &mut SimulatedHost,
    files: &[(FileId, u64)],
    directories: &[FileId],
    rng: &mut Rng,
) {
    for at in 0..COMPILED {
        let headers = (0..HEADERS).map(|_| files[rng.below(files.len() as u64) as usize]);
        for (file, bytes) in headers.chain([files[at]]).collect::<Vec<_>>() {
            let mut open = host.open(file);
            host.read(&mut open, 0..bytes);
            host.close(open);
        }
        host.spend(Span::from_ms(COMPILE_MS));
        host.make(
            directories[at % directories.len()],
            4 * KB + rng.below(16 * KB),
        );
    }
    for _ in 0..PROGRAMS {
        host.spend(Span::from_ms(LINK_MS));
        host.make(directories[0], 300 * KB);
    }
}
