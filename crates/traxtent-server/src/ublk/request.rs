//! The requests to a block device, and the calls of the service that carry them out.

use rustix::io::Errno;

use super::abi::{IO_FUA, IoDescriptor, OP_DISCARD, OP_FLUSH, OP_READ, OP_WRITE, OP_WRITE_ZEROES};
use super::parameters::SECTOR;
use crate::service::{BlockService, ServiceError};

/// A request from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    op: Op,
    /// The first byte.
    offset: u64,
    /// The number of bytes; 0 for a flush.
    bytes: u64,
    /// Whether the change must be durable before the request completes.
    fua: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes,
}

impl Request {
    /// Decodes a descriptor.
    ///
    /// # Errors
    /// Returns the error with which to complete the request if disks do not support the operation,
    /// or if its offset is too large.
    pub(super) fn of(descriptor: &IoDescriptor) -> Result<Request, Errno> {
        let op = match descriptor.op_flags & 0xff {
            OP_READ => Op::Read,
            OP_WRITE => Op::Write,
            OP_FLUSH => Op::Flush,
            OP_DISCARD => Op::Discard,
            OP_WRITE_ZEROES => Op::WriteZeroes,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let sector = u64::from(SECTOR);
        let offset = match op {
            // The offset of a flush has no meaning. In Linux 6.12 it is −1.
            Op::Flush => 0,
            _ => descriptor
                .start_sector
                .checked_mul(sector)
                .ok_or(Errno::INVAL)?,
        };
        Ok(Request {
            op,
            offset,
            bytes: u64::from(descriptor.nr_sectors) * sector,
            fua: descriptor.op_flags & IO_FUA != 0,
        })
    }

    /// Carries out the request, and returns its result for the driver: the number of bytes, or the
    /// negative error number. `data` is the memory of the request's tag.
    pub(super) fn carry_out(&self, service: &dyn BlockService, data: &mut [u8]) -> i32 {
        let Request {
            op,
            offset,
            bytes,
            fua,
        } = *self;
        let data = usize::try_from(bytes).ok().and_then(|n| data.get_mut(..n));
        let done = match (op, data) {
            (Op::Read, Some(data)) => service.read(data, offset),
            (Op::Write, Some(data)) => service.write(data.to_vec(), offset, fua),
            (Op::Read | Op::Write, None) => return -Errno::INVAL.raw_os_error(),
            (Op::Flush, _) => service.flush(),
            (Op::Discard, _) => service.trim(offset, bytes, fua),
            (Op::WriteZeroes, _) => service.zero(offset, bytes, fua),
        };
        match (done, op) {
            // The driver ignores the number of bytes of other requests.
            (Ok(()), Op::Read | Op::Write) => i32::try_from(bytes).expect("it fits into memory"),
            (Ok(()), _) => 0,
            (Err(error), _) => failed(self, &error),
        }
    }
}

fn failed(request: &Request, error: &ServiceError) -> i32 {
    tracing::debug!("ublk: {request:?}: {error}");
    -error.errno()
}

#[cfg(test)]
mod tests {
    use traxtent_units::Rng;

    use super::super::recorder::Recorder;
    use super::*;

    fn carried_out(op_flags: u32, start_sector: u64, nr_sectors: u32) -> (i32, Vec<String>) {
        let service = Recorder::default();
        let request = Request::of(&IoDescriptor {
            op_flags,
            nr_sectors,
            start_sector,
            addr: 0,
        });
        let result = request.unwrap().carry_out(&service, &mut [0; 4096]);
        (result, service.requests.into_inner())
    }

    /// Does each operation reach the service with its offset, size and FUA flag, and does the
    /// driver get the number of bytes, or the error?
    #[test]
    fn operations_reach_the_service() {
        let one = |what: &str| vec![what.to_owned()];
        assert_eq!(carried_out(OP_READ, 8, 8), (4096, one("read 4096 at 4096")));
        assert_eq!(
            carried_out(OP_WRITE, 1, 1),
            (512, one("write 512 at 512 false"))
        );
        assert_eq!(
            carried_out(OP_WRITE | IO_FUA, 1, 1),
            (512, one("write 512 at 512 true"))
        );
        assert_eq!(carried_out(OP_FLUSH, u64::MAX, 0), (0, one("flush")));
        assert_eq!(
            carried_out(OP_DISCARD, 0, 1 << 22),
            (0, one("trim 2147483648 at 0 false"))
        );
        assert_eq!(
            carried_out(OP_WRITE_ZEROES | IO_FUA, 16, 8),
            (0, one("zero 4096 at 8192 true"))
        );
        let no_space = -Errno::NOSPC.raw_os_error();
        assert_eq!(
            carried_out(OP_READ, 2048, 1),
            (no_space, one("read 512 at 1048576"))
        );
    }

    /// Does every descriptor, valid or not, lead to a result, and does no transfer exceed the tag's
    /// memory?
    #[test]
    fn every_descriptor_has_a_result() {
        let mut rng = Rng::new(1);
        for _ in 0..100_000 {
            // Small numbers are as frequent as large ones.
            let mut number = || rng.bits() >> rng.below(64);
            let descriptor = IoDescriptor {
                op_flags: number() as u32,
                nr_sectors: number() as u32,
                start_sector: number(),
                addr: number(),
            };
            let Ok(request) = Request::of(&descriptor) else {
                continue;
            };
            let result = request.carry_out(&Recorder::default(), &mut [0; 4096]);
            assert!(result <= 4096, "{descriptor:?}: {result}");
        }
    }

    /// Is a request refused if it is larger than its memory, if no disk supports it, or if its
    /// offset overflows?
    #[test]
    fn impossible_requests_are_refused() {
        let invalid = -Errno::INVAL.raw_os_error();
        assert_eq!(carried_out(OP_READ, 0, 9), (invalid, Vec::new()));
        let of = |op_flags, start_sector| {
            Request::of(&IoDescriptor {
                op_flags,
                start_sector,
                ..IoDescriptor::default()
            })
        };
        assert_eq!(of(4, 0), Err(Errno::OPNOTSUPP));
        assert_eq!(of(OP_READ, 1 << 55), Err(Errno::INVAL));
    }
}
