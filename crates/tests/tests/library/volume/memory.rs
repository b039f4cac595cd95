//! Drives in memory with volatile caches, and their state after a crash.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use traxtent_units::Rng;
use traxtent_volume::{Action, Failed, MemberIo, Op};

/// The size of a sector in bytes.
pub(super) const SECTOR: usize = 512;

/// A drive on which no write is certain to be durable before a flush. In a crash, any of the writes
/// since the last flush may have become durable, the last of those in part, sector by sector.
#[derive(Clone)]
pub(super) struct Drive {
    pub(super) visible: Vec<u8>,
    durable: Vec<u8>,
    /// The byte offset and the data of each pending write, in order.
    pub(super) pending: Vec<(usize, Vec<u8>)>,
    /// True if every operation fails.
    pub(super) gone: bool,
    /// True if writes fail; other operations succeed.
    pub(super) refuses: bool,
    /// Sectors that cannot be read until they are written.
    pub(super) bad: Vec<usize>,
}

impl Drive {
    pub(super) fn new(sectors: u64, rng: &mut Rng) -> Drive {
        let byte = rng.bits() as u8;
        let visible = vec![byte; sectors as usize * SECTOR];
        Drive {
            durable: visible.clone(),
            visible,
            pending: Vec::new(),
            gone: false,
            refuses: false,
            bad: Vec::new(),
        }
    }

    /// Returns the drive after a crash in which the pending writes that `kept` selects became
    /// durable, the last of them except for the sectors that `torn` selects.
    pub(super) fn left(
        &self,
        kept: impl Fn(usize) -> bool,
        mut torn: impl FnMut() -> bool,
    ) -> Drive {
        let mut durable = self.durable.clone();
        let last = (0..self.pending.len()).rev().find(|index| kept(*index));
        for (index, (at, data)) in self
            .pending
            .iter()
            .enumerate()
            .filter(|(index, _)| kept(*index))
        {
            for (sector, bytes) in data.chunks_exact(SECTOR).enumerate() {
                if Some(index) != last || !torn() {
                    durable[at + sector * SECTOR..][..SECTOR].copy_from_slice(bytes);
                }
            }
        }
        Drive {
            visible: durable.clone(),
            durable,
            pending: Vec::new(),
            gone: false,
            refuses: false,
            bad: self.bad.clone(),
        }
    }
}

/// The members of a volume in memory.
pub(super) struct Memory {
    pub(super) drives: RefCell<Vec<Drive>>,
    /// The number of writes and flushes carried out so far.
    pub(super) count: Cell<u64>,
    /// The source of random orders and delays. Without it, operations are carried out in order and
    /// immediately.
    rng: RefCell<Option<Rng>>,
}

impl Memory {
    pub(super) fn new(drives: Vec<Drive>, rng: Option<Rng>) -> Memory {
        Memory {
            drives: RefCell::new(drives),
            count: Cell::new(0),
            rng: RefCell::new(rng),
        }
    }

    fn draw(&self, below: u64) -> u64 {
        self.rng
            .borrow_mut()
            .as_mut()
            .map_or(0, |rng| rng.below(below))
    }

    fn perform(&self, op: &mut Op<'_>) {
        let mut drives = self.drives.borrow_mut();
        let drive = &mut drives[op.member];
        if drive.gone {
            op.outcome = Err(Failed);
            return;
        }
        match &mut op.action {
            Action::Read(at, into) => {
                let from = at.0 as usize;
                let sectors = from..from + into.len() / SECTOR;
                if drive.bad.iter().any(|bad| sectors.contains(bad)) {
                    op.outcome = Err(Failed);
                    return;
                }
                into.copy_from_slice(&drive.visible[from * SECTOR..][..into.len()]);
            }
            Action::Write(..) if drive.refuses => op.outcome = Err(Failed),
            Action::Write(at, data) => {
                let from = at.0 as usize;
                drive
                    .bad
                    .retain(|bad| !(from..from + data.len() / SECTOR).contains(bad));
                drive.visible[from * SECTOR..][..data.len()].copy_from_slice(data);
                drive.pending.push((from * SECTOR, data.to_vec()));
                self.count.set(self.count.get() + 1);
            }
            Action::Flush => {
                for (at, data) in std::mem::take(&mut drive.pending) {
                    drive.durable[at..at + data.len()].copy_from_slice(&data);
                }
                self.count.set(self.count.get() + 1);
            }
        }
    }
}

impl MemberIo for &Memory {
    type Buffer = Vec<u8>;

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        // Not zeros, because callers must not rely on them.
        vec![0xa5; bytes]
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        if self.rng.borrow().is_none() {
            ops.iter_mut().for_each(|op| self.perform(op));
            return;
        }
        let mut order: Vec<usize> = (0..ops.len()).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, self.draw(index as u64 + 1) as usize);
        }
        for index in order {
            self.perform(&mut ops[index]);
            for _ in 0..=self.draw(3) {
                later().await;
            }
        }
    }
}

/// Yields to other tasks.
pub(super) async fn later() {
    let mut waited = false;
    poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Runs a future to completion without other tasks.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Tasks for [`interleave`].
pub(super) type Tasks<'a> = Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>;

/// Polls tasks in random order until all are done, or `stop` returns true after a step.
pub(super) fn interleave(mut tasks: Tasks<'_>, rng: &mut Rng, mut stop: impl FnMut() -> bool) {
    let mut context = Context::from_waker(Waker::noop());
    let mut steps = 0;
    while !tasks.is_empty() {
        let index = rng.below(tasks.len() as u64) as usize;
        if tasks[index].as_mut().poll(&mut context).is_ready() {
            drop(tasks.swap_remove(index));
        }
        steps += 1;
        assert!(steps < 1_000_000, "the tasks do not end");
        if stop() {
            return;
        }
    }
}
