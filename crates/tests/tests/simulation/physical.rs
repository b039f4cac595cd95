//! Detection of physical sectors by timing.

use std::sync::Arc;

use traxtent_map::TrackMap;
use traxtent_model::geometry::{Geometry, Place};
use traxtent_model::profile::builtin::builtin;
use traxtent_model::profile::{Profile, WriteBack};
use traxtent_probe::characterization::{Characterization, CharacterizeOptions, characterize};
use traxtent_probe::{Identity, Target, TargetError, Timing};
use traxtent_sim::{Noise, SimTarget};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime};

/// A drive that reads whole physical sectors, which the model does not, and can claim any size for
/// them.
struct WholeSectors {
    drive: SimTarget,
    identity: Identity,
    /// The number of LBNs per physical sector.
    sectors: u64,
    /// The first LBN that begins a physical sector.
    first: u64,
    /// Whether a write may stay in the buffer in spite of force unit access.
    ignores_fua_of_writes: bool,
}

impl WholeSectors {
    fn new(drive: SimTarget, profile: &Profile, claims: u32) -> WholeSectors {
        WholeSectors {
            identity: Identity {
                physical_bytes: claims,
                ..drive.identity().clone()
            },
            drive,
            sectors: profile.sector.ratio().into(),
            first: profile.sector.lowest_aligned_lbn.into(),
            ignores_fua_of_writes: false,
        }
    }

    /// Returns a request, extended to whole physical sectors.
    fn whole(&self, request: Request) -> Request {
        let shift = self.sectors - self.first;
        let begin = ((request.lbn.0 + shift) / self.sectors * self.sectors).saturating_sub(shift);
        let end = request.lbn.0 + u64::from(request.sectors);
        let end = (end + shift).div_ceil(self.sectors) * self.sectors - shift;
        Request {
            lbn: Lbn(begin),
            sectors: (end.min(self.identity.capacity.0) - begin) as u32,
            ..request
        }
    }
}

impl Target for WholeSectors {
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn now(&self) -> SimTime {
        self.drive.now()
    }
    fn wait_until(&mut self, at: SimTime) {
        self.drive.wait_until(at);
    }
    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        let reads = matches!(request.op, Op::Read | Op::Verify);
        let request = if reads {
            self.whole(request)
        } else {
            Request {
                fua: request.fua && !self.ignores_fua_of_writes,
                ..request
            }
        };
        self.drive.request(request)
    }
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.drive.translate(lbn)
    }
}

fn profile(name: &str) -> Profile {
    builtin(name).unwrap()
}

/// Returns a built-in drive with logical and physical sectors of 4,096 bytes.
fn native(name: &str) -> Profile {
    let mut native = profile(name);
    native.sector.logical_bytes = 4096;
    native.sector.physical_bytes = 4096;
    native.sector.lowest_aligned_lbn = 0;
    native
}

fn drive(profile: &Profile, noise: bool) -> (SimTarget, TrackMap) {
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let map = TrackMap::from_sizes(geometry.track_sizes());
    let target = SimTarget::new(Arc::new(profile.clone()), geometry);
    let target = if noise {
        target.with_noise(Noise::TYPICAL, 8)
    } else {
        target
    };
    (target, map)
}

fn characterization(
    target: &mut dyn Target,
    map: &TrackMap,
    destructive: bool,
) -> Characterization {
    let options = CharacterizeOptions {
        destructive,
        seed: 5,
    };
    characterize(target, map, options, &mut |_| ()).unwrap()
}

/// Returns the size of physical sectors in bytes, with its bounds, and the lowest LBN that begins a
/// physical sector.
fn found(characterization: &Characterization) -> ((f64, f64, f64), u32) {
    let figure = characterization
        .figures()
        .iter()
        .find(|figure| figure.name == "sector.physical_bytes")
        .unwrap();
    println!("{figure} {:?}", characterization.notes());
    assert_eq!(f64::from(characterization.physical_bytes()), figure.value);
    let sizes = (figure.value, figure.low, figure.high);
    (sizes, characterization.lowest_aligned_lbn())
}

const SINGLE: (f64, f64, f64) = (512.0, 512.0, 512.0);
const LARGE: (f64, f64, f64) = (4096.0, 4096.0, 4096.0);
/// The drive's claim, which no measurement confirms.
const UNSURE: (f64, f64, f64) = (4096.0, 512.0, 4096.0);

/// On a drive that reads whole physical sectors, do reads alone show their size and alignment,
/// whatever the drive claims? On a drive without large physical sectors, do reads show that there
/// are none? Does this also work on an unsteady host?
#[test]
fn reads_show_physical_sectors() {
    for noise in [false, true] {
        for (name, claims) in [("toshiba-p300", 4096), ("wd10ears-jumper", 512)] {
            let profile = profile(name);
            let (target, map) = drive(&profile, noise);
            let mut target = WholeSectors::new(target, &profile, claims);
            let characterization = characterization(&mut target, &map, false);
            let first = profile.sector.lowest_aligned_lbn;
            assert_eq!(found(&characterization), (LARGE, first), "{name}");
            let contradicts = |note: &String| note.contains("its reads show 4096");
            let notes = characterization
                .notes()
                .iter()
                .filter(|note| contradicts(note));
            assert_eq!(notes.count(), usize::from(claims == 512), "{name}");
        }
        for name in ["hd103sj", "atlas10k2"] {
            let (mut target, map) = drive(&profile(name), noise);
            let characterization = characterization(&mut target, &map, false);
            assert_eq!(found(&characterization), (SINGLE, 0), "{name}");
        }
    }
}

/// If a drive claims large sectors that its reads do not show, is it noted that reads cannot
/// decide?
#[test]
fn reads_that_cannot_decide() {
    let (mut target, map) = drive(&profile("toshiba-p300"), false);
    let characterization = characterization(&mut target, &map, false);
    assert_eq!(found(&characterization), (UNSURE, 0));
    let says = |note: &String| {
        note.contains(
            "as if each LBN were a physical sector. Only a test with writes is conclusive.",
        )
    };
    assert!(characterization.notes().iter().any(says));
}

/// Do writes show what reads of the model do not: the size, and the shift of a jumper? Do they show
/// on other drives that physical sectors are single logical ones, of 512 or of 4,096 bytes?
#[test]
fn writes_show_physical_sectors() {
    for noise in [false, true] {
        for (profile, size, first) in [
            (profile("toshiba-p300"), LARGE, 0),
            (profile("wd10ears-jumper"), LARGE, 7),
            (profile("hd103sj"), SINGLE, 0),
            (profile("hp-c3323a"), SINGLE, 0),
            (native("dt01aca300"), LARGE, 0),
        ] {
            let (mut target, map) = drive(&profile, noise);
            let characterization = characterization(&mut target, &map, true);
            assert_eq!(found(&characterization), (size, first), "{}", profile.name);
        }
    }
}

/// If a drive reports writes as complete before they are on the media, do reads still decide, and
/// is it noted that writes do not?
#[test]
fn writes_that_cannot_decide() {
    let profile = profile("toshiba-p300");
    assert_ne!(profile.cache.write_back, WriteBack::None);
    let (target, map) = drive(&profile, false);
    let mut target = WholeSectors::new(target, &profile, 512);
    target.ignores_fua_of_writes = true;
    let characterization = characterization(&mut target, &map, true);
    assert_eq!(found(&characterization), (LARGE, 0));
    let says = |note: &String| {
        note.starts_with("The physical sector size cannot be determined from writes: they complete before they can have reached the media")
    };
    assert!(characterization.notes().iter().any(says));
}

/// Does the characterization of a drive that reads whole physical sectors find the same skews and
/// numbers of slots as without this, although the first LBN of each track completes late?
#[test]
fn angles_by_whole_sectors() {
    let profile = profile("toshiba-p300");
    let slots = |whole: bool| {
        let (target, map) = drive(&profile, false);
        let characterization = if whole {
            characterization(&mut WholeSectors::new(target, &profile, 4096), &map, false)
        } else {
            characterization(&mut { target }, &map, false)
        };
        let slots = |name: &str| name.ends_with(".slots") || name.ends_with("skew");
        let figures = characterization.figures().iter().filter(|f| slots(&f.name));
        figures
            .map(|f| (f.name.clone(), f.value))
            .collect::<Vec<_>>()
    };
    let (whole, single) = (slots(true), slots(false));
    assert!(!single.is_empty() && whole.len() == single.len());
    for ((name, whole), (other, single)) in whole.iter().zip(&single) {
        assert_eq!(name, other);
        assert!(
            (whole - single).abs() < 2e-5,
            "{name}: {whole}, not {single}"
        );
    }
}
