//! Bytes published by others: sg3_utils' examples in its directory `inhex`, most of them captured
//! from Linux's scsi_debug, and layouts printed in manuals and standards. "The manual" is Seagate's
//! SCSI Commands Reference Manual, Rev. J.

use traxtent_model::geometry::Place;
use traxtent_scsi::diagnostic::{TranslateRequest, Translation};
use traxtent_scsi::inquiry::{
    BlockLimits, Characteristics, Designator, Inquiry, Rotation, VitalPage, Zoned,
};
use traxtent_scsi::mode::{
    BlockDescriptor, CachingPage, FormatPage, GeometryPage, ModeData, pages,
};
use traxtent_scsi::{
    AdditionalSense, Address, AddressFormat, BlockOp, Blocks, Capacity, Command, Compare,
    DefectList, DefectWidth, ModeSense, ModeWidth, PageValues, ReadDefectData, Sense, SenseFormat,
    SenseKey, Width,
};
use traxtent_units::{Cylinder, Lbn, Surface};

use super::hex;

/// Is scsi_debug's standard INQUIRY data decoded correctly (`inq_standard.hex`)?
#[test]
fn standard_inquiry() {
    let bytes = hex("00 00 07 02 5b 00 10 0a  4c 69 6e 75 78 20 20 20
         73 63 73 69 5f 64 65 62  75 67 20 20 20 20 20 20
         30 31 39 31 32 30 32 31  30 35 32 30 00 00 00 00");
    let inquiry = Inquiry::decode(&bytes).unwrap();
    let expected = Inquiry {
        device_type: 0,
        connected: true,
        removable: false,
        version: 7,
        queueing: true,
        vendor: "Linux".into(),
        product: "scsi_debug".into(),
        revision: "0191".into(),
    };
    assert_eq!(inquiry, expected);
}

/// Are scsi_debug's vital product data pages decoded correctly (`vpd_sdeb.hex`)?
#[test]
fn vital_product_data() {
    let decode = |text: &str| VitalPage::decode(&hex(text)).unwrap();
    assert_eq!(
        decode("00 00 00 0c 00 80 83 84 85 86 87 88 89 b0 b1 b2"),
        VitalPage::Supported(hex("00 80 83 84 85 86 87 88 89 b0 b1 b2")),
    );
    assert_eq!(
        decode("00 80 00 04 32 30 30 30"),
        VitalPage::Serial("2000".into()),
    );
    assert_eq!(
        decode("00 b0 00 3c 00 00 00 01 00 00 40 00 00 00 04 00"),
        VitalPage::BlockLimits(BlockLimits {
            granularity: 1,
            longest: 0x4000,
            optimal: 0x400,
        }),
    );
    assert_eq!(
        decode("00 b1 00 3c 00 01 00 05 00 00 00 00 00 00 00 00"),
        VitalPage::Characteristics(Characteristics {
            rotation: Rotation::None,
            form_factor: 5,
            zoned: Zoned::Unknown,
        }),
    );
}

/// Are the designators of a Seagate disk decoded (`vpd_dev_id.hex`), and is the first one encoded
/// to the same bytes? Some of the others have a protocol field, which is ignored.
#[test]
fn identification() {
    let bytes = hex("00 83 00 48 01 03 00 08  50 00 c5 00 30 11 cb 2b
         61 93 00 08 50 00 c5 00  30 11 cb 29 61 94 00 04
         00 00 00 01 61 a3 00 08  50 00 c5 00 30 11 cb 28
         03 28 00 18 6e 61 61 2e  35 30 30 30 43 35 30 30
         33 30 31 31 43 42 32 38  00 00 00 00");
    let VitalPage::Identification(names) = VitalPage::decode(&bytes).unwrap() else {
        panic!("no page 83h");
    };
    let kinds: Vec<_> = names
        .iter()
        .map(|name| (name.code_set, name.association, name.kind))
        .collect();
    assert_eq!(
        kinds,
        [(1, 0, 3), (1, 1, 3), (1, 1, 4), (1, 2, 3), (3, 2, 8)]
    );
    assert_eq!(names[0].name, hex("50 00 c5 00 30 11 cb 2b"));
    assert!(names[4].name.starts_with(b"naa.5000C5003011CB28"));
    let first = VitalPage::Identification(names[..1].to_vec()).encode();
    assert_eq!(first[4..], bytes[4..16]);
    // A truncated designator is omitted, and the others are kept.
    let cut: Vec<Designator> = match VitalPage::decode(&bytes[..60]).unwrap() {
        VitalPage::Identification(names) => names,
        other => panic!("{other:?}"),
    };
    assert_eq!(cut, names[..4]);
}

/// Are scsi_debug's mode pages decoded correctly (`modes_sdeb.hex`)?
#[test]
fn mode_pages() {
    let bytes = hex("00 ee 00 10 00 00 00 08  00 80 00 00 00 00 02 00
         01 0a c0 0b f0 00 00 00  05 00 ff ff
         02 0e 80 80 00 0a 00 00  00 00 00 00 00 00 00 00
         03 16 00 00 00 00 00 00  00 00 00 3f 02 00 00 00
         00 00 00 00 40 00 00 00
         08 12 14 00 ff ff 00 00  ff ff ff ff 80 14 00 00
         00 00 00 00
         0a 0a 02 00 00 80 00 00  00 00 02 4b
         59 02 00 0c 00 06 10 00  00 00 00 00 00 00 00 00");
    let data = ModeData::decode(ModeWidth::Ten, &bytes).unwrap();
    assert!(data.dpo_fua && !data.write_protected);
    let blocks = BlockDescriptor {
        sectors: 0x80_0000,
        bytes: 512,
        long: false,
    };
    assert_eq!(data.blocks, Some(blocks));
    let found: Vec<_> = pages(data.pages).collect();
    let codes: Vec<_> = found.iter().map(|page| (page.code, page.subpage)).collect();
    assert_eq!(codes, [(1, 0), (2, 0), (3, 0), (8, 0), (10, 0), (25, 2)]);
    let format = FormatPage::decode(found[2].bytes);
    assert_eq!(
        (format.sectors_per_track, format.bytes_per_sector),
        (63, 512)
    );
    let caching = CachingPage::decode(found[3].bytes);
    let expected = CachingPage {
        write_cache: true,
        read_cache_disabled: false,
        read_ahead_disabled: false,
        prefetch_up_to: 0xffff,
        maximum_prefetch: 0xffff,
        segments: 0x14,
    };
    assert_eq!(caching, expected);
}

/// Does a change of the caching page change its own bits and nothing else (scsi_debug's page; bits
/// as in the manual, table 372)?
#[test]
fn caching_page_changes_in_place() {
    let mut page = hex("88 12 14 00 ff ff 00 00  ff ff ff ff 80 14 00 00  00 00 00 00");
    let off = CachingPage {
        read_cache_disabled: true,
        read_ahead_disabled: true,
        prefetch_up_to: 0,
        ..CachingPage::decode(&page)
    };
    off.apply(&mut page);
    assert_eq!(
        page,
        hex("88 12 15 00 00 00 00 00  ff ff ff ff a0 14 00 00  00 00 00 00")
    );
    // A SCSI-2 page ends before the DRA bit, which disables read-ahead.
    let mut short = hex("88 0a 04 00 ff ff 00 00 00 80 00 80");
    off.apply(&mut short);
    assert_eq!(short[..6], hex("88 0a 05 00 00 00"));
    assert_eq!(short.len(), 12);
}

/// Is the geometry of a Conner CFP2107 decoded from its page (product manual, table 6-2, current
/// values of cylinders, heads and rate)?
#[test]
fn geometry_page() {
    let page = hex("04 16 00 0f 9f 0a 00 06 00 00 00 00 00 00 00 00 00 00 00 00 1c 20 00 00");
    let expected = GeometryPage {
        cylinders: 3999,
        heads: 10,
        rpm: 7200,
    };
    assert_eq!(GeometryPage::decode(&page), expected);
}

/// Are examples of sense data decoded correctly (`fixed_sense.hex`, `descriptor_sense.hex`), and
/// encoded to the bytes of the manual page of sg_decode_sense?
#[test]
fn sense_data() {
    let unrecovered = Sense {
        information: Some(0x1234),
        ..Sense::new(SenseKey::Medium, AdditionalSense::UNRECOVERED_READ_ERROR)
    };
    let bytes = hex("f0 00 03 00 00 12 34 0a  00 00 00 00 11 00 77 80  01 98");
    assert_eq!(Sense::decode(&bytes).unwrap(), unrecovered);
    let plain = hex("f0 00 03 00 00 12 34 0a  00 00 00 00 11 00 00 00  00 00");
    assert_eq!(unrecovered.encode(SenseFormat::Fixed), plain);

    let bytes = hex("72 01 03 02 80 00 00 4c
         00 0a 80 00 11 22 33 44 55 66 77 bb
         01 0a 00 00 33 44 55 66 77 bb cc ff
         02 06 00 00 80 01 01 00
         03 02 00 45
         0a 06 02 01 02 00 32 01
         05 02 00 20
         0b 1a 01 00
         00 00 00 01 01 02 03 04 05 06 07 08
         01 02 03 04 55 06 07 08
         02 00 12 34");
    let sense = Sense::decode(&bytes).unwrap();
    assert_eq!(sense.key, SenseKey::Recovered);
    assert_eq!(sense.code, AdditionalSense::new(3, 2));
    assert_eq!(sense.information, Some(0x1122_3344_5566_77bb));
    // The bytes that depend on the sense key count retries here. With another key, they would point
    // at a field.
    assert_eq!(sense.field, None);
}

/// Are commands encoded as in the tables of the standards and manuals, and decoded from these
/// bytes?
#[test]
fn commands() {
    let blocks = |op, width, lbn, sectors, dpo, fua| {
        Command::Blocks(Blocks {
            op,
            width,
            lbn,
            sectors,
            dpo,
            fua,
        })
    };
    let verify = BlockOp::Verify(Compare::Nothing);
    let mode_sense = |width, values| {
        Command::ModeSense(ModeSense {
            width,
            page: 8,
            subpage: 0,
            values,
            no_block_descriptor: true,
            allocation: 0xfc,
        })
    };
    let defects = |width, index| {
        Command::ReadDefectData(ReadDefectData {
            width,
            primary: true,
            grown: false,
            format: AddressFormat::PhysicalSector,
            index,
            allocation: 0x1234,
        })
    };
    let cases = [
        (Command::TestUnitReady, "00 00 00 00 00 00"),
        (
            Command::RequestSense {
                descriptors: true,
                allocation: 0xfc,
            },
            "03 01 00 00 fc 00",
        ),
        // sg_raw's manual page
        (
            Command::Inquiry {
                page: None,
                allocation: 96,
            },
            "12 00 00 00 60 00",
        ),
        (
            Command::Inquiry {
                page: Some(0xb1),
                allocation: 0x1fc,
            },
            "12 01 b1 01 fc 00",
        ),
        (Command::ReadCapacity10, "25 00 00 00 00 00 00 00 00 00"),
        (
            Command::ReadCapacity16 { allocation: 32 },
            "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00",
        ),
        (
            blocks(BlockOp::Read, Width::Ten, 0x1234_5678, 0x9a, true, true),
            "28 18 12 34 56 78 00 00 9a 00",
        ),
        (
            blocks(BlockOp::Write, Width::Ten, 8, 0xffff, false, true),
            "2a 08 00 00 00 08 00 ff ff 00",
        ),
        (
            blocks(verify, Width::Ten, 1, 1, true, false),
            "2f 10 00 00 00 01 00 00 01 00",
        ),
        (
            blocks(
                BlockOp::Verify(Compare::Each),
                Width::Ten,
                1,
                1,
                false,
                false,
            ),
            "2f 02 00 00 00 01 00 00 01 00",
        ),
        (
            blocks(
                BlockOp::Read,
                Width::Sixteen,
                0x1_2345_6789,
                0x1_0000,
                false,
                false,
            ),
            "88 00 00 00 00 01 23 45 67 89 00 01 00 00 00 00",
        ),
        (
            blocks(BlockOp::Write, Width::Sixteen, 7, 1, false, false),
            "8a 00 00 00 00 00 00 00 00 07 00 00 00 01 00 00",
        ),
        (
            blocks(
                BlockOp::Verify(Compare::WithOne),
                Width::Sixteen,
                7,
                1,
                false,
                false,
            ),
            "8f 06 00 00 00 00 00 00 00 07 00 00 00 01 00 00",
        ),
        (
            Command::SynchronizeCache {
                width: Width::Ten,
                lbn: 0,
                sectors: 0,
                immediate: true,
            },
            "35 02 00 00 00 00 00 00 00 00",
        ),
        (
            Command::SynchronizeCache {
                width: Width::Sixteen,
                lbn: 1,
                sectors: 2,
                immediate: false,
            },
            "91 00 00 00 00 00 00 00 00 01 00 00 00 02 00 00",
        ),
        (
            Command::SendDiagnostic {
                page_format: true,
                self_test: false,
                length: 14,
            },
            "1d 10 00 00 0e 00",
        ),
        (
            Command::ReceiveDiagnostic {
                page: Some(0x40),
                allocation: 14,
            },
            "1c 01 40 00 0e 00",
        ),
        // Tables 126 and 128 of the manual
        (
            defects(DefectWidth::Ten, 0),
            "37 00 15 00 00 00 00 12 34 00",
        ),
        (
            defects(DefectWidth::Twelve, 5),
            "b7 15 00 00 00 05 00 00 12 34 00 00",
        ),
        (
            mode_sense(ModeWidth::Six, PageValues::Changeable),
            "1a 08 48 00 fc 00",
        ),
        (
            mode_sense(ModeWidth::Ten, PageValues::Saved),
            "5a 08 c8 00 00 00 00 00 fc 00",
        ),
        (
            Command::ModeSelect {
                width: ModeWidth::Six,
                page_format: true,
                save: false,
                length: 24,
            },
            "15 10 00 00 18 00",
        ),
        (
            Command::ModeSelect {
                width: ModeWidth::Ten,
                page_format: true,
                save: true,
                length: 28,
            },
            "55 11 00 00 00 00 00 00 1c 00",
        ),
    ];
    for (command, bytes) in cases {
        assert_eq!(command.encode(), hex(bytes), "{command:?}");
        assert_eq!(Command::decode(&hex(bytes)), Ok(command), "{bytes}");
    }
}

fn sector(cylinder: u32, surface: u16, slot: u32) -> Address {
    Address::Sector(Place {
        cylinder: Cylinder(cylinder),
        surface: Surface(surface),
        slot,
    })
}

/// Is the translate address page laid out as in the manual (tables 257, 260, 45 and 50; LBNs as in
/// Fujitsu's manual of the MAU series: four bytes, then zeros)?
#[test]
fn translate_address() {
    let request = TranslateRequest {
        supplied: AddressFormat::ShortBlock,
        wanted: AddressFormat::PhysicalSector,
        address: Address::Block(Lbn(0x0102_0304)),
    };
    let bytes = hex("40 00 00 0a 00 05 01 02 03 04 00 00 00 00");
    assert_eq!(request.encode().unwrap(), bytes);
    let response = hex("40 00 00 12 00 45 00 20 08 02 00 00 01 4d 00 20 08 02 00 00 01 4e");
    let expected = Translation {
        supplied: AddressFormat::ShortBlock,
        translated: AddressFormat::PhysicalSector,
        reserved_area: false,
        alternate_sector: true,
        alternate_track: false,
        addresses: vec![sector(0x2008, 2, 333), sector(0x2008, 2, 334)],
    };
    assert_eq!(Translation::decode(&response).unwrap(), expected);
    assert_eq!(expected.encode().unwrap(), response);
    // Only RAREA, without an address.
    let reserved = Translation::decode(&hex("40 00 00 02 05 83")).unwrap();
    assert!(reserved.reserved_area && !reserved.alternate_sector && !reserved.alternate_track);
    assert_eq!(reserved.addresses, []);
}

/// Are defect lists laid out as in the manual (tables 127, 129, 45, 48 and 50)?
#[test]
fn defect_lists() {
    let ten = hex("00 15 00 10  00 00 01 02 00 00 00 03  12 34 56 07 00 00 00 08");
    let list = DefectList {
        primary: true,
        grown: false,
        format: AddressFormat::PhysicalSector,
        length: 16,
        addresses: vec![sector(1, 2, 3), sector(0x12_3456, 7, 8)],
    };
    assert_eq!(DefectList::decode(DefectWidth::Ten, &ten).unwrap(), list);
    assert_eq!(list.encode(DefectWidth::Ten).unwrap(), ten);
    let long = hex("00 0b 00 00 00 00 00 08  00 00 00 01 00 00 00 02");
    let list = DefectList::decode(DefectWidth::Twelve, &long).unwrap();
    assert!(list.grown && !list.primary);
    assert_eq!(list.addresses, [Address::Block(Lbn(0x1_0000_0002))]);
    let short = hex("00 08 00 00 00 00 00 08  00 00 00 01 00 00 00 02");
    let list = DefectList::decode(DefectWidth::Twelve, &short).unwrap();
    assert_eq!(
        list.addresses,
        [Address::Block(Lbn(1)), Address::Block(Lbn(2))]
    );
}

/// Is the capacity of a 512e drive of 4 TB decoded (SBC-4, READ CAPACITY(16) parameter data: the
/// exponent in the low half of byte 13, the alignment in 14 bits from byte 14)?
#[test]
fn capacity() {
    let bytes = hex(
        "00 00 00 01 d1 c0 be af  00 00 02 00 00 03 80 07  00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00",
    );
    let capacity = Capacity::decode_16(&bytes).unwrap();
    let expected = Capacity {
        last_lbn: 7_814_037_167,
        logical_bytes: 512,
        physical_exponent: 3,
        lowest_aligned: 7,
    };
    assert_eq!(capacity, expected);
    assert_eq!(capacity.physical_bytes(), 4096);
    assert_eq!(capacity.encode_10(), hex("ff ff ff ff 00 00 02 00"));
}
