//! The programs that the papers run (paper T, section 5.3; paper Q, sections 2.5 and 3).

use traxtent_units::Rng;
use traxtent_units::Span;

use super::file::FileId;
use super::simulated_host::SimulatedHost;

const KB: u64 = 1024;

/// The measurements of a program's run.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRun {
    /// The elapsed time.
    pub elapsed: Span,
    /// The processor time.
    pub busy: Span,
    /// The traffic of the disk.
    pub traffic: super::Traffic,
}

impl ProgramRun {
    /// The elapsed time in seconds.
    pub fn seconds(&self) -> f64 {
        self.elapsed.as_ms() / 1000.0
    }
}

/// Runs a program and measures it.
pub fn timed(host: &mut SimulatedHost, program: impl FnOnce(&mut SimulatedHost)) -> ProgramRun {
    host.reset_measurements();
    let start = host.now();
    program(host);
    ProgramRun {
        elapsed: host.now().since(start),
        busy: host.busy(),
        traffic: host.traffic(),
    }
}

/// Reads a file from beginning to end, 8 KB at a time.
pub fn scan(host: &mut SimulatedHost, file: FileId, bytes: u64) {
    let mut open = host.open(file);
    for at in (0..bytes).step_by(8 * KB as usize) {
        host.read(&mut open, at..bytes.min(at + 8 * KB));
    }
}

/// Writes a file from its beginning, 8 KB at a time, as the writing phase of Bonnie does, and waits
/// until it is on the disk.
pub fn fill(host: &mut SimulatedHost, directory: FileId, bytes: u64) -> FileId {
    let file = host.create(directory);
    let mut open = host.open(file);
    for at in (0..bytes).step_by(8 * KB as usize) {
        host.write(&mut open, at..bytes.min(at + 8 * KB));
    }
    host.close(open);
    host.sync();
    file
}

/// Compares two files of the same size block by block, as diff compares binary files.
pub fn diff(host: &mut SimulatedHost, files: [FileId; 2], bytes: u64) {
    let mut open = files.map(|file| host.open(file));
    let block = host.block_bytes();
    let compare = Span(host.config.cpu.compare_kb.0 * block / KB);
    for at in (0..bytes).step_by(block as usize) {
        for open in &mut open {
            host.read(open, at..bytes.min(at + block));
        }
        host.spend(compare);
    }
}

/// Copies a file, 64 KB at a time as cp does.
pub fn copy(host: &mut SimulatedHost, from: FileId, directory: FileId, bytes: u64) -> FileId {
    let to = host.create(directory);
    let (mut source, mut target) = (host.open(from), host.open(to));
    for at in (0..bytes).step_by(64 * KB as usize) {
        let part = at..bytes.min(at + 64 * KB);
        host.read(&mut source, part.clone());
        host.write(&mut target, part);
    }
    host.close(target);
    to
}

/// Reads the first byte of each file, in order.
pub fn head(host: &mut SimulatedHost, files: &[FileId]) {
    for file in files {
        let mut open = host.open(*file);
        host.read(&mut open, 0..1);
        host.close(open);
    }
}

/// Reads blocks of 8 KB at random positions in a file of `bytes` bytes.
pub fn random_reads(host: &mut SimulatedHost, file: FileId, bytes: u64, count: u32, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut open = host.open(file);
    for _ in 0..count {
        let at = rng.below(bytes / (8 * KB)) * 8 * KB;
        host.read(&mut open, at..at + 8 * KB);
    }
}
