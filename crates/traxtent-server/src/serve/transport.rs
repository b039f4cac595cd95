//! The time that a request and its response spend between a client and this process, measured when
//! a server starts.
//!
//! A host waits for a drive from the moment it sends a request until it has received the response.
//! A client of this server also waits for sockets and for processors to wake up, which are not part
//! of the drive. The server subtracts that time: in the model, a request arrives earlier than in
//! reality, by the duration of the exchange. The client's total wait then equals the model's
//! response time.
//!
//! The measurement exchanges messages of NBD's sizes over a pair of sockets. The client waits as
//! libnbd does. On the server's side, two threads take turns to receive. Each waits on the server's
//! clock and then responds with one write, like the threads of `crate::nbd`.
//!
//! This leaves out the client's computation, networks, and the data of a write. They make responses
//! late, but never early. Other front ends take at least as long as a socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};

use super::clock::Clock;

/// The durations of exchanges by response size.
#[derive(Clone, Debug, Default)]
pub(super) struct Transport {
    /// The sizes in ascending order, with their durations. If there are none, nothing is
    /// subtracted.
    measured: Vec<(u32, Duration)>,
}

/// The response sizes that are measured, in bytes of data.
const SIZES: [u32; 5] = [0, 4 << 10, 64 << 10, 256 << 10, 1 << 20];
/// The number of trials per size.
const TRIALS: usize = 16;
/// The time before each response. It is long enough for processors to enter a sleep state, as they
/// do while a disk rotates.
const RESPONSE_DELAY: Duration = Duration::from_millis(2);
/// The maximum time that is ever subtracted.
const SUBTRACTED_MAX: Duration = Duration::from_millis(1);

/// The size of an NBD request in bytes.
const REQUEST_BYTES: usize = 28;
/// The size of the header of a response in bytes. libnbd reads the first 16 bytes separately.
const HEADER_BYTES: usize = 20;
/// The size in bytes of the offset that follows the header. Here, it holds the server's delay.
const OFFSET_BYTES: usize = 8;
/// The largest amount of data in a response in bytes.
const BYTES_MAX: usize = SIZES[SIZES.len() - 1] as usize;

impl Transport {
    /// Measures the exchanges, which takes about 200 ms. If the system refuses sockets or threads,
    /// nothing will be subtracted.
    pub(super) fn measure(clock: &Clock) -> Transport {
        Transport {
            measured: exchanges(clock).unwrap_or_default(),
        }
    }

    /// Returns the time to subtract for an exchange whose response has `bytes` bytes of data.
    pub(super) fn of(&self, bytes: u32) -> Duration {
        let above = self.measured.partition_point(|&(size, _)| size <= bytes);
        let Some(&(low, low_time)) = above.checked_sub(1).and_then(|at| self.measured.get(at))
        else {
            return Duration::ZERO;
        };
        // Larger responses have not been measured.
        let Some(&(high, high_time)) = self.measured.get(above) else {
            return low_time;
        };
        // A larger response can take less time, so the difference could be negative.
        let share = f64::from(bytes - low) / f64::from(high - low);
        low_time.mul_f64(1.0 - share) + high_time.mul_f64(share)
    }
}

fn exchanges(clock: &Clock) -> io::Result<Vec<(u32, Duration)>> {
    let (mut client, server) = UnixStream::pair()?;
    client.set_nonblocking(true)?;
    // The holder of this lock waits for the next request.
    let turn = Mutex::new(());
    thread::scope(|scope| {
        let servers = (0..2)
            .map(|_| {
                let (socket, turn) = (server.try_clone()?, &turn);
                thread::Builder::new().spawn_scoped(scope, move || respond(socket, turn, clock))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let mut data = vec![0; BYTES_MAX];
        let mut measured = Vec::new();
        for size in SIZES {
            let mut times = (0..TRIALS)
                .map(|_| exchange(&mut client, &mut data[..size as usize]))
                .collect::<io::Result<Vec<Duration>>>()?;
            times.sort_unstable();
            measured.push((size, times[TRIALS / 2].min(SUBTRACTED_MAX)));
        }
        // Closing the client's socket ends the servers.
        drop(client);
        for server in servers {
            server.join().expect("it does not panic")?;
        }
        Ok(measured)
    })
}

/// The client's side. Returns the duration of an exchange after the request was sent, minus the
/// server's delay.
fn exchange(client: &mut UnixStream, data: &mut [u8]) -> io::Result<Duration> {
    let mut request = [0; REQUEST_BYTES];
    request[..8].copy_from_slice(&(data.len() as u64).to_le_bytes());
    client.write_all(&request)?;
    let sent = Instant::now();
    let (mut begin, mut rest, mut offset) = ([0; 16], [0; 4], [0; OFFSET_BYTES]);
    for part in [&mut begin[..], &mut rest, &mut offset, data] {
        receive(client, part)?;
    }
    let taken = sent.elapsed();
    let held = u64::from_le_bytes(offset);
    Ok(taken.saturating_sub(Duration::from_nanos(held)))
}

/// Reads until the part is full, and sleeps while no data is available.
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

/// The server's side. Delays each response, and reports the delay in it.
fn respond(mut socket: UnixStream, turn: &Mutex<()>, clock: &Clock) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES];
    // The memory is filled in advance, because its first access is slow.
    let mut response = vec![1; HEADER_BYTES + OFFSET_BYTES + BYTES_MAX];
    loop {
        {
            let _turn = turn.lock();
            match socket.read_exact(&mut request) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
        }
        let arrived = Instant::now();
        clock.wait_for(RESPONSE_DELAY);
        let held = arrived.elapsed().as_nanos() as u64;
        let size = u64::from_le_bytes(request[..8].try_into().expect("they are 8 bytes"));
        response[HEADER_BYTES..HEADER_BYTES + OFFSET_BYTES].copy_from_slice(&held.to_le_bytes());
        socket.write_all(&response[..HEADER_BYTES + OFFSET_BYTES + size as usize])?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Speed;
    use super::*;

    /// Is a time measured for every size? Are times between two sizes interpolated, is the largest
    /// size's time used beyond it, and is nothing subtracted if nothing is measured?
    #[test]
    fn times_are_measured_and_interpolated() {
        let measured = Transport::measure(&Clock::start(Speed::REAL));
        assert_eq!(measured.measured.len(), SIZES.len());
        for (size, time) in &measured.measured {
            assert!(
                *time > Duration::ZERO && *time <= SUBTRACTED_MAX,
                "{size}: {time:?}"
            );
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
