//! Do generated requests have the sizes, addresses and times of their specification?

use proptest::prelude::*;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime, Span};
use traxtent_workload::{
    CapacityOnly, Distribution, NextStep, RequestGenerator, RequestSource, Synthetic, TrackSource,
    WorkloadError, WorkloadSpec,
};

/// Tracks of 100, 101, 102, 100, 101, … sectors, in two zones with about equal numbers of tracks.
struct Tracks {
    starts: Vec<u64>,
}

impl Tracks {
    fn new(count: usize) -> Tracks {
        let lengths = (0..count).map(|track| 100 + track as u64 % 3);
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        Tracks { starts }
    }
}

impl TrackSource for Tracks {
    fn track_bounds(&self, lbn: Lbn) -> (Lbn, Lbn) {
        assert!(lbn.0 < self.capacity().0, "requested {lbn}");
        let track = self.starts.partition_point(|&start| start <= lbn.0) - 1;
        (Lbn(self.starts[track]), Lbn(self.starts[track + 1]))
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.starts[self.starts.len() - 1])
    }

    fn zone_bounds(&self, zone: u32) -> Option<(Lbn, Lbn)> {
        let half = self.starts[self.starts.len() / 2];
        match zone {
            0 => Some((Lbn(0), Lbn(half))),
            1 => Some((Lbn(half), Lbn(self.capacity().0))),
            _ => None,
        }
    }
}

fn requests(text: &str, tracks: &dyn TrackSource, count: usize) -> Vec<Request> {
    let spec: WorkloadSpec = text.parse().unwrap();
    let generator = RequestGenerator::new(&spec, 512, tracks, Rng::new(spec.seed))
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    generator.take(count).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

/// Do aligned whole-track requests begin and end with a track, do unaligned ones begin anywhere,
/// and does `offset` count from the start of a track?
#[test]
fn track_alignment() {
    let tracks = Tracks::new(200);
    for request in requests("random,size=track,align=track,zone=1", &tracks, 2000) {
        assert_eq!(
            tracks.track_bounds(request.lbn),
            (request.lbn, request.end())
        );
        assert!(request.lbn.0 >= tracks.starts[100]);
    }
    let unaligned = requests("random,size=track", &tracks, 3000);
    assert!(
        unaligned
            .iter()
            .all(|request| (100..=102).contains(&request.sectors))
    );
    let aligned = unaligned
        .iter()
        .filter(|request| tracks.track_bounds(request.lbn).0 == request.lbn)
        .count();
    assert!(
        (10..60).contains(&aligned),
        "{aligned} of 3000 begin at a boundary; about 30 are expected"
    );

    let shifted = requests("random,size=10,align=track,offset=50", &tracks, 500);
    assert!(
        shifted
            .iter()
            .all(|request| request.lbn.0 - tracks.track_bounds(request.lbn).0.0 == 50)
    );
}

/// Does a track-aligned sequential workload visit every track in order and then begin again, both
/// with whole tracks and with parts of tracks?
#[test]
fn sequential_tracks() {
    let tracks = Tracks::new(7);
    let visited = requests("sequential,size=track,align=track", &tracks, 16);
    let expected = (0..16).map(|turn| tracks.starts[turn % 7]);
    assert!(
        visited.iter().map(|request| request.lbn.0).eq(expected),
        "{visited:?}"
    );
    // Parts of tracks: each request begins at the next track.
    let parts = requests("sequential,size=60,align=track", &tracks, 8);
    assert!(
        parts
            .iter()
            .map(|request| request.lbn.0)
            .eq((0..8).map(|turn| tracks.starts[turn % 7])),
        "{parts:?}"
    );
}

/// Does a sequential workload proceed in order, and restart from the region's first possible LBN
/// when the next request would not fit?
#[test]
fn sequential_runs() {
    let run = requests(
        "sequential,size=8,lbns=100..130",
        &CapacityOnly(Sectors(1000)),
        5,
    );
    assert!(
        run.iter()
            .map(|request| request.lbn.0)
            .eq([100, 108, 116, 100, 108])
    );
    let aligned = requests(
        "sequential,size=6,align=8,lbns=100..130",
        &CapacityOnly(Sectors(1000)),
        4,
    );
    assert!(
        aligned
            .iter()
            .map(|request| request.lbn.0)
            .eq([104, 112, 120, 104])
    );
}

/// Are the shares of reads, sequential and local requests as specified, within 4 standard
/// deviations?
#[test]
fn shares() {
    let count = 40_000;
    let all = requests(
        "mixed,seq=20%,local=30%,distance=normal:0:1000,read=66%",
        &CapacityOnly(Sectors(100_000_000)),
        count,
    );
    let near = |found: usize, share: f64| {
        let deviation = (count as f64 * share * (1.0 - share)).sqrt();
        assert!(
            (found as f64 - count as f64 * share).abs() < 4.0 * deviation,
            "{found} of {count}, expected {share}"
        );
    };
    near(
        all.iter().filter(|request| request.op == Op::Read).count(),
        0.66,
    );
    near(
        all.windows(2)
            .filter(|pair| pair[0].end() == pair[1].lbn)
            .count(),
        0.2,
    );
    let distance = |pair: &[Request]| pair[1].lbn.0.abs_diff(pair[0].lbn.0);
    near(
        all.windows(2)
            .filter(|pair| pair[0].end() != pair[1].lbn && distance(pair) < 6000)
            .count(),
        0.3,
    );
}

/// Are starts distributed uniformly: does a chi-squared test over 100 classes stay below its 99.9 %
/// point?
#[test]
fn random_starts_are_uniform() {
    for text in [
        "random,size=1,lbns=500..1500",
        "random,size=1,align=2,offset=1,lbns=500..1500",
    ] {
        let mut classes = [0.0; 100];
        for request in requests(text, &CapacityOnly(Sectors(5000)), 100_000) {
            classes[(request.lbn.0 - 500) as usize / 10] += 1.0;
        }
        let chi_squared: f64 = classes
            .iter()
            .map(|count: &f64| (count - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi_squared < 148.2, "{text}: {chi_squared}");
    }
}

/// Do drawn values have the mean and deviation of their distribution?
#[test]
fn distributions_have_their_moments() {
    let count = 200_000;
    for (distribution, deviation) in [
        (Distribution::Constant(3.0), 0.0),
        (
            Distribution::Uniform {
                low: -2.0,
                high: 10.0,
            },
            12.0 / 12f64.sqrt(),
        ),
        (
            Distribution::Normal {
                mean: 5.0,
                deviation: 3.0,
            },
            3.0,
        ),
        (
            Distribution::Exponential {
                base: 1.0,
                mean: 4.0,
            },
            4.0,
        ),
        (
            Distribution::Poisson {
                base: 1.0,
                mean: 7.0,
            },
            7f64.sqrt(),
        ),
        (
            Distribution::Poisson {
                base: 0.0,
                mean: 1300.0,
            },
            1300f64.sqrt(),
        ),
        (
            Distribution::two_value(1.0, 11.0, 0.25),
            10.0 * (0.25f64 * 0.75).sqrt(),
        ),
    ] {
        let mut rng = Rng::new(11);
        let drawn: Vec<f64> = (0..count).map(|_| distribution.sample(&mut rng)).collect();
        let found = mean(drawn.iter().copied());
        let error = deviation / f64::from(count).sqrt();
        assert!(
            (found - distribution.mean()).abs() <= 4.0 * error + 1e-12,
            "{distribution:?}: mean {found}"
        );
        let spread = mean(drawn.iter().map(|value| (value - found).powi(2))).sqrt();
        assert!(
            (spread - deviation).abs() <= 0.02 * deviation + 1e-12,
            "{distribution:?}: deviation {spread}"
        );
    }
}

/// Do random and local requests start at multiples of the smallest size unless another alignment is
/// set, as in fio?
#[test]
fn starts_are_multiples_of_the_smallest_size() {
    let drive = CapacityOnly(Sectors(1_000_000));
    for (text, step) in [
        ("random", 8),
        ("random,size=12", 12),
        ("random,size=64KiB,lbns=1000..400000", 128),
        ("random,size=uniform:16..100", 16),
        ("random,size=choice:24/8/64@2", 8),
        ("random,size=10,round=16", 16),
        ("random,size=exp:64,round=8", 8),
        ("random,size=exp:32:64", 32),
        ("random,local=1,distance=normal:0:3000", 8),
        ("mixed,seq=0,local=0.5,distance=normal:0:3000,size=16", 16),
    ] {
        let all = requests(text, &drive, 2000);
        assert!(
            all.iter().all(|request| request.lbn.0 % step == 0),
            "{text}: not all start at multiples of {step}"
        );
        assert!(
            all.iter().any(|request| request.lbn.0 % (2 * step) != 0),
            "{text}: all start at multiples of {}",
            2 * step
        );
    }
    for text in [
        "random,align=none",
        "random,align=1",
        "random,size=exp:64",
        "random,size=normal:64:8",
        "random,size=track",
    ] {
        let all = requests(text, &Tracks::new(5000), 2000);
        assert!(all.iter().any(|request| request.lbn.0 % 2 == 1), "{text}");
    }
}

/// Does a sequential request start where the last one ended, although random ones are aligned?
#[test]
fn sequential_requests_continue() {
    let drive = CapacityOnly(Sectors(1_000_000));
    let all = requests("sequential,size=uniform:8..64,lbns=3..900000", &drive, 500);
    assert_eq!(all[0].lbn, Lbn(3));
    assert!(all.windows(2).all(|pair| pair[0].end() == pair[1].lbn));
    let all = requests("mixed,seq=100%,size=uniform:8..64", &drive, 500);
    assert!(all.windows(2).all(|pair| pair[0].end() == pair[1].lbn));
    // An explicit alignment holds for all requests.
    let all = requests("sequential,size=uniform:8..64,align=8", &drive, 500);
    assert!(all.iter().all(|request| request.lbn.0 % 8 == 0));
}

/// Are sizes positive multiples of `round`, uniform ones equally frequent, and sizes in bytes
/// converted to sectors?
#[test]
fn sizes() {
    let drive = CapacityOnly(Sectors(1_000_000_000));
    let exponential = requests("random,size=exp:64,round=8", &drive, 20_000);
    assert!(
        exponential
            .iter()
            .all(|request| request.sectors > 0 && request.sectors % 8 == 0)
    );
    let uniform = requests("random,size=uniform:1..5", &drive, 20_000);
    for size in 1..5 {
        let count = uniform
            .iter()
            .filter(|request| request.sectors == size)
            .count();
        assert!(
            (4700..5300).contains(&count),
            "size {size}: {count} of 20000"
        );
    }
    assert_eq!(requests("random,size=1MiB", &drive, 1)[0].sectors, 2048);
}

/// Are values that do not fit the drive refused with the reason, and values at the bound accepted?
#[test]
fn misfits() {
    let drive = Tracks::new(10);
    let capacity = drive.capacity().0;
    let make = |text: &str| {
        let spec: WorkloadSpec = text.parse().unwrap();
        RequestGenerator::new(&spec, 512, &drive, Rng::new(1))
            .map(|mut generator| generator.next().unwrap())
    };
    assert_eq!(
        make(&format!("random,size={capacity}")).unwrap(),
        Request::read(Lbn(0), capacity as u32)
    );
    assert_eq!(
        make(&format!("random,lbns={}..{capacity},size=1", capacity - 1))
            .unwrap()
            .lbn
            .0,
        capacity - 1
    );
    for (text, expected) in [
        (
            format!("random,size={}", capacity + 1),
            format!("expected a whole number of sectors of 512 bytes, from 1 to {capacity}"),
        ),
        (
            format!("random,lbns=0..{}", capacity + 1),
            format!("the LBNs are 0..{capacity}"),
        ),
        (
            "random,zone=2".to_owned(),
            "the drive has no such zone".to_owned(),
        ),
        (
            "random,size=1000B".to_owned(),
            "expected a whole number of sectors".to_owned(),
        ),
        (
            "random,align=1000B".to_owned(),
            "expected a multiple of the drive's sector of 512 bytes".to_owned(),
        ),
        (
            "random,size=track,align=track,lbns=1..150".to_owned(),
            "no aligned request fits".to_owned(),
        ),
        (
            "random,size=uniform:2000..3000".to_owned(),
            format!("expected sizes from 1 to {capacity} sectors"),
        ),
        (
            "random,size=normal:1000:1,lbns=0..8".to_owned(),
            "expected sizes from 1 to 8 sectors, but none of 1000 drawn sizes is".to_owned(),
        ),
        (
            "random,size=choice:8@0/16@1,lbns=0..8".to_owned(),
            "expected sizes from 1 to 8 sectors, but none of 1000 drawn sizes is".to_owned(),
        ),
        (
            "random,size=20,lbns=1..21".to_owned(),
            "no aligned request fits the 20 LBNs from 1; with align=none".to_owned(),
        ),
        (
            "random,align=1GiB,lbns=1..900".to_owned(),
            "no aligned request fits".to_owned(),
        ),
    ] {
        let error: WorkloadError = make(&text).expect_err(&text);
        assert!(error.to_string().contains(&expected), "{text}: {error}");
    }
}

/// Returns the 64-bit FNV-1a hash of the requests and their times.
fn fingerprint(requests: impl IntoIterator<Item = (u64, Request)>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (at, request) in requests {
        let words = [
            at,
            request.lbn.0,
            u64::from(request.sectors),
            request.op as u64,
            u64::from(request.fua),
        ];
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// Returns the arrivals of a workload, with their times in picoseconds, on a drive that takes 5 ms
/// for any request, one at a time.
fn arrivals(text: &str, tracks: &dyn TrackSource) -> Vec<(u64, Request)> {
    let spec: WorkloadSpec = text.parse().unwrap();
    let mut source = Synthetic::new(&spec, 512, tracks).unwrap();
    let mut queue = std::collections::VecDeque::new();
    let mut free = SimTime::ZERO;
    let mut all = Vec::new();
    loop {
        let done = queue.front().map(|&(_, done): &(u64, SimTime)| done);
        match source.due().unwrap() {
            NextStep::At(at) if done.is_none_or(|done| at <= done) => {
                let arrival = source.take(at).unwrap();
                free = free.max(at) + Span::from_ms(5.0);
                queue.push_back((arrival.tag, free));
                all.push((at.0, arrival.request));
            }
            _ => match queue.pop_front() {
                Some((tag, done)) => source.complete(tag, done),
                None => return all,
            },
        }
    }
}

/// Does each workload still give the requests and times that it gave in earlier versions?
#[test]
fn goldens() {
    let tracks = Tracks::new(5000);
    for (text, expected) in [
        (
            "random,read=66%,size=8,align=none,count=1000",
            0xebb0_0c22_9ab8_560d,
        ),
        (
            "random,read=66%,size=8,align=none,count=1000,seed=2",
            0xfeb6_a9dd_9768_9751,
        ),
        (
            "mixed,seq=20%,local=30%,distance=normal:0:1000,size=exp:16,read=50%,fua=20%,count=1000,arrive=exp:10ms",
            0xece8_4ff5_aad5_94b8,
        ),
        (
            "random,size=track,align=track,outstanding=2,think=uniform:0ms..3ms,count=1000",
            0x771c_067f_fa02_8124,
        ),
        (
            "random,size=choice:8@3/64/128,round=16,align=none,arrive=normal:8ms:3ms,count=1000",
            0xc570_e9c4_7482_8a49,
        ),
        (
            "sequential,size=poisson:1:20,count=1000,think=poisson:2ms:1ms",
            0x4745_7722_b954_94dc,
        ),
        ("random,read=66%,size=8,count=1000", 0x4664_268c_5f36_d48e),
        (
            "mixed,seq=30%,local=30%,distance=normal:0:1000,size=uniform:8..65,count=1000",
            0x2aa1_81fa_9742_7da5,
        ),
    ] {
        let found = fingerprint(arrivals(text, &tracks));
        assert_eq!(found, expected, "{text}: found {found:#018x}");
    }
}

/// Do addresses and sizes stay the same if only the read share, the pace or the count changes?
#[test]
fn addresses_do_not_depend_on_other_values() {
    let tracks = Tracks::new(500);
    let places = |text: &str| {
        arrivals(text, &tracks)
            .into_iter()
            .map(|(_, r)| (r.lbn, r.sectors))
            .collect::<Vec<_>>()
    };
    let base = places("random,count=500");
    assert_eq!(places("random,count=500,read=20%"), base);
    assert_eq!(places("random,count=500,arrive=exp:3ms"), base);
    assert_eq!(places("random,count=400")[..], base[..400]);
}

/// Does an open workload keep its rate, and a closed one its number of outstanding requests and its
/// think time? Is a request at the end time issued, but no later one?
#[test]
fn paces() {
    let drive = CapacityOnly(Sectors(1_000_000));
    let open = arrivals("random,arrive=exp:2ms:6ms,count=20000", &drive);
    let gap = open[open.len() - 1].0 as f64 / 1e9 / open.len() as f64;
    assert!((gap - 8.0).abs() < 4.0 * 6.0 / 20_000f64.sqrt(), "{gap}");
    // Three outstanding, 5 ms each: three at once, then one every 5 ms.
    let closed = arrivals("random,outstanding=3,count=6", &drive);
    assert!(
        closed
            .iter()
            .map(|at| at.0)
            .eq([0, 0, 0, 5, 10, 15].map(|ms| ms * 1_000_000_000))
    );
    // A pause of 7 ms after each completion.
    let thinking = arrivals("random,think=7ms,count=3", &drive);
    assert!(
        thinking
            .iter()
            .map(|at| at.0)
            .eq([0, 12, 24].map(|ms| ms * 1_000_000_000))
    );
    // A request at the end time is still issued.
    assert_eq!(arrivals("random,think=7ms,time=12ms", &drive).len(), 2);
    assert_eq!(arrivals("random,think=7ms,time=11999us", &drive).len(), 1);
}

proptest! {
    /// For any specification that fits the drive, do all requests lie in their region and have the
    /// right alignment?
    #[test]
    fn requests_stay_in_their_region(
        tracks in 2..60usize, seed: u64,
        kind in prop::sample::select(vec!["random", "sequential", "mixed", "mixed,local=40%,distance=normal:0:3000", "random,local=1,distance=uniform:-99..99"]),
        size in prop::sample::select(vec!["1", "8", "90", "track", "exp:50", "uniform:1..300", "normal:20:30", "64KiB"]),
        align in prop::sample::select(vec!["none", "track", "3", "8", "track,offset=7", "16,offset=5"]),
        low in 0..400u64, more in 1..4000u64,
    ) {
        let drive = Tracks::new(tracks);
        let high = (low + more).min(drive.capacity().0);
        prop_assume!(low < high);
        let spec: WorkloadSpec = format!("{kind},size={size},align={align},lbns={low}..{high},seed={seed}").parse().unwrap();
        if let Ok(generator) = RequestGenerator::new(&spec, 512, &drive, Rng::new(seed)) {
            for request in generator.take(200) {
                prop_assert!(request.sectors > 0 && request.lbn.0 >= low && request.end().0 <= high, "{spec}: {request:?}");
                let start = request.lbn.0;
                let track = drive.track_bounds(request.lbn).0.0;
                prop_assert!(match align {
                    "track" => start == track,
                    "track,offset=7" => start == track + 7,
                    "3" => start % 3 == 0,
                    "8" => start % 8 == 0,
                    "16,offset=5" => start % 16 == 5,
                    _ => true,
                }, "{spec}: {request:?}");
            }
        }
    }

    /// Is every number drawn below its bound, for bounds of any size, and every fraction below 1?
    #[test]
    fn a_draw_is_below_its_bound(seed: u64, bound in 1..=u64::MAX) {
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            prop_assert!(rng.below(bound) < bound);
            prop_assert!(rng.below(bound.min(7)) < 7);
            prop_assert!((0.0..1.0).contains(&rng.fraction()));
        }
    }
}
