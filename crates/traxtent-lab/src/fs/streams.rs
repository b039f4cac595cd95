//! Media streams. One more stream starts each second, and each reads at a constant rate from a
//! random place.
//!
//! Paper Q, section 2.5: the startup latency is the time from a stream's start until its first data
//! arrives. Streams that fall behind read as fast as they can. Assumed: calls of 64 KB.

use traxtent_units::Rng;
use traxtent_units::{Block, SimTime, Span};

use super::access::{BlockState, OpenFile};
use super::simulated_host::SimulatedHost;

/// The parameters of the streams.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// The rate of a stream in bytes per second.
    pub rate: u64,
    /// The number of bytes per call.
    pub call: u64,
    /// The largest number of streams.
    pub count: usize,
    /// The latency limit: no further streams start once [`GIVE_UP_STREAMS`] have waited longer for
    /// their first data. `None` if there is no limit.
    pub give_up: Option<Span>,
}

/// The number of streams over the limit of [`Streams::give_up`] at which no further ones start.
pub const GIVE_UP_STREAMS: usize = 17;

impl Streams {
    /// The parameters in paper Q, except for the end. The paper stopped at a latency of 3 s. Here,
    /// the number of streams is large enough for the mean of several runs to exceed it.
    pub const PAPER: Streams = Streams {
        rate: 500 * 1024,
        call: 64 * 1024,
        count: 110,
        give_up: None,
    };

    fn is_enough(&self, now: SimTime, streams: &[Stream]) -> bool {
        let waited = |stream: &Stream| {
            let so_far = now.saturating_since(stream.started);
            stream.latency.unwrap_or(so_far)
        };
        let Some(latency_max) = self.give_up else {
            return false;
        };
        streams
            .iter()
            .filter(|stream| waited(stream) > latency_max)
            .count()
            >= GIVE_UP_STREAMS
    }

    /// Starts one stream each second, as many as [`Streams::count`] and [`Streams::give_up`] allow.
    /// Returns their startup latencies in seconds, in order.
    pub fn run(&self, host: &mut SimulatedHost, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let begin = host.now();
        let mut streams: Vec<Stream> = Vec::new();
        let mut next_start = begin;
        let mut count = self.count;
        loop {
            if host.now() >= next_start && streams.len() < count {
                if self.is_enough(host.now(), &streams) {
                    count = streams.len();
                    continue;
                }
                streams.push(self.start(host, &mut rng, next_start));
                next_start += Span(1_000_000_000_000);
            }
            let mut idle = true;
            for stream in &mut streams {
                while stream.is_ready(host) {
                    idle = false;
                    self.step(host, stream);
                }
            }
            let started = streams.iter().all(|stream| stream.latency.is_some());
            if started && streams.len() == count {
                break;
            }
            if idle {
                let due = streams.iter().filter(|stream| stream.waits_for.is_none());
                let due = due.map(|stream| stream.due).min();
                let start = (streams.len() < count).then_some(next_start);
                host.sleep(due.into_iter().chain(start).min());
            }
        }
        let started = streams.iter().filter_map(|stream| stream.latency);
        started.map(|latency| latency.as_ms() / 1000.0).collect()
    }

    /// Starts a stream on a file of 64 MB at the beginning of a random group.
    fn start(&self, host: &mut SimulatedHost, rng: &mut Rng, now: SimTime) -> Stream {
        let group = rng.below(host.space.groups() - 1);
        let directory = host.directory(group);
        let file = host.existing(directory, 64 << 20);
        Stream {
            open: host.reopened(file),
            started: now,
            latency: None,
            due: now,
            at: 0,
            waits_for: None,
        }
    }

    /// Reads one block.
    fn step(&self, host: &mut SimulatedHost, stream: &mut Stream) {
        let size = host.block_bytes();
        let end = (stream.at / self.call + 1) * self.call;
        let block = stream.at / size;
        if block >= host.blocks(stream.open.file).len() as u64 {
            // At the end of the file, start again from its beginning, which was evicted from memory
            // long ago.
            (stream.at, stream.open) = (0, host.reopened(stream.open.file));
            return;
        }
        let state = host.request_block(&mut stream.open, block, (end - stream.at) / size);
        stream.waits_for = state.waits_for();
        if !matches!(state, BlockState::There) {
            return;
        }
        host.copy_from_block(&(stream.at..stream.at + size), block);
        stream.at += size;
        if stream.at == end {
            let now = host.now();
            stream
                .latency
                .get_or_insert(now.saturating_since(stream.started));
            let played = Span(self.call * 1_000_000_000_000 / self.rate);
            stream.due += played;
        }
    }
}

/// A stream.
#[derive(Debug)]
struct Stream {
    open: OpenFile,
    started: SimTime,
    latency: Option<Span>,
    /// The time of its next read.
    due: SimTime,
    /// Its position in the file, in bytes.
    at: u64,
    waits_for: Option<Block>,
}

impl Stream {
    fn is_ready(&self, host: &SimulatedHost) -> bool {
        match self.waits_for {
            Some(block) => host.cache.is_in_memory(block) || !host.cache.is_requested(block),
            None => self.due <= host.now(),
        }
    }
}
