//! Requests simulated sector by sector in small steps of time: slow, but simple enough to check by
//! reading the code. The model, which computes whole tracks at once, must agree exactly.
//!
//! The drive is the tiny one with fewer sectors per track. All its times are whole ticks. A request
//! may be larger than its segment, and the bus slower than the media. A sector then waits for room
//! in the segment, or for its data, and loses a revolution.

use std::sync::Arc;

use traxtent_model::drive::{Completion, Drive, ServedBy, SharedBus};
use traxtent_model::geometry::{Geometry, PerSurface, Skew};
use traxtent_model::profile::{
    BusHold, Delivery, ExtraDisconnect, Profile, ReadAheadUntil, WriteBack,
};
use traxtent_units::request::Request;
use traxtent_units::{Rng, SimTime};

use super::tiny::{read, tiny_with, write};

/// A tick, a hundredth of a millisecond, in picoseconds.
const TICK_PS: u64 = 10_000_000;

/// The duration of a revolution, in ticks.
const REVOLUTION: u64 = 1000;

fn ms(ticks: u64) -> f64 {
    ticks as f64 / 100.0
}

fn at(ticks: u64) -> SimTime {
    SimTime(ticks * TICK_PS)
}

fn ticks(time: SimTime) -> u64 {
    assert_eq!(time.0 % TICK_PS, 0, "{time} is not a whole tick");
    time.0 / TICK_PS
}

/// A drive, and where its sectors are.
struct Case {
    profile: Arc<Profile>,
    geometry: Arc<Geometry>,
    /// The number of slots of a track.
    slots: u64,
    /// The times of the bus and the overheads, in ticks.
    bus: u64,
    command: u64,
    preparation: u64,
    connect: u64,
    reconnect: u64,
    disconnect: u64,
    completion: u64,
    minimum_seek: u64,
    /// Whether the drive keeps the bus from the first to the last transfer of a request.
    hold: bool,
    /// Whether the drive never disconnects from the bus. Implies `hold`.
    always: bool,
    zero_latency: bool,
    /// The sizes of a segment and of the watermark, in sectors.
    segment: u64,
    watermark: u64,
}

impl Case {
    fn new(rng: &mut Rng) -> Case {
        let slots = [10, 20, 25, 40][rng.below(4) as usize];
        let pass = REVOLUTION / slots;
        let bus = match rng.below(4) {
            0 => 1 + rng.below(pass),
            1 => pass,
            2 => pass + 1 + rng.below(pass),
            _ => 1 + rng.below(3 * pass),
        };
        let mut zero_or_below = |end| if rng.chance(0.5) { 0 } else { rng.below(end) };
        let mut case = Case {
            slots,
            bus,
            command: zero_or_below(300),
            preparation: zero_or_below(20),
            connect: zero_or_below(60),
            reconnect: zero_or_below(60),
            disconnect: zero_or_below(60),
            completion: zero_or_below(40),
            minimum_seek: zero_or_below(100),
            hold: false,
            always: false,
            zero_latency: false,
            segment: 0,
            watermark: 0,
            ..Case::base()
        };
        case.always = rng.chance(0.1);
        case.hold = case.always || rng.chance(0.4);
        case.zero_latency = rng.chance(0.3);
        case.segment = [1, 2, 5, 9, slots / 2, slots, 2 * slots][rng.below(7) as usize];
        case.watermark = rng.below(case.segment + 1);
        case
    }

    fn base() -> Case {
        let profile = tiny_with(|_| ());
        Case {
            geometry: Arc::new(Geometry::build(&profile.geometry).unwrap()),
            profile: Arc::new(profile),
            slots: 100,
            bus: 1,
            command: 0,
            preparation: 0,
            connect: 0,
            reconnect: 0,
            disconnect: 0,
            completion: 0,
            minimum_seek: 0,
            hold: false,
            always: false,
            zero_latency: false,
            segment: 64,
            watermark: 1,
        }
    }

    /// Builds the profile and the geometry from the fields, with further changes.
    fn build(mut self, change: impl FnOnce(&mut Profile)) -> Case {
        let mut profile = tiny_with(|p| {
            let zone = &mut p.geometry.zones[0];
            zone.sectors_per_track = PerSurface::Same(self.slots as u32);
            zone.track_skew = Skew::Revolutions(0.1);
            zone.cylinder_skew = Skew::Revolutions(0.2);
            p.bus.read_sector_ms = ms(self.bus);
            p.bus.write_sector_ms = ms(self.bus);
            p.bus.hold = BusHold {
                during_read: self.hold,
                during_write: self.hold,
                always: self.always,
            };
            let o = &mut p.overheads;
            o.read_miss_after_read_ms = ms(self.command);
            o.read_hit_after_read_ms = ms(self.command);
            o.write_miss_after_read_ms = ms(self.command);
            o.write_hit_after_read_ms = ms(self.command);
            o.write_hit_after_write_ms = ms(self.command);
            o.data_preparation_ms = ms(self.preparation);
            o.first_reselect_ms = ms(self.connect);
            o.other_reselect_ms = ms(self.reconnect);
            o.read_disconnect_after_read_ms = ms(self.disconnect);
            o.write_disconnect_ms = ms(self.disconnect);
            o.read_completion_ms = ms(self.completion);
            o.write_completion_ms = ms(self.completion);
            o.minimum_write_seek_ms = ms(self.minimum_seek);
            p.access.zero_latency_read = self.zero_latency;
            p.access.zero_latency_write = self.zero_latency;
            p.cache.segment_sectors = self.segment as u32;
            // Half a sector less than the watermark, because the drive rounds up.
            let share = (self.watermark as f64 - 0.5).max(0.0) / self.segment as f64;
            p.cache.watermark_of_request = false;
            (p.cache.read_watermark, p.cache.write_watermark) = (share, share);
        });
        change(&mut profile);
        profile.check().unwrap();
        self.geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        self.profile = Arc::new(profile);
        self
    }

    fn drive(&self) -> Drive {
        Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// The ticks in which a sector passes.
    fn pass(&self) -> u64 {
        REVOLUTION / self.slots
    }

    /// Cylinder and surface of an LBN, and the tick of each revolution at which it begins to pass.
    fn place(&self, lbn: u64) -> (u64, u64, u64) {
        let (track, slot) = (lbn / self.slots, lbn % self.slots);
        let (cylinder, surface) = (track / 2, track % 2);
        let origin = 300 * cylinder + 100 * surface;
        (
            cylinder,
            surface,
            (origin + slot * self.pass()) % REVOLUTION,
        )
    }

    /// The ticks of a seek or head switch from the track of one LBN to that of another.
    fn moving(&self, from: u64, to: u64) -> u64 {
        let (from, to) = (self.place(from), self.place(to));
        match from.0.abs_diff(to.0) {
            0 if from.1 == to.1 => 0,
            0 => 50,
            cylinders => 50 + 50 * cylinders,
        }
    }

    fn is_slow(&self) -> bool {
        self.bus > self.pass()
    }

    /// The ticks from the time `since` until an LBN begins to pass.
    fn wait(&self, since: u64, lbn: u64) -> u64 {
        let phase = since % REVOLUTION;
        (self.place(lbn).2 + REVOLUTION - phase) % REVOLUTION
    }
}

/// The head, which passes over the sectors of a request in LBN order. A zero-latency access may
/// begin with any of a track's sectors.
struct Head<'a> {
    case: &'a Case,
    lbn: u64,
    /// The index of the next sector to pass.
    next: u64,
    sectors: u64,
    /// The tick at which the head is on the track of the next sector and has passed the previous
    /// one.
    ready: u64,
    /// Whether the head has just arrived on its track, where a zero-latency access may begin with
    /// any sector.
    landing: bool,
    zero_latency: bool,
    /// The tick at which each sector began to pass.
    begun: Vec<u64>,
    /// The tick from which each sector counts as passed.
    passed: Vec<u64>,
    /// The number of sectors before the first one that has not passed.
    count: u64,
    when_complete: bool,
}

impl<'a> Head<'a> {
    fn new(case: &'a Case, lbn: u64, sectors: u64, first: u64, ready: u64) -> Head<'a> {
        Head {
            case,
            lbn,
            next: first,
            sectors,
            ready,
            landing: case.zero_latency,
            zero_latency: case.zero_latency,
            begun: vec![0; first as usize],
            passed: vec![0; first as usize],
            count: 0,
            when_complete: case.profile.bus.delivery == Delivery::InOrderWhenComplete,
        }
    }

    /// Updates the count, and returns it.
    fn count(&mut self, now: u64) -> u64 {
        while self
            .passed
            .get(self.count as usize)
            .is_some_and(|&at| at <= now)
        {
            self.count += 1;
        }
        self.count
    }

    /// The number of sectors from the next one to the end of its track or of the request.
    fn on_track(&self) -> u64 {
        let rest = self.case.slots - (self.lbn + self.next) % self.case.slots;
        rest.min(self.sectors - self.next)
    }

    /// Passes over the next sector if it begins now and `may_pass` is true. When the head has
    /// landed on a track, a zero-latency access may begin with a later sector. `may_begin` states
    /// whether it may, given the index of the sector and the tick at which it begins to pass.
    fn advance(&mut self, now: u64, may_pass: bool, may_begin: impl Fn(u64, u64) -> bool) {
        if self.next == self.sectors || now < self.ready {
            return;
        }
        let (case, lbn, count) = (self.case, self.lbn + self.next, self.on_track());
        if std::mem::take(&mut self.landing) {
            let first = (1..count).find(|&i| case.wait(now, lbn + i) < case.pass());
            let mut later = first.into_iter().flat_map(|first| first..count);
            let start = |i| now + case.wait(now, lbn + i);
            if let Some(first) = later.find(|&i| may_begin(self.next + i, start(i))) {
                let start = start(first);
                for i in 0..count {
                    let begun = start + case.wait(start, lbn + i);
                    self.begun.push(begun);
                    self.passed.push(if self.when_complete {
                        start + REVOLUTION
                    } else {
                        begun + case.pass()
                    });
                }
                return self.leave(start + REVOLUTION, count);
            }
        }
        if may_pass && case.wait(now, lbn) == 0 {
            self.begun.push(now);
            self.passed.push(now + case.pass());
            self.leave(now + case.pass(), 1);
        }
    }

    fn leave(&mut self, end: u64, count: u64) {
        let last = self.lbn + self.next + count - 1;
        let moving = self.case.moving(last, last + 1);
        self.next += count;
        self.ready = end + moving;
        self.landing = self.zero_latency && moving > 0;
    }
}

/// The state of the bus.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bus {
    Off,
    /// The drive connects until this tick.
    Connecting(u64),
    /// The drive is connected and transfers nothing.
    Connected,
    /// A sector is transferred until the tick in the second field. The first field is the number of
    /// sectors that follow it immediately.
    Sending(u64, u64),
    /// The drive disconnects until this tick.
    Leaving(u64),
}

/// A read of `sectors` sectors of which the first `buffered` are in the buffer.
struct NaiveRead {
    lbn: u64,
    sectors: u64,
    buffered: u64,
    /// The tick from which the arm may move.
    ready: u64,
    /// An LBN on the track from which the arm moves.
    home: u64,
    /// The tick from which the drive may use the bus.
    from: u64,
    /// Whether the drive is connected to the bus at the beginning.
    connected: bool,
    zero_latency: bool,
}

/// The course of a simulated read, in ticks.
struct Sent {
    /// The tick at which the first transfer to the host began.
    first: u64,
    /// The tick at which the last transfer to the host ended.
    end: u64,
    /// The ticks at which the sectors began to pass.
    begun: Vec<u64>,
}

impl NaiveRead {
    fn run(&self, case: &Case) -> Sent {
        let landed = self.ready + case.moving(self.home, self.lbn + self.buffered);
        let mut head = Head::new(case, self.lbn, self.sectors, self.buffered, landed);
        (head.landing, head.zero_latency) = (self.zero_latency, self.zero_latency);
        let mut bus = if self.connected {
            Bus::Connected
        } else {
            Bus::Off
        };
        let connect = case.connect + case.preparation;
        let (mut sent, mut first) = (0, None);
        for now in self.ready.min(self.from)..1_000_000 {
            loop {
                let waiting = head.count(now).saturating_sub(sent);
                bus = match bus {
                    Bus::Sending(others, end) if end == now => {
                        sent += 1;
                        match others {
                            0 => Bus::Connected,
                            _ => Bus::Sending(others - 1, now + case.bus),
                        }
                    }
                    Bus::Connected if sent == self.sectors => {
                        return Sent {
                            first: first.unwrap_or(now),
                            end: now,
                            begun: head.begun,
                        };
                    }
                    Bus::Connected if now < self.from => break,
                    Bus::Connected if waiting > 0 => {
                        first.get_or_insert(now);
                        Bus::Sending(waiting - 1, now + case.bus)
                    }
                    Bus::Connected if case.hold => break,
                    Bus::Connected => Bus::Leaving(now + case.disconnect),
                    Bus::Leaving(end) if end == now => Bus::Off,
                    Bus::Off
                        if now >= self.from
                            && waiting >= case.watermark.max(1).min(self.sectors - sent) =>
                    {
                        Bus::Connecting(now + connect)
                    }
                    Bus::Connecting(end) if end == now => Bus::Connected,
                    _ => break,
                };
            }
            let (room, next) = (case.segment + sent, head.next);
            let fits = next + head.on_track() <= room;
            head.advance(now, next < room, |_, _| fits);
        }
        panic!("the simulated read does not end");
    }
}

/// A write, whose data passes through a segment.
struct NaiveWrite {
    lbn: u64,
    sectors: u64,
    /// The numbers of sectors before and after the write that are written too, because they share
    /// its physical sectors. Their data is in another segment.
    around: (u64, u64),
    /// The tick from which the arm may move.
    ready: u64,
    /// An LBN on the track from which the arm moves.
    home: u64,
    /// The number of sectors that must be in the buffer before the first goes to the media.
    threshold: u64,
    /// The tick at which the first transfer begins.
    from: u64,
}

/// The course of a simulated write, in ticks.
struct Written {
    /// The tick at which the last sector is in the buffer.
    full: u64,
    /// The ticks at which the sectors began to pass.
    begun: Vec<u64>,
    /// The ticks at which the transfer of a sector began.
    sending: Vec<u64>,
}

impl NaiveWrite {
    fn run(&self, case: &Case) -> Written {
        let (first, all) = (
            self.lbn - self.around.0,
            self.around.0 + self.sectors + self.around.1,
        );
        let move_end = self.ready + case.moving(self.home, first);
        let landed = move_end.max(self.ready + case.minimum_seek);
        let mut head = Head::new(case, first, all, 0, landed);
        // The number of the write's sectors before a sector of the access.
        let own = |index: u64| index.saturating_sub(self.around.0).min(self.sectors);
        let watermark = case.watermark.max(1).min(case.segment - 1);
        // Whether a zero-latency access begins only once all data for the track is in the buffer.
        // Otherwise, it begins with a sector whose data arrives in time.
        let needs_all = self.sectors > case.segment || case.is_slow();
        let mut bus = Bus::Connecting(self.from);
        let (mut full, mut came, mut again) = (None, 0, false);
        let mut sending = Vec::new();
        for now in self.ready.min(self.from)..1_000_000 {
            loop {
                let held = came - own(head.count(now));
                let room = (case.segment - held).min(self.sectors - came);
                bus = match bus {
                    Bus::Sending(others, end) if end == now => {
                        came += 1;
                        match others {
                            0 => Bus::Connected,
                            _ => Bus::Sending(others - 1, now + case.bus),
                        }
                    }
                    Bus::Connected if came == self.sectors => {
                        full = Some(now);
                        Bus::Leaving(0)
                    }
                    Bus::Connected if room > 0 => Bus::Sending(room - 1, now + case.bus),
                    Bus::Connected if case.hold => break,
                    Bus::Connected => Bus::Off,
                    Bus::Off if held <= watermark => {
                        let take = if again { case.reconnect } else { case.connect };
                        again = true;
                        Bus::Connecting(now + take + case.preparation)
                    }
                    Bus::Connecting(end) if end == now => Bus::Connected,
                    _ => break,
                };
                if let Bus::Sending(_, end) = bus {
                    sending.push(end - case.bus);
                }
            }
            if let Some(full) = full
                && head.next == all
            {
                let begun = head.begun;
                return Written {
                    full,
                    begun,
                    sending,
                };
            }
            let needed = if head.next == 0 { self.threshold } else { 1 };
            // A sector before the write needs the write's first sector, and one after it the last.
            let is_there = |count: u64| came >= own(head.next + count).max(needed);
            let (next, all) = (is_there(1), is_there(head.on_track()));
            head.advance(now, next, |sector, start| {
                all || (!needs_all && self.from + own(sector + 1).max(needed) * case.bus <= start)
            });
        }
        panic!("the simulated write does not end");
    }
}

/// Returns the LBNs of the drive's latest access, each with the tick at which it began to pass.
fn begun(case: &Case, drive: &Drive) -> Vec<(u64, u64)> {
    let mut begun = Vec::new();
    for pass in drive.passes() {
        let mut last = 0;
        for lbn in pass.lbn.0..pass.lbn.0 + u64::from(pass.sectors) {
            let (start, first) = if lbn >= pass.first_passed.0 {
                (pass.begun, pass.first_passed.0)
            } else {
                (pass.lbn_begun, pass.lbn.0)
            };
            begun.push((lbn, ticks(start) + (lbn - first) * case.pass()));
            last = last.max(ticks(start) + (lbn - first + 1) * case.pass());
        }
        assert_eq!(last, ticks(pass.end), "{pass:?}");
    }
    begun
}

/// Pairs each time with an LBN; the first LBN is `lbn`.
fn with_lbns(lbn: u64, begun: &[u64]) -> Vec<(u64, u64)> {
    (lbn..).zip(begun.iter().copied()).collect()
}

fn describe(case: &Case, seed: u64) -> String {
    format!(
        "seed {seed}: {} slots, bus {}, command {}, preparation {}, connect {}, reconnect {}, \
         disconnect {}, hold {}, always {}, zero-latency {}, segment {}, watermark {}",
        case.slots,
        case.bus,
        case.command,
        case.preparation,
        case.connect,
        case.reconnect,
        case.disconnect,
        case.hold,
        case.always,
        case.zero_latency,
        case.segment,
        case.watermark
    )
}

/// Returns the size of a request: within a segment, up to three sectors larger, or any size up to
/// three tracks.
fn size(rng: &mut Rng, case: &Case) -> u64 {
    match rng.below(4) {
        0 => 1 + rng.below(case.segment),
        1 => case.segment + 1 + rng.below(3),
        _ => 1 + rng.below(3 * case.slots),
    }
}

/// Do reads of every size agree with the simulation: when each sector passes, and when the host has
/// the last one? The first sectors may be in the buffer.
#[test]
fn reads_equal_a_simulation() {
    for seed in 0..testkit::repeats(3000) {
        let rng = &mut Rng::new(seed);
        let mut case = Case::new(rng);
        let sectors = size(rng, &case);
        let keeps_up = sectors > case.segment && !case.is_slow() && case.watermark <= 1;
        if keeps_up {
            // The model assumes that the bus then keeps up with the media.
            case.segment = case.segment.max(2);
            (case.connect, case.preparation, case.disconnect) = (0, 0, 0);
            case.zero_latency = false;
        }
        let when_complete = case.zero_latency && rng.chance(0.3);
        let case = case.build(|p| {
            if when_complete {
                p.bus.delivery = Delivery::InOrderWhenComplete;
            }
        });
        let text = describe(&case, seed);
        let mut drive = case.drive();
        let (lbn, now) = (rng.below(10 * case.slots), rng.below(2 * REVOLUTION));
        let mut naive = NaiveRead {
            lbn,
            sectors,
            buffered: 0,
            ready: now + case.command,
            home: 0,
            from: now + case.command + case.disconnect,
            connected: false,
            zero_latency: case.zero_latency,
        };
        if case.always {
            naive.from = now + case.command + case.preparation;
            naive.connected = true;
        }
        if sectors > 1 && !keeps_up && rng.chance(0.4) {
            let buffered = 1 + rng.below(case.segment.min(sectors - 1));
            let before = rng.below(case.segment - buffered + 1).min(lbn);
            let first = read(lbn - before, (before + buffered) as u32);
            let done = serve_at(&mut drive, now, first);
            let now = ticks(done.completed) + rng.below(2 * REVOLUTION);
            naive = NaiveRead {
                buffered,
                ready: now + case.command,
                home: lbn + buffered - 1,
                from: now + case.command + case.preparation,
                connected: true,
                ..naive
            };
        }
        let now = naive.ready - case.command;
        let sent = naive.run(&case);
        let done = serve_at(&mut drive, now, read(lbn, sectors as u32));
        let passed = with_lbns(lbn, &sent.begun).split_off(naive.buffered as usize);
        assert_eq!(begun(&case, &drive), passed, "{text}");
        assert_eq!(ticks(done.completed), sent.end + case.completion, "{text}");
        let media_end = drive.passes().last().unwrap().end;
        assert_eq!(done.breakdown.bus, at(sent.end).since(media_end), "{text}");
    }
}

/// Do reads that continue a read-ahead in progress agree with the simulation, within a sector and
/// on the way to the next track?
#[test]
fn reads_that_join_read_ahead_equal_a_simulation() {
    let mut joined = 0;
    for seed in 0..testkit::repeats(2000) {
        let rng = &mut Rng::new(seed);
        let mut case = Case::new(rng);
        let sectors = size(rng, &case);
        if !case.is_slow() && case.watermark <= 1 {
            // The model assumes that the bus then keeps up with the media.
            case.segment = case.segment.max(sectors);
        }
        case.zero_latency = false;
        case.completion = 0;
        let case = case.build(|p| p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd);
        let text = describe(&case, seed);
        let mut drive = case.drive();
        let lbn = 1 + rng.below(10 * case.slots);
        let first = serve_at(&mut drive, rng.below(REVOLUTION), read(lbn - 1, 1));
        let ready = ticks(drive.passes().last().unwrap().end);
        let now = ticks(first.completed) + rng.below(REVOLUTION / 2);
        let naive = NaiveRead {
            lbn,
            sectors,
            buffered: 0,
            ready,
            home: lbn - 1,
            from: now + case.command + case.preparation,
            connected: true,
            zero_latency: false,
        };
        let sent = naive.run(&case);
        let ahead = sent
            .begun
            .iter()
            .filter(|&&t| t + case.pass() <= now)
            .count() as u64;
        if ahead >= sectors.min(case.segment) {
            continue;
        }
        joined += 1;
        let done = serve_at(&mut drive, now, read(lbn, sectors as u32));
        assert_eq!(done.served, ServedBy::Both, "{text}");
        let model = begun(&case, &drive);
        let from = (model[0].0 - lbn) as usize;
        assert!(from as u64 <= ahead, "{text}");
        assert_eq!(model, with_lbns(lbn, &sent.begun).split_off(from), "{text}");
        assert_eq!(ticks(done.completed), sent.end, "{text}");
    }
    assert!(joined > 100, "only {joined} reads joined read-ahead");
}

/// Do writes of every size agree with the simulation: when each sector passes, when the last one is
/// in the buffer, and when the drive reports the completion? Physical sectors may be larger than
/// logical ones; the buffer then holds the rest of those that the write covers in part.
#[test]
fn writes_equal_a_simulation() {
    for seed in 0..testkit::repeats(3000) {
        let rng = &mut Rng::new(seed);
        let mut case = Case::new(rng);
        let sectors = size(rng, &case);
        let write_back = rng.chance(0.5);
        let threshold = if rng.chance(0.5) {
            1
        } else {
            1 + rng.below(case.segment.min(sectors))
        };
        let (lbn, mut now) = (rng.below(10 * case.slots), rng.below(2 * REVOLUTION));
        let mut around = (0, 0);
        let aligned = rng.chance(0.3).then(|| rng.below(8));
        if let Some(aligned) = aligned {
            while lbn > around.0 && (lbn - around.0) % 8 != aligned {
                around.0 += 1;
            }
            while (lbn + sectors + around.1) % 8 != aligned {
                around.1 += 1;
            }
            case.segment = case.segment.max(8);
        }
        let case = case.build(|p| {
            if write_back {
                p.cache.write_back = WriteBack::Full;
            }
            if let Some(aligned) = aligned {
                p.sector.physical_bytes = 4096;
                p.sector.lowest_aligned_lbn = aligned as u32;
            }
            if threshold > 1 {
                p.overheads.extra_write_disconnect = Some(ExtraDisconnect {
                    start_after_sectors: threshold as u32,
                    large_start_after_sectors: 1,
                    large_sectors: 1000,
                    ..ExtraDisconnect::default()
                });
            }
        });
        let text = describe(&case, seed);
        let mut drive = case.drive();
        let (before, after) = (lbn - around.0, lbn + sectors);
        let mut home = 0;
        for (lbn, sectors) in [(before, around.0), (after, around.1)] {
            if sectors > 0 {
                let done = serve_at(&mut drive, now, read(lbn, sectors as u32));
                now = ticks(done.completed) + rng.below(2 * REVOLUTION);
                home = lbn + sectors - 1;
            }
        }
        let naive = NaiveWrite {
            lbn,
            sectors,
            around,
            ready: now + case.command,
            home,
            threshold,
            from: now + case.command + case.preparation,
        };
        let written = naive.run(&case);
        let done = serve_at(&mut drive, now, write(lbn, sectors as u32));
        assert_eq!(
            begun(&case, &drive),
            with_lbns(before, &written.begun),
            "{text}"
        );
        let media_end = ticks(drive.passes().last().unwrap().end);
        let end = match (write_back, case.always) {
            (true, _) => written.full,
            (false, true) => written.full.max(media_end),
            (false, false) => (written.full + case.disconnect).max(media_end) + case.connect,
        };
        assert_eq!(ticks(done.completed), end + case.completion, "{text}");
    }
}

/// Do two cached writes in sequence agree with the simulation? The second is transferred as sectors
/// of the first leave the segment that both share.
#[test]
fn appended_writes_equal_a_simulation() {
    for seed in 0..testkit::repeats(2000) {
        let rng = &mut Rng::new(seed);
        let mut case = Case::new(rng);
        case.bus = case.bus.min(case.pass());
        case.segment = case.segment.max(2);
        (case.zero_latency, case.minimum_seek, case.always) = (false, 0, false);
        let case = case.build(|p| {
            p.cache.write_back = WriteBack::Full;
            p.cache.write_segments = 1;
        });
        let text = describe(&case, seed);
        let lbn = rng.below(10 * case.slots);
        let sectors = [0, 1].map(|_| 1 + rng.below(case.segment));
        let all = sectors[0] + sectors[1];
        let mut drive = case.drive();
        let first = serve_at(&mut drive, 0, write(lbn, sectors[0] as u32));
        let pause = if rng.chance(0.7) { 100 } else { 2500 };
        let now = ticks(first.completed) + rng.below(pause);
        let second = serve_at(&mut drive, now, write(lbn + sectors[0], sectors[1] as u32));
        drive.poll(at(1_000_000));

        // Each write's data arrives as soon as there is room, but not before its own time.
        let ready = [case.command, now + case.command];
        let landed = ready[0] + case.moving(0, lbn);
        let mut head = Head::new(&case, lbn, all, 0, landed);
        let (mut came, mut next_end, mut full) = (0, None, [0, 0]);
        for now in 0..1_000_000 {
            if next_end == Some(now) {
                came += 1;
                next_end = None;
                full[usize::from(came > sectors[0])] = now;
            }
            let has_room = came - head.count(now) < case.segment;
            let from = ready[usize::from(came >= sectors[0])] + case.preparation;
            if next_end.is_none() && came < all && has_room && now >= from {
                next_end = Some(now + case.bus);
            }
            let before = head.next;
            head.advance(now, came > head.next, |_, _| false);
            if before < head.next && head.next == sectors[0] {
                // The arm moves on for the second write once the first is reported as complete and
                // the second one's command has been processed.
                let last = lbn + sectors[0] - 1;
                let free = (now + case.pass())
                    .max(ticks(first.completed))
                    .max(ready[1]);
                head.ready = free + case.moving(last, last + 1);
            }
            if came == all && head.next == all {
                break;
            }
        }
        let completed = [first, second].map(|done| ticks(done.completed));
        assert_eq!(completed, full.map(|full| full + case.completion), "{text}");
        let passed = with_lbns(lbn, &head.begun).split_off(sectors[0] as usize);
        assert_eq!(begun(&case, &drive), passed, "{text}");
    }
}

/// Does a request of any size leave a shared bus to another drive whenever the request does not
/// need the bus, and only then?
#[test]
fn another_drive_uses_the_bus_in_between() {
    for seed in 0..testkit::repeats(30) {
        let rng = &mut Rng::new(seed);
        let mut case = Case::new(rng);
        case.completion = 0;
        // Otherwise the drive would not leave the bus before the request is complete.
        case.always = false;
        let sectors = size(rng, &case).min(2 * case.slots);
        let writes = rng.chance(0.6);
        if !writes && sectors > case.segment && !case.is_slow() {
            case.watermark = 1;
            case.segment = case.segment.max(2);
            (case.connect, case.preparation, case.disconnect) = (0, 0, 0);
            case.zero_latency = false;
        }
        let case = case.build(|p| {
            if writes {
                p.cache.write_back = WriteBack::Full;
            }
        });
        let text = describe(&case, seed);
        let lbn = rng.below(10 * case.slots);
        // The other drive has a sector in its buffer, which it transfers in a tick.
        let mut other = Case::base().build(|_| ()).drive();
        serve_at(&mut other, 0, read(0, 1));
        let bus = SharedBus::default();
        let mut drive = case.drive();
        drive.share_bus(bus.clone());
        other.share_bus(bus);
        let now = 3000;
        let request = if writes { write } else { read };
        serve_at(&mut drive, now, request(lbn, sectors as u32));
        let ready = now + case.command;
        let mut taken = vec![(now, ready + case.disconnect)];
        if writes {
            let naive = NaiveWrite {
                lbn,
                sectors,
                around: (0, 0),
                ready,
                home: 0,
                threshold: 1,
                from: ready + case.preparation,
            };
            // The model reserves no time to connect again for a write.
            let sending = naive.run(&case).sending;
            taken.extend(sending.iter().map(|&start| (start, start + case.bus)));
        } else {
            let naive = NaiveRead {
                lbn,
                sectors,
                buffered: 0,
                ready,
                home: 0,
                from: ready + case.disconnect,
                connected: false,
                zero_latency: case.zero_latency,
            };
            let sent = naive.run(&case);
            taken.push((sent.first - case.connect - case.preparation, sent.end));
        }
        let end = taken.last().unwrap().1;
        for tick in (now - 20..end + 20).step_by(1 + rng.below(9) as usize) {
            let is_free = |tick: &u64| {
                let within = |&(start, end): &(u64, u64)| start <= *tick && *tick < end;
                !taken.iter().any(within)
            };
            let free = (tick..).find(is_free).unwrap();
            let done = serve_at(&mut other.clone(), tick, read(0, 1));
            assert_eq!(ticks(done.completed), free + 1, "{text}: at {tick}");
        }
    }
}

fn serve_at(drive: &mut Drive, now: u64, request: Request) -> Completion {
    drive.serve(at(now), request).unwrap()
}
