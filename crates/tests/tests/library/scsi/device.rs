//! The model drive as a SCSI device, accessed by command bytes.

use traxtent_model::drive::Drive;
use traxtent_model::geometry::{Geometry, GeometrySpec, MovedSpec, Occupant, Place, Sparing};
use traxtent_model::profile::{Profile, ReadAheadUntil};
use traxtent_scsi::diagnostic::{TranslateRequest, Translation};
use traxtent_scsi::mode::{CachingPage, GeometryPage, ModeData, pages};
use traxtent_scsi::{
    AdditionalSense, Address, AddressFormat, CommandResponse, Compliance, DefectList, DefectWidth,
    DeviceServer, Faults, FieldPointer, ModeWidth, Payload, Sense, SenseKey, Status,
};
use traxtent_units::request::Op;
use traxtent_units::{Cylinder, Lbn, SimTime, Span, Surface};

use super::hex;
use crate::drive::tiny::tiny_with;

struct Device {
    server: DeviceServer,
    now: SimTime,
}

impl Device {
    fn new(profile: &Profile) -> Device {
        Device {
            server: DeviceServer::new(Drive::new(profile).unwrap()),
            now: SimTime::ZERO,
        }
    }

    /// Sends a command once the previous one is complete. Returns the response and the time that
    /// the command took.
    fn send(&mut self, command: &str, data: &[u8]) -> (CommandResponse, Span) {
        let sent = self.now;
        let response = self.server.execute(sent, &hex(command), data);
        self.now = response.completed;
        let took = response.completed.since(sent);
        (response, took)
    }

    /// Returns the data of a command that must succeed.
    #[track_caller]
    fn bytes(&mut self, command: &str, data: &[u8]) -> Vec<u8> {
        let (response, _) = self.send(command, data);
        assert_eq!(
            response.status,
            Status::Good,
            "{command}: {:02x?}",
            response.sense
        );
        match response.data {
            Payload::Bytes(bytes) => bytes,
            Payload::Zeros(n) => vec![0; n as usize],
        }
    }

    /// Returns the time of a command that must succeed, in milliseconds.
    #[track_caller]
    fn ms(&mut self, command: &str) -> f64 {
        let (response, took) = self.send(command, &[]);
        assert_eq!(
            response.status,
            Status::Good,
            "{command}: {:02x?}",
            response.sense
        );
        took.as_ms()
    }

    #[track_caller]
    fn sense(&mut self, command: &str, data: &[u8]) -> Sense {
        let (response, _) = self.send(command, data);
        assert_eq!(response.status, Status::CheckCondition, "{command}");
        Sense::decode(&response.sense).unwrap()
    }

    fn caching(&mut self) -> CachingPage {
        let bytes = self.bytes("5a 08 08 00 00 00 00 00 fc 00", &[]);
        let data = ModeData::decode(ModeWidth::Ten, &bytes).unwrap();
        CachingPage::decode(pages(data.pages).next().unwrap().bytes)
    }

    /// Changes the caching page by MODE SELECT(10).
    fn select(&mut self, page: CachingPage, save: bool) {
        let page = page.encode();
        let data = ModeData {
            pages: &page,
            ..ModeData::default()
        };
        let sent = data.encode_select(ModeWidth::Ten);
        let command = format!(
            "55 1{} 00 00 00 00 00 00 {:02x} 00",
            u8::from(save),
            sent.len()
        );
        self.bytes(&command, &sent);
    }
}

fn reads_ahead() -> Profile {
    tiny_with(|profile| profile.cache.read_ahead.until = ReadAheadUntil::SegmentEnd)
}

fn illegal(code: AdditionalSense, in_command: bool, byte: u16) -> Sense {
    Sense {
        field: Some(FieldPointer { in_command, byte }),
        ..Sense::new(SenseKey::IllegalRequest, code)
    }
}

/// Are unsupported commands, invalid fields, LBNs beyond the end and incomplete data refused with
/// the sense data that the standard specifies?
#[test]
fn refusals() {
    let mut device = Device::new(&tiny_with(|_| {}));
    let (response, took) = device.send("42 00 00 00 00 00 00 00 58 00", &[]);
    assert_eq!(response.status, Status::CheckCondition);
    assert_eq!(took, Span::ZERO);
    assert_eq!(
        response.sense,
        hex("70 00 05 00 00 00 00 0a 00 00 00 00 20 00 00 00 00 00")
    );
    let in_command = AdditionalSense::INVALID_FIELD_IN_COMMAND;
    let in_data = AdditionalSense::INVALID_FIELD_IN_DATA;
    let range = Sense::new(SenseKey::IllegalRequest, AdditionalSense::LBN_OUT_OF_RANGE);
    let length = Sense::new(
        SenseKey::IllegalRequest,
        AdditionalSense::PARAMETER_LIST_LENGTH_ERROR,
    );
    let cases = [
        // A vital product data page, a mode page and a diagnostic page that do not exist.
        ("12 01 89 00 fc 00", "", illegal(in_command, true, 2)),
        ("1a 08 0a 00 fc 00", "", illegal(in_command, true, 2)),
        (
            "1d 10 00 00 04 00",
            "3f 00 00 00",
            illegal(in_data, false, 0),
        ),
        // No translation has been requested.
        ("1c 00 00 00 fc 00", "", illegal(in_command, true, 2)),
        // Protection information, and data to compare with.
        (
            "28 20 00 00 00 00 00 00 01 00",
            "",
            illegal(in_command, true, 1),
        ),
        (
            "2f 02 00 00 00 00 00 00 01 00",
            "",
            illegal(in_command, true, 1),
        ),
        // The drive has 2000 sectors (7d0h).
        ("28 00 00 00 07 d0 00 00 01 00", "", range),
        ("2f 00 00 00 07 cf 00 00 02 00", "", range),
        ("88 00 ff ff ff ff ff ff ff ff ff ff ff ff 00 00", "", range),
        // Less data than announced.
        ("2a 00 00 00 00 00 00 00 01 00", "00 00", length),
        ("1d 10 00 00 0e 00", "40 00", length),
        // A translation from LBN to LBN; an LBN and a cylinder that do not exist.
        (
            "1d 10 00 00 0e 00",
            "40 00 00 0a 00 03 00 00 00 00 00 00 00 00",
            illegal(in_data, false, 6),
        ),
        (
            "1d 10 00 00 0e 00",
            "40 00 00 0a 00 05 00 00 07 d0 00 00 00 00",
            illegal(in_data, false, 6),
        ),
        (
            "1d 10 00 00 0e 00",
            "40 00 00 0a 05 00 00 00 0a 00 00 00 00 00",
            illegal(in_data, false, 6),
        ),
        // An unknown address format.
        (
            "1d 10 00 00 0e 00",
            "40 00 00 0a 00 04 00 00 00 00 00 00 00 00",
            illegal(in_data, false, 5),
        ),
    ];
    for (command, data, expected) in cases {
        assert_eq!(
            device.sense(command, &hex(data)),
            expected,
            "{command} {data}"
        );
    }
    // A command for no sectors does nothing, even at the end of the drive.
    assert_eq!(device.ms("28 00 00 00 07 d0 00 00 00 00"), 0.0);
}

/// Does a drive without address translation and defect lists refuse requests for them?
#[test]
fn drives_that_report_neither_translation_nor_defects() {
    let mut device = Device::new(&tiny_with(|profile| {
        profile.scsi.translates = false;
        profile.scsi.defect_lists = false;
    }));
    assert_eq!(
        device.bytes("1c 01 00 00 fc 00", &[]),
        hex("00 00 00 01 00")
    );
    let request = hex("40 00 00 0a 00 05 00 00 00 00 00 00 00 00");
    assert_eq!(
        device.sense("1d 10 00 00 0e 00", &request),
        illegal(AdditionalSense::INVALID_FIELD_IN_DATA, false, 0)
    );
    let unknown = Sense::new(SenseKey::IllegalRequest, AdditionalSense::INVALID_OPERATION);
    assert_eq!(device.sense("37 00 15 00 00 00 00 10 00 00", &[]), unknown);
    let mut device = Device::new(&tiny_with(|_| {}));
    assert_eq!(
        device.bytes("1c 01 00 00 fc 00", &[]),
        hex("00 00 00 02 00 40")
    );
}

/// Does an unreadable sector end the command with a medium error that names it, after the time that
/// the access takes, in a sense format that has room for the LBN?
#[test]
fn medium_errors() {
    let faults = |lbns: &[u64]| Faults {
        unreadable: lbns.iter().map(|&lbn| Lbn(lbn)).collect(),
        ..Faults::default()
    };
    let medium = |code, lbn| Sense {
        information: Some(lbn),
        ..Sense::new(SenseKey::Medium, code)
    };
    let mut device = Device::new(&tiny_with(|_| {}));
    let good = device.ms("2f 00 00 00 00 0a 00 00 05 00");
    let mut device = Device::new(&tiny_with(|_| {}));
    device.server = device.server.with_faults(faults(&[3, 12, 13]));
    let (response, took) = device.send("2f 00 00 00 00 0a 00 00 05 00", &[]);
    assert_eq!(
        (response.status, took.as_ms()),
        (Status::CheckCondition, good)
    );
    assert_eq!(
        response.sense,
        hex("f0 00 03 00 00 00 0c 0a 00 00 00 00 11 00 00 00 00 00")
    );
    let read_error = AdditionalSense::UNRECOVERED_READ_ERROR;
    assert_eq!(
        device.sense("28 00 00 00 00 00 00 00 0d 00", &[]),
        medium(read_error, 3)
    );
    assert_eq!(
        device.sense("2a 00 00 00 00 0d 00 00 01 00", &[0; 512]),
        medium(AdditionalSense::WRITE_ERROR, 13)
    );
    device.ms("2f 00 00 00 00 04 00 00 08 00");
    // A drive that ignores VERIFY does not find the sector.
    device.server = device.server.with_faults(Faults {
        verify: Compliance::Ignores,
        ..faults(&[3])
    });
    assert_eq!(device.ms("2f 00 00 00 00 00 00 00 0d 00"), 0.1);

    // Beyond 32 bits.
    let large = traxtent_model::profile::builtin("generic-20tb").unwrap();
    let mut device = Device::new(&large);
    let last = device.server.drive().geometry().capacity().0 - 1;
    assert!(last > u64::from(u32::MAX));
    device.server = device.server.with_faults(faults(&[last]));
    let lbn = last
        .to_be_bytes()
        .map(|byte| format!("{byte:02x}"))
        .join(" ");
    let sense = device.sense(&format!("8f 00 {lbn} 00 00 00 01 00 00"), &[]);
    assert_eq!(sense, medium(read_error, last));
}

/// Do the mode pages report the drive's cylinders, heads and rotation rate, in both widths?
#[test]
fn geometry_is_reported() {
    let mut device = Device::new(&tiny_with(|_| {}));
    for (width, command) in [
        (ModeWidth::Six, "1a 00 04 00 fc 00"),
        (ModeWidth::Ten, "5a 00 04 00 00 00 00 00 fc 00"),
    ] {
        let bytes = device.bytes(command, &[]);
        let data = ModeData::decode(width, &bytes).unwrap();
        assert_eq!(data.blocks.unwrap().sectors, 2000);
        let page = pages(data.pages).next().unwrap();
        let expected = GeometryPage {
            cylinders: 10,
            heads: 2,
            rpm: 6000,
        };
        assert_eq!(GeometryPage::decode(page.bytes), expected);
    }
    let all = device.bytes("1a 08 3f 00 ff 00", &[]);
    let data = ModeData::decode(ModeWidth::Six, &all).unwrap();
    let codes: Vec<_> = pages(data.pages).map(|page| page.code).collect();
    assert_eq!(codes, [3, 4, 8]);
    // A host with a short allocation length receives the beginning.
    assert_eq!(device.bytes("1a 08 3f 00 05 00", &[]), all[..5]);
}

/// Are repeated reads served from the buffer with RCD = 0, and do they take exactly one revolution
/// with RCD = 1? A revolution of the drive takes 10 ms.
#[test]
fn rcd_switches_read_hits() {
    let read = "28 00 00 00 00 00 00 00 01 00";
    let mut device = Device::new(&tiny_with(|_| {}));
    device.ms(read);
    assert_eq!(device.ms(read), 0.01);
    let found = device.caching();
    let off = CachingPage {
        read_cache_disabled: true,
        ..found
    };
    device.select(off, false);
    device.ms(read);
    assert_eq!((device.ms(read), device.ms(read)), (10.0, 10.0));
    assert_eq!(device.caching(), off);
    device.select(found, false);
    device.ms(read);
    assert_eq!(device.ms(read), 0.01);
}

/// Does the buffer serve the sector after a read with read-ahead on, and the media with any of
/// DRA = 1, DPTL = 0 or a DPTL below the length of the read?
#[test]
fn dra_and_dptl_switch_read_ahead() {
    let two = "28 00 00 00 00 00 00 00 02 00";
    let next = "28 00 00 00 00 02 00 00 01 00";
    let served_ahead = |change: &dyn Fn(&mut CachingPage)| {
        let mut device = Device::new(&reads_ahead());
        let mut page = device.caching();
        assert!(!page.read_ahead_disabled);
        change(&mut page);
        device.select(page, false);
        device.ms(two);
        // Long enough for the next sector to pass.
        device.now += Span::from_ms(3.0);
        let ms = device.ms(next);
        assert!(ms == 0.01 || ms > 1.0, "{ms} ms");
        ms == 0.01
    };
    assert!(served_ahead(&|_| {}));
    assert!(!served_ahead(&|page| page.read_ahead_disabled = true));
    assert!(!served_ahead(&|page| page.prefetch_up_to = 0));
    assert!(!served_ahead(&|page| page.prefetch_up_to = 1));
    assert!(served_ahead(&|page| page.prefetch_up_to = 2));
}

/// Does read-ahead in progress end when DRA forbids it?
#[test]
fn read_ahead_ends_at_once() {
    let mut device = Device::new(&reads_ahead());
    device.ms("28 00 00 00 00 00 00 00 02 00");
    device.now += Span::from_ms(0.55);
    let found = device.caching();
    device.select(
        CachingPage {
            read_ahead_disabled: true,
            ..found
        },
        false,
    );
    device.now += Span::from_ms(20.0);
    // Five sectors, LBNs 2 to 6, had passed when DRA was set.
    assert_eq!(device.ms("28 00 00 00 00 06 00 00 01 00"), 0.01);
    assert!(device.ms("28 00 00 00 00 0a 00 00 01 00") > 0.1);
}

/// Is a write complete in the buffer with WCE = 1, and on the media with WCE = 0?
#[test]
fn wce_switches_write_back() {
    let write = |write_cache| {
        let mut device = Device::new(&tiny_with(|_| {}));
        let found = device.caching();
        assert!(!found.write_cache);
        device.select(
            CachingPage {
                write_cache,
                ..found
            },
            false,
        );
        let (response, took) = device.send("2a 00 00 00 00 32 00 00 01 00", &[0; 512]);
        assert_eq!(response.status, Status::Good);
        // SYNCHRONIZE CACHE waits for the media.
        (
            took.as_ms(),
            took.as_ms() + device.ms("35 00 00 00 00 00 00 00 00 00"),
        )
    };
    let (cached, flushed) = write(true);
    let (through, nothing_left) = write(false);
    assert_eq!((cached, flushed), (0.01, through));
    assert_eq!(nothing_left, through);
    assert!(through > 5.0, "{through}");
}

/// Are current, changeable, default and saved values kept separately, and does SP determine whether
/// values are saved?
#[test]
fn values_of_mode_pages() {
    let mut device = Device::new(&tiny_with(|_| {}));
    let values = |device: &mut Device, control: &str| {
        let bytes = device.bytes(&format!("1a 08 {control} 00 fc 00"), &[]);
        bytes[4..].to_vec()
    };
    let found = values(&mut device, "08");
    assert_eq!(values(&mut device, "88"), found);
    assert_eq!(
        values(&mut device, "48"),
        hex("88 12 05 00 ff ff 00 00 00 00 00 00 20 00 00 00 00 00 00 00")
    );
    let off = CachingPage {
        read_cache_disabled: true,
        ..device.caching()
    };
    device.select(off, false);
    assert_eq!(values(&mut device, "08"), off.encode());
    assert_eq!(values(&mut device, "c8"), found);
    device.select(off, true);
    assert_eq!(values(&mut device, "c8"), off.encode());
    assert_eq!(values(&mut device, "88"), found);
}

/// Does MODE SELECT refuse values that cannot be changed, and then change nothing?
#[test]
fn mode_select_takes_all_or_nothing() {
    let mut device = Device::new(&tiny_with(|_| {}));
    let found = device.caching();
    let off = CachingPage {
        read_cache_disabled: true,
        ..found
    }
    .encode();
    let geometry = device.bytes("1a 08 04 00 fc 00", &[])[4..].to_vec();
    let mut other = geometry.clone();
    other[5] += 1;
    let mut segments = off.clone();
    segments[13] ^= 1;
    let select = |pages: &[&[u8]]| [&[0; 4][..], &pages.concat()].concat();
    let in_data = |byte| illegal(AdditionalSense::INVALID_FIELD_IN_DATA, false, byte);
    let length = Sense::new(
        SenseKey::IllegalRequest,
        AdditionalSense::PARAMETER_LIST_LENGTH_ERROR,
    );
    for (data, expected) in [
        (select(&[&off, &other]), in_data(4 + 20 + 5)),
        (select(&[&segments]), in_data(4 + 13)),
        (select(&[&off, &hex("0a 01 00")]), in_data(4 + 20)),
        (select(&[&hex("08 01 00")]), in_data(4 + 1)),
        (select(&[&off[..19]]), length),
        // A block descriptor with another sector size.
        (
            [&hex("00 00 00 08 00 00 00 00 00 00 10 00")[..], &off].concat(),
            in_data(4),
        ),
    ] {
        let command = format!("15 10 00 00 {:02x} 00", data.len());
        assert_eq!(device.sense(&command, &data), expected, "{data:02x?}");
        assert_eq!(device.caching(), found);
    }
    // An unchanged geometry page and an unchanged descriptor are accepted.
    let good = [
        &hex("00 00 00 08 00 00 07 d0 00 00 02 00")[..],
        &geometry,
        &off,
    ]
    .concat();
    device.bytes(&format!("15 10 00 00 {:02x} 00", good.len()), &good);
    assert!(device.caching().read_cache_disabled);
}

/// Returns a drive with a slipped sector, one remapped on its track and one remapped to another
/// track.
fn damaged() -> Profile {
    tiny_with(|profile| {
        let moved = |lbn, cylinder, slot| MovedSpec {
            lbn,
            sectors: 1,
            cylinder,
            surface: 0,
            slot,
            slots: None,
        };
        let spec: &mut GeometrySpec = &mut profile.geometry;
        spec.sparing = Sparing::SectorsPerTrack;
        spec.zones[0].spares = 2;
        spec.zones[0].slips = vec![150];
        spec.moved = vec![moved(5, 0, 99), moved(7, 3, 98)];
    })
}

fn translate(device: &mut Device, request: TranslateRequest) -> Translation {
    let page = request.encode().unwrap();
    let before = device.now;
    device.bytes("1d 10 00 00 0e 00", &page);
    assert_eq!(device.now.since(before), Span::from_ms(2.0));
    Translation::decode(&device.bytes("1c 00 00 00 fc 00", &[])).unwrap()
}

/// Is every LBN translated to its place and back, with both LBN widths and the bits of remapped
/// sectors, and is every place without an LBN on the first track reported as reserved?
#[test]
fn every_address_translates() {
    let profile = damaged();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    let mut device = Device::new(&profile);
    for lbn in (0..geometry.capacity().0).map(Lbn) {
        let form = if lbn.0 % 2 == 0 {
            AddressFormat::ShortBlock
        } else {
            AddressFormat::LongBlock
        };
        let there = TranslateRequest {
            supplied: form,
            wanted: AddressFormat::PhysicalSector,
            address: Address::Block(lbn),
        };
        let response = translate(&mut device, there);
        let place = geometry.locate(lbn).unwrap();
        assert_eq!(response.addresses, [Address::Sector(place)], "{lbn}");
        let bits = (response.alternate_sector, response.alternate_track);
        let expected = match lbn.0 {
            5 => (true, false),
            7 => (true, true),
            _ => (false, false),
        };
        assert_eq!(bits, expected, "{lbn}");
        let back = TranslateRequest {
            supplied: AddressFormat::PhysicalSector,
            wanted: form,
            address: Address::Sector(place),
        };
        let response = translate(&mut device, back);
        assert_eq!(response.addresses, [Address::Block(lbn)]);
        assert!(!response.reserved_area);
    }
    let mut reserved = 0;
    for slot in 0..100 {
        let place = Place {
            cylinder: Cylinder(0),
            surface: Surface(0),
            slot,
        };
        if let Occupant::Bad | Occupant::Empty = geometry.lbn_at(place) {
            let request = TranslateRequest {
                supplied: AddressFormat::PhysicalSector,
                wanted: AddressFormat::ShortBlock,
                address: Address::Sector(place),
            };
            let response = translate(&mut device, request);
            assert!(
                response.reserved_area && response.addresses.is_empty(),
                "{place}"
            );
            reserved += 1;
        }
    }
    // Two bad slots, and the remaining spare.
    assert_eq!(reserved, 3);
}

/// Are slipped sectors in the primary list and remapped ones in the grown list, with both command
/// widths, from any descriptor index, and in the drive's own format if another is requested?
#[test]
fn defects_are_listed() {
    let profile = damaged();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    let all: Vec<_> = geometry
        .defects()
        .map(|defect| Address::Sector(defect.place))
        .collect();
    assert_eq!(all.len(), 3);
    let mut device = Device::new(&profile);
    let mut list = |command: &str, width| {
        let bytes = device.bytes(command, &[]);
        DefectList::decode(width, &bytes).unwrap()
    };
    let (ten, twelve) = (DefectWidth::Ten, DefectWidth::Twelve);
    let primary = list("37 00 15 00 00 00 00 10 00 00", ten);
    assert!(primary.primary && !primary.grown);
    assert_eq!(primary.addresses, all[..1]);
    let grown = list("b7 0d 00 00 00 00 00 00 10 00 00 00", twelve);
    assert!(grown.grown && !grown.primary);
    assert_eq!(grown.addresses, all[1..]);
    assert_eq!(
        list("b7 1d 00 00 00 00 00 00 10 00 00 00", twelve).addresses,
        all
    );
    let rest = list("b7 1d 00 00 00 02 00 00 10 00 00 00", twelve);
    assert_eq!((rest.addresses, rest.length), (all[2..].to_vec(), 8));
    // The header gives the length. It is the only content if no list is requested.
    let head = list("37 00 1d 00 00 00 00 00 04 00", ten);
    assert_eq!((head.length, head.addresses.len()), (24, 0));
    assert_eq!(list("37 00 05 00 00 00 00 10 00 00", ten).length, 0);

    let (response, _) = device.send("37 00 18 00 00 00 00 10 00 00", &[]);
    let remark = Sense::new(SenseKey::Recovered, AdditionalSense::DEFECT_LIST_NOT_FOUND);
    assert_eq!(Sense::decode(&response.sense).unwrap(), remark);
    let Payload::Bytes(bytes) = response.data else {
        panic!("a payload of zeros instead of a list");
    };
    let list = DefectList::decode(DefectWidth::Ten, &bytes).unwrap();
    assert_eq!(
        (list.format, list.addresses),
        (AddressFormat::PhysicalSector, all)
    );
}

/// Does a drive that lacks a kind of request refuse it as an unknown command?
#[test]
fn unsupported_requests() {
    let mut device = Device::new(&tiny_with(|_| {}));
    device.server = device.server.with_faults(Faults {
        unsupported: vec![Op::Verify],
        ..Faults::default()
    });
    assert_eq!(
        device.sense("2f 00 00 00 00 00 00 00 01 00", &[]),
        Sense::new(SenseKey::IllegalRequest, AdditionalSense::INVALID_OPERATION)
    );
    device.ms("28 00 00 00 00 00 00 00 01 00");
}
