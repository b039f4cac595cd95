//! A layout listed sector by sector: slow, but simple enough to check by reading the code.

use std::collections::{BTreeMap, BTreeSet};

use traxtent_model::geometry::{GeometrySpec, Order, PerSurface, Skew, Sparing, Start, ZoneSpec};

/// Cylinder, surface, slot.
pub(crate) type Spot = (u32, u16, u32);

#[derive(Clone, Copy, Debug)]
pub(crate) struct NaiveTrack {
    pub(crate) cylinder: u32,
    pub(crate) surface: u16,
    pub(crate) slots: u32,
    /// The angle at which the track begins, in revolutions.
    pub(crate) origin: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Naive {
    /// Every track, mapped or not.
    pub(crate) tracks: Vec<NaiveTrack>,
    /// The track and slot of each LBN. Remaps of whole tracks are applied; remaps of sectors are in
    /// `moved`.
    pub(crate) home: Vec<(usize, u32)>,
    /// The locations of LBNs whose sectors are remapped.
    pub(crate) moved: BTreeMap<u64, Spot>,
    pub(crate) bad: BTreeSet<Spot>,
}

impl Naive {
    /// Lays out the zones of `spec`. Returns `None` if a zone's spares are too few for its slips,
    /// or a zone is too small for its reserved sectors.
    pub(crate) fn build(spec: &GeometrySpec) -> Option<Naive> {
        let mut naive = Naive::default();
        for zone in &spec.zones {
            naive.zone(spec, zone)?;
        }
        if let Some(capacity) = spec.capacity_sectors {
            naive.home.truncate(capacity as usize);
            naive.moved.retain(|&lbn, _| lbn < capacity);
        }
        let replaced: Vec<Spot> = naive
            .moved
            .keys()
            .map(|&lbn| naive.home_spot(lbn))
            .collect();
        naive.bad.extend(replaced);
        Some(naive)
    }

    pub(crate) fn spot(&self, lbn: u64) -> Spot {
        self.moved
            .get(&lbn)
            .copied()
            .unwrap_or_else(|| self.home_spot(lbn))
    }

    pub(crate) fn home_spot(&self, lbn: u64) -> Spot {
        let (track, slot) = self.home[lbn as usize];
        (
            self.tracks[track].cylinder,
            self.tracks[track].surface,
            slot,
        )
    }

    fn zone(&mut self, spec: &GeometrySpec, zone: &ZoneSpec) -> Option<()> {
        let first = self.tracks.len();
        self.tracks.extend(order(spec, zone));
        let tracks = &self.tracks[first..];
        let sectors: Vec<(usize, u32)> = (0..tracks.len())
            .flat_map(|t| (0..tracks[t].slots).map(move |slot| (t, slot)))
            .collect();
        let spot = |(t, slot): (usize, u32)| (tracks[t].cylinder, tracks[t].surface, slot);
        let mut lbns = if spec.sparing == Sparing::TracksPerZone {
            whole_tracks(zone, tracks)?
        } else {
            let regions = regions(spec, zone, &sectors);
            let bad: BTreeSet<usize> = zone.slips.iter().map(|&s| s as usize).collect();
            let mut lbns = Vec::new();
            for (region, spares) in regions {
                lbns.extend(
                    usable(spec.sparing, region, spares, &bad)?
                        .into_iter()
                        .map(|p| sectors[p]),
                );
            }
            lbns
        };
        let all = lbns.clone();
        lbns = lbns.get(zone.reserved_sectors as usize..)?.to_vec();
        if let Some(most) = zone.lbns {
            lbns.truncate(most as usize);
        }
        if spec.sparing == Sparing::TracksPerZone {
            for &slip in &zone.slips {
                let t = slip as usize;
                self.bad
                    .extend((0..tracks[t].slots).map(|slot| spot((t, slot))));
            }
            for &(from, to) in &zone.remaps {
                for lbn in lbns.iter_mut().filter(|lbn| lbn.0 == from as usize) {
                    lbn.0 = to as usize;
                }
                if all.iter().any(|lbn| lbn.0 == from as usize) {
                    let t = from as usize;
                    self.bad
                        .extend((0..tracks[t].slots).map(|slot| spot((t, slot))));
                }
            }
        } else {
            self.bad
                .extend(zone.slips.iter().map(|&p| spot(sectors[p as usize])));
            for &(from, to) in &zone.remaps {
                if let Some(k) = lbns.iter().position(|&lbn| lbn == sectors[from as usize]) {
                    self.moved
                        .insert((self.home.len() + k) as u64, spot(sectors[to as usize]));
                }
            }
        }
        self.home
            .extend(lbns.into_iter().map(|(t, slot)| (first + t, slot)));
        Some(())
    }
}

/// Returns the slots of a zone that are available for LBNs, in LBN order, if its spares are whole
/// tracks. Returns `None` if the spares are too few for the slips.
fn whole_tracks(zone: &ZoneSpec, tracks: &[NaiveTrack]) -> Option<Vec<(usize, u32)>> {
    let good: Vec<usize> = (0..tracks.len())
        .filter(|&t| !zone.slips.contains(&(t as u64)))
        .collect();
    let count = tracks.len() - zone.spares as usize;
    let used = good.get(..count)?;
    Some(
        used.iter()
            .flat_map(|&t| (0..tracks[t].slots).map(move |slot| (t, slot)))
            .collect(),
    )
}

/// Returns, for each sparing region, the indices into `sectors` that it covers and its number of
/// spares.
fn regions(
    spec: &GeometrySpec,
    zone: &ZoneSpec,
    sectors: &[(usize, u32)],
) -> Vec<(Vec<usize>, usize)> {
    let surfaces = if zone.surface.is_some() {
        1
    } else {
        usize::from(spec.surfaces)
    };
    let tracks = match spec.sparing {
        Sparing::SectorsPerTrack => 1,
        Sparing::SectorsPerCylinderRange => {
            surfaces * spec.sparing_range_cylinders.unwrap() as usize
        }
        Sparing::SectorsPerCylinder
        | Sparing::SectorsPerCylinderSlipToEnd
        | Sparing::SectorsAtCylinderFront
        | Sparing::SectorsAtCylinderFrontSlipToEnd => surfaces,
        _ => usize::MAX,
    };
    let mut out: Vec<(Vec<usize>, usize)> = Vec::new();
    for (position, &(t, _)) in sectors.iter().enumerate() {
        if out.len() <= t / tracks {
            out.push((Vec::new(), zone.spares as usize));
        }
        out[t / tracks].0.push(position);
    }
    // An incomplete region at the end of the zone has no spares.
    let all = sectors.last().unwrap().0 + 1;
    if tracks != usize::MAX && !all.is_multiple_of(tracks) {
        out.last_mut().unwrap().1 = 0;
    }
    out
}

/// Returns the positions of a region that are neither bad nor spare, in LBN order. Returns `None`
/// if the spares are too few for the bad sectors.
fn usable(
    sparing: Sparing,
    region: Vec<usize>,
    spares: usize,
    bad: &BTreeSet<usize>,
) -> Option<Vec<usize>> {
    let at_front = matches!(
        sparing,
        Sparing::SectorsAtCylinderFront | Sparing::SectorsAtCylinderFrontSlipToEnd
    );
    let count = region.len() - spares;
    let is_good = |position: &usize| !bad.contains(position);
    if sparing.slips_to_end() {
        let data = if at_front {
            &region[spares..]
        } else {
            &region[..count]
        };
        return Some(data.iter().copied().filter(is_good).collect());
    }
    let good: Vec<usize> = region.into_iter().filter(is_good).collect();
    let from = if at_front {
        good.len().checked_sub(count)?
    } else {
        0
    };
    good.get(from..from + count).map(<[usize]>::to_vec)
}

/// Returns the tracks of a zone in LBN order.
fn order(spec: &GeometrySpec, zone: &ZoneSpec) -> Vec<NaiveTrack> {
    let surfaces: Vec<u16> = zone
        .surface
        .map_or((0..spec.surfaces).collect(), |s| vec![s]);
    let slots = |surface: u16| match &zone.sectors_per_track {
        PerSurface::Same(slots) => *slots,
        PerSurface::Each(slots) => slots[usize::from(surface - surfaces[0])],
    };
    let backward = match spec.start {
        Start::Forward => false,
        Start::Backward => true,
        Start::CylinderParity => zone.first_cylinder % 2 == 1,
    };
    let cylinders: Vec<u32> = (zone.first_cylinder..=zone.last_cylinder).collect();
    let pass_skew = zone.turn_skew.unwrap_or(zone.track_skew);
    // Each track with the skew before it.
    let mut steps: Vec<(u32, u16, Skew)> = Vec::new();
    if spec.order.is_head_first() {
        for (i, &cylinder) in cylinders.iter().enumerate() {
            let mut heads = surfaces.clone();
            let odd = spec.order == Order::HeadFirstAlternating && i % 2 == 1;
            if odd != backward {
                heads.reverse();
            }
            for (h, &surface) in heads.iter().enumerate() {
                let skew = if h > 0 {
                    zone.track_skew
                } else {
                    zone.cylinder_skew
                };
                steps.push((cylinder, surface, skew));
            }
        }
    } else {
        let alternates_seek = matches!(
            spec.order,
            Order::SeekAlternatingSurfaceForward | Order::SeekAlternatingSurfaceAlternating
        );
        let alternates_surface = matches!(
            spec.order,
            Order::SeekForwardSurfaceAlternating | Order::SeekAlternatingSurfaceAlternating
        );
        let mut pass = 0;
        for (g, group) in cylinders
            .chunks(spec.width_tracks.unwrap() as usize)
            .enumerate()
        {
            let mut heads = surfaces.clone();
            if alternates_surface && g % 2 == 1 {
                heads.reverse();
            }
            for (h, &surface) in heads.iter().enumerate() {
                let mut run = group.to_vec();
                if (alternates_seek && pass % 2 == 1) != backward {
                    run.reverse();
                }
                pass += 1;
                for (c, &cylinder) in run.iter().enumerate() {
                    let skew = match (c, h) {
                        (0, 0) => zone.group_skew.unwrap_or(pass_skew),
                        (0, _) => pass_skew,
                        _ => zone.cylinder_skew,
                    };
                    steps.push((cylinder, surface, skew));
                }
            }
        }
    }
    let mut origin = 0.0;
    let mut out = Vec::new();
    for (t, (cylinder, surface, skew)) in steps.into_iter().enumerate() {
        let slots = slots(surface);
        let revolutions = |skew| match skew {
            Skew::Sectors(sectors) => sectors / f64::from(slots),
            Skew::Revolutions(revolutions) => revolutions,
        };
        origin += revolutions(if t == 0 { zone.first_angle } else { skew });
        let extra_skew_sectors: i32 = zone
            .turns
            .iter()
            .filter(|(first_track, _)| *first_track <= t as u64)
            .map(|(_, sectors)| sectors)
            .sum();
        let origin = origin + f64::from(extra_skew_sectors) / f64::from(slots);
        out.push(NaiveTrack {
            cylinder,
            surface,
            slots,
            origin,
        });
    }
    out
}
