//! Segments cut from a track map, and configurations that a log refuses.

use traxtent_layout::log::{Log, LogConfig, LogShape, SegmentSizing};
use traxtent_units::{Lbn, Sectors};

use super::device::{Device, Perform};
use super::{lbns, map_of, small_map};

/// Is every segment exactly one track, whatever its size, and does every track after the superblock
/// and the checkpoints have one?
#[test]
fn segments_are_tracks() {
    let map = map_of(250);
    let config = LogConfig {
        blocks: 20,
        ..LogConfig::default()
    };
    let log = Log::format(&map, lbns(&map), &config).unwrap();
    let tracks = map.tracks().map(|track| (track.first_lbn, track.sectors));
    let segments = log.segments().iter();
    let segments: Vec<_> = segments
        .map(|segment| (segment.first, Sectors(segment.sectors.into())))
        .collect();
    let tracks: Vec<_> = tracks.skip(map.len() - segments.len()).collect();
    assert_eq!(segments, tracks);
    assert!(segments.len() > 40);
}

/// Does each aligned segment begin at a track boundary, or a whole number of segments after it on
/// the same track? Are there as many fixed segments as the range has room for? Are all segments of
/// the given size, within the range, and without overlap?
#[test]
fn segments_of_one_size() {
    let map = small_map();
    let range = Lbn(7)..Lbn(map.end().0 - 5);
    for sectors in [1, 7, 15, 16, 30, 31, 70, 5000] {
        let size = Sectors(sectors);
        let fixed = SegmentSizing::Fixed(size).cut(&map, range.clone()).unwrap();
        assert_eq!(fixed.len() as u64, (range.end.0 - range.start.0) / sectors);
        let aligned = SegmentSizing::Aligned(size)
            .cut(&map, range.clone())
            .unwrap();
        for cut in [&fixed, &aligned] {
            for pair in cut.windows(2) {
                assert!(pair[0].end <= pair[1].start);
            }
            for segment in cut {
                assert!(range.start <= segment.start && segment.end <= range.end);
                assert_eq!(segment.end.0 - segment.start.0, sectors);
            }
        }
        for segment in &aligned {
            let track = map.track_of(segment.start).unwrap();
            let offset = segment.start.0 - track.first_lbn.0;
            assert!(offset.is_multiple_of(sectors), "{segment:?} in {track:?}");
            assert!(offset == 0 || segment.end <= track.end());
        }
    }
}

/// Does every write begin and end at a grain boundary, so that no two writes share a physical
/// sector?
#[test]
fn writes_share_no_grain() {
    struct Grains(Device);
    impl Perform for Grains {
        fn perform(&mut self, op: traxtent_layout::log::LogOp) -> Vec<u8> {
            if let traxtent_layout::log::LogOp::Write { lbn, data } = &op {
                assert!(lbn.0.is_multiple_of(4) && data.len().is_multiple_of(2048));
            }
            self.0.perform(op)
        }
    }
    let map = map_of(100);
    let shape = LogShape {
        sector_bytes: 512,
        block_sectors: 4,
        grain_sectors: 4,
    };
    let config = LogConfig {
        blocks: 40,
        shape,
        ..LogConfig::default()
    };
    let mut log = Log::format(&map, lbns(&map), &config).unwrap();
    let mut device = Grains(Device::new(map.end()));
    for block in (0..40).cycle().take(400) {
        super::model::drain(&mut log, &mut device);
        log.write(block, &[1; 2048]).unwrap();
        super::model::drain(&mut log, &mut device);
        if block % 3 == 0 {
            log.sync().unwrap();
        }
    }
}

/// Is each invalid configuration, range, block or call refused with an error that names the fault?
#[test]
fn refused() {
    let map = map_of(250);
    let error = |change: fn(&mut LogConfig)| {
        let mut config = LogConfig {
            blocks: 20,
            ..LogConfig::default()
        };
        change(&mut config);
        Log::format(&map, lbns(&map), &config)
            .unwrap_err()
            .to_string()
    };
    let most = LogConfig::default().most_blocks(&map, lbns(&map)).unwrap();
    assert_eq!(
        error(|config| config.blocks = 0),
        format!("0 blocks requested: expected 1 to {most}; cleaning needs the remaining space")
    );
    assert_eq!(
        error(|config| config.blocks = 1 << 60),
        format!(
            "{} blocks requested: expected 1 to {most}; cleaning needs the remaining space",
            1u64 << 60
        )
    );
    assert_eq!(
        error(|config| config.shape.sector_bytes = 520),
        "sector_bytes is 520: expected a power of two from 512 to 65536"
    );
    assert_eq!(
        error(|config| config.shape.block_sectors = 0),
        "block_sectors is 0: expected a multiple of grain_sectors, at most 16 MiB in bytes"
    );
    assert_eq!(
        error(|config| config.shape.grain_sectors = 0),
        "grain_sectors is 0: expected at least 1"
    );
    assert_eq!(
        error(|config| config.sizing = SegmentSizing::Fixed(Sectors(0))),
        "segment size is 0: expected at least 1 sector"
    );
    let end = map.end();
    let beyond = Log::format(&map, Lbn(0)..Lbn(end.0 + 1), &LogConfig::default());
    assert_eq!(
        beyond.unwrap_err().to_string(),
        format!(
            "LBNs 0..{} are not within the map, which covers 0..{end}",
            end.0 + 1
        )
    );
    let empty = Log::format(&map, Lbn(8)..Lbn(8), &LogConfig::default());
    assert_eq!(
        empty.unwrap_err().to_string(),
        "the range of LBNs 8..8 is empty"
    );

    let config = LogConfig {
        blocks: most,
        ..LogConfig::default()
    };
    let mut log = Log::format(&map, lbns(&map), &config).unwrap();
    super::model::drain(&mut log, &mut Device::new(end));
    let error = log.write(most, &[0; 4096]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("block {most} does not exist; the log has {most} blocks")
    );
    let error = log.write(0, &[0; 512]).unwrap_err();
    assert_eq!(error.to_string(), "got 512 bytes, expected 4096");
    assert_eq!(
        log.complete(Vec::new()).unwrap_err().to_string(),
        "no operation is outstanding"
    );
}
