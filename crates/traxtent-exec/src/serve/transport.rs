//! What a request and its answer spend between a client and this process, as measured when a server starts.
//!
//! A drive's host waits from sending a request to having its answer. A client of ours waits for sockets and for
//! processors that wake up on top, which is no drive's doing. So a server takes that time off: it lets the model see a
//! request as early as it was sent, and earlier still by what its answer will need. What the client then waits is the
//! model's time. Measured is an exchange as NBD's over a pair of sockets, between a client that waits as libnbd does
//! and threads that receive and answer as nbdkit's do, when a wait of the server's clock ends.
//!
//! Left out: what nbdkit and the client compute beside, networks, and the bytes that a write brings. All that
//! makes answers late; nothing makes them early.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::clock::Clock;

/// How long exchanges take, by the bytes of the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Transport {
    /// In ascending order; none: nothing is taken off.
    measured: Vec<(u32, Duration)>,
}

/// Answers that are measured, in bytes of data.
const SIZES: [u32; 5] = [0, 4 << 10, 64 << 10, 256 << 10, 1 << 20];
/// How often each is.
const TRIALS: usize = 16;
/// How long each answer is waited for: long enough that processors fall asleep, as they do while a disk turns.
const HOLD: Duration = Duration::from_millis(2);
/// No more is ever taken off.
const MOST: Duration = Duration::from_millis(1);

/// Bytes of NBD's messages: a request; an answer's head and the offset behind it, which nbdkit sends apart, as
/// it does the data. libnbd reads 16 bytes of the head first.
const REQUEST: usize = 28;
const HEAD: usize = 20;
const OFFSET: usize = 8;
const BYTES_MAX: usize = SIZES[SIZES.len() - 1] as usize;

impl Transport {
    /// Measures; takes some 200 ms. Nothing is taken off where sockets or threads are refused.
    pub(super) fn measure(clock: &Clock) -> Transport {
        Transport {
            measured: exchanges(clock).unwrap_or_default(),
        }
    }

    /// What to take off an exchange whose answer has so many bytes of data.
    pub(super) fn of(&self, bytes: u32) -> Duration {
        let above = self.measured.partition_point(|&(size, _)| size <= bytes);
        let Some(&(low, least)) = above.checked_sub(1).and_then(|at| self.measured.get(at)) else {
            return Duration::ZERO;
        };
        // Nothing is known of larger answers than the largest.
        let Some(&(high, most)) = self.measured.get(above) else {
            return least;
        };
        // A larger answer may have been measured as the quicker one.
        let share = f64::from(bytes - low) / f64::from(high - low);
        least.mul_f64(1.0 - share) + most.mul_f64(share)
    }
}

fn exchanges(clock: &Clock) -> io::Result<Vec<(u32, Duration)>> {
    let (mut client, server) = UnixStream::pair()?;
    client.set_nonblocking(true)?;
    // Whoever has it waits for the next request, as nbdkit's threads do in turn.
    let turn = Mutex::new(());
    thread::scope(|scope| {
        let servers = (0..2)
            .map(|_| {
                let (socket, turn) = (server.try_clone()?, &turn);
                thread::Builder::new().spawn_scoped(scope, move || answer(socket, turn, clock))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let mut data = vec![0; BYTES_MAX];
        let mut measured = Vec::new();
        for size in SIZES {
            let mut times = (0..TRIALS)
                .map(|_| exchange(&mut client, &mut data[..size as usize]))
                .collect::<io::Result<Vec<Duration>>>()?;
            times.sort_unstable();
            measured.push((size, times[TRIALS / 2].min(MOST)));
        }
        // Which ends them.
        drop(client);
        for server in servers {
            server.join().expect("it does not panic")?;
        }
        Ok(measured)
    })
}

/// The client's side: how long an exchange takes once the request is sent, less what the server holds it.
fn exchange(client: &mut UnixStream, data: &mut [u8]) -> io::Result<Duration> {
    let mut request = [0; REQUEST];
    request[..8].copy_from_slice(&(data.len() as u64).to_le_bytes());
    client.write_all(&request)?;
    let sent = Instant::now();
    let (mut begin, mut rest, mut offset) = ([0; 16], [0; 4], [0; OFFSET]);
    for part in [&mut begin[..], &mut rest, &mut offset, data] {
        receive(client, part)?;
    }
    let taken = sent.elapsed();
    let held = u64::from_le_bytes(offset);
    Ok(taken.saturating_sub(Duration::from_nanos(held)))
}

/// Reads what is there, and sleeps while there is nothing, until the part is full.
fn receive(client: &mut UnixStream, mut part: &mut [u8]) -> io::Result<()> {
    while !part.is_empty() {
        match client.read(part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => part = &mut part[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(client, PollFlags::IN)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The server's side: holds each answer, and says for how long it has.
fn answer(mut socket: UnixStream, turn: &Mutex<()>, clock: &Clock) -> io::Result<()> {
    let mut request = [0; REQUEST];
    // Memory that nobody has touched is slow the first time.
    let data = vec![1; BYTES_MAX];
    loop {
        {
            let _turn = turn.lock().expect("nobody panics with it");
            match socket.read_exact(&mut request) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
        }
        let came = Instant::now();
        clock.hold(HOLD);
        let held = came.elapsed().as_nanos() as u64;
        let size = u64::from_le_bytes(request[..8].try_into().expect("they are 8 bytes"));
        socket.write_all(&[0; HEAD])?;
        socket.write_all(&held.to_le_bytes())?;
        socket.write_all(&data[..size as usize])?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Speed;
    use super::*;

    /// Is something measured for every size, and is what is taken off between sizes between theirs, the largest's
    /// beyond, and nothing where nothing is measured?
    #[test]
    fn times_are_measured_and_interpolated() {
        let measured = Transport::measure(&Clock::start(Speed::REAL));
        assert_eq!(measured.measured.len(), SIZES.len());
        for (size, time) in &measured.measured {
            assert!(*time > Duration::ZERO && *time <= MOST, "{size}: {time:?}");
            assert_eq!(measured.of(*size), *time);
        }
        let us = Duration::from_micros;
        let transport = Transport {
            measured: vec![(0, us(10)), (1000, us(30)), (2000, us(20))],
        };
        assert_eq!(transport.of(500), us(20));
        assert_eq!(transport.of(1500), us(25));
        assert_eq!(transport.of(u32::MAX), us(20));
        assert_eq!(Transport::default().of(4096), Duration::ZERO);
    }
}
