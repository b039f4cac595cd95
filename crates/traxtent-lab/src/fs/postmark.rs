//! Postmark 1.11 (Katcher, TR3022, Network Appliance, 1997): the small files of a mail server.
//!
//! The benchmark creates a pool of files. Each transaction then reads or appends to one file, and
//! creates or removes one. The parameters are those of paper T: the defaults (500 files, 500
//! transactions, calls of 512 bytes, reads as likely as appends, creations as likely as removals),
//! but files of 5 to 10 KB. As in Postmark's own report, rates count only the transactions.

use traxtent_units::Rng;

use super::file::FileId;
use super::simulated_host::SimulatedHost;

/// The parameters of Postmark.
#[derive(Clone, Copy, Debug)]
pub struct Postmark {
    /// The number of files at the start.
    pub files: usize,
    /// The number of transactions.
    pub transactions: u32,
    /// The smallest and the largest file size, in bytes.
    pub bytes: (u64, u64),
    /// The number of bytes per call.
    pub call: u64,
}

impl Postmark {
    /// The parameters in paper T.
    pub const PAPER: Postmark = Postmark {
        files: 500,
        transactions: 500,
        bytes: (5 * 1024, 10 * 1024),
        call: 512,
    };

    /// Runs the benchmark. Returns transactions per second.
    pub fn run(&self, host: &mut SimulatedHost, seed: u64) -> f64 {
        let mut rng = Rng::new(seed);
        let directory = host.directory(0);
        let mut pool: Vec<Pooled> = (0..self.files)
            .map(|_| self.make(host, directory, &mut rng))
            .collect();
        let start = host.now();
        for _ in 0..self.transactions {
            let at = rng.below(pool.len() as u64) as usize;
            if rng.chance(0.5) {
                self.read(host, pool[at]);
            } else {
                self.append(host, &mut pool[at], &mut rng);
            }
            // A pool of 500 practically never runs empty in 500 transactions, but a smaller one
            // can.
            if rng.chance(0.5) || pool.len() < 2 {
                pool.push(self.make(host, directory, &mut rng));
            } else {
                let at = rng.below(pool.len() as u64) as usize;
                host.remove(pool.swap_remove(at).file);
            }
        }
        let seconds = host.now().since(start).as_ms() / 1000.0;
        f64::from(self.transactions) / seconds
    }

    fn make(&self, host: &mut SimulatedHost, directory: FileId, rng: &mut Rng) -> Pooled {
        let (least, most) = self.bytes;
        let mut made = Pooled {
            file: host.create(directory),
            bytes: 0,
        };
        self.extend(host, &mut made, least + rng.below(most - least + 1));
        made
    }

    fn read(&self, host: &mut SimulatedHost, pooled: Pooled) {
        let mut open = host.open(pooled.file);
        for at in (0..pooled.bytes).step_by(self.call as usize) {
            host.read(&mut open, at..pooled.bytes.min(at + self.call));
        }
        host.close(open);
    }

    /// Appends to a file, up to the size of the largest file.
    fn append(&self, host: &mut SimulatedHost, pooled: &mut Pooled, rng: &mut Rng) {
        let room = self.bytes.1 - pooled.bytes;
        if room > 0 {
            self.extend(host, pooled, 1 + rng.below(room));
        }
    }

    fn extend(&self, host: &mut SimulatedHost, pooled: &mut Pooled, by: u64) {
        let mut open = host.open(pooled.file);
        let end = pooled.bytes + by;
        while pooled.bytes < end {
            let next = end.min(pooled.bytes + self.call);
            host.write(&mut open, pooled.bytes..next);
            pooled.bytes = next;
        }
        host.close(open);
    }
}

/// A file of the pool.
#[derive(Clone, Copy, Debug)]
struct Pooled {
    file: FileId,
    bytes: u64,
}
