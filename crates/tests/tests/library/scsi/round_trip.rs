//! Encoded values decode to themselves, and truncated commands are refused.

use proptest::prelude::*;
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
    DefectList, DefectWidth, FieldPointer, ModeSense, ModeWidth, PageValues, ReadDefectData, Sense,
    SenseFormat, SenseKey, Width,
};
use traxtent_units::{Cylinder, Lbn, Surface};

fn block_op() -> impl Strategy<Value = BlockOp> {
    prop::sample::select(vec![
        BlockOp::Read,
        BlockOp::Write,
        BlockOp::Verify(Compare::Nothing),
        BlockOp::Verify(Compare::Each),
        BlockOp::Verify(Compare::WithOne),
    ])
}

fn format() -> impl Strategy<Value = AddressFormat> {
    prop::sample::select(AddressFormat::ALL.to_vec())
}

/// An LBN and a count, and a width that can express them.
fn extent() -> impl Strategy<Value = (Width, u64, u32)> {
    prop_oneof![
        (any::<u32>(), any::<u16>()).prop_map(|(lbn, n)| (Width::Ten, lbn.into(), n.into())),
        (any::<u64>(), any::<u32>()).prop_map(|(lbn, n)| (Width::Sixteen, lbn, n)),
    ]
}

fn blocks() -> impl Strategy<Value = Command> {
    (block_op(), extent(), any::<bool>(), any::<bool>()).prop_map(
        |(op, (width, lbn, sectors), dpo, fua)| {
            Command::Blocks(Blocks {
                op,
                width,
                lbn,
                sectors,
                dpo,
                fua: fua && !matches!(op, BlockOp::Verify(_)),
            })
        },
    )
}

fn mode_sense() -> impl Strategy<Value = Command> {
    use PageValues::{Changeable, Current, Default, Saved};
    let width = prop_oneof![
        any::<u8>().prop_map(|n| (ModeWidth::Six, n.into())),
        any::<u16>().prop_map(|n| (ModeWidth::Ten, n)),
    ];
    let values = prop::sample::select(vec![Current, Changeable, Default, Saved]);
    (width, 0..0x40u8, any::<u8>(), values, any::<bool>()).prop_map(
        |((width, allocation), page, subpage, values, no_block_descriptor)| {
            Command::ModeSense(ModeSense {
                width,
                page,
                subpage,
                values,
                no_block_descriptor,
                allocation,
            })
        },
    )
}

fn read_defects() -> impl Strategy<Value = Command> {
    let width = prop_oneof![
        any::<u16>().prop_map(|n| (DefectWidth::Ten, 0, n.into())),
        (any::<u32>(), any::<u32>()).prop_map(|(index, n)| (DefectWidth::Twelve, index, n)),
    ];
    (width, any::<bool>(), any::<bool>(), format()).prop_map(
        |((width, index, allocation), primary, grown, format)| {
            Command::ReadDefectData(ReadDefectData {
                width,
                primary,
                grown,
                format,
                index,
                allocation,
            })
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::TestUnitReady),
        Just(Command::ReadCapacity10),
        any::<u32>().prop_map(|allocation| Command::ReadCapacity16 { allocation }),
        (any::<bool>(), any::<u8>()).prop_map(|(descriptors, allocation)| {
            Command::RequestSense {
                descriptors,
                allocation,
            }
        }),
        (any::<Option<u8>>(), any::<u16>())
            .prop_map(|(page, allocation)| Command::Inquiry { page, allocation }),
        (any::<Option<u8>>(), any::<u16>())
            .prop_map(|(page, allocation)| Command::ReceiveDiagnostic { page, allocation }),
        (any::<bool>(), any::<bool>(), any::<u16>()).prop_map(
            |(page_format, self_test, length)| Command::SendDiagnostic {
                page_format,
                self_test,
                length,
            }
        ),
        (extent(), any::<bool>()).prop_map(|((width, lbn, sectors), immediate)| {
            Command::SynchronizeCache {
                width,
                lbn,
                sectors,
                immediate,
            }
        }),
        (any::<u16>(), any::<bool>(), any::<bool>()).prop_map(|(length, page_format, save)| {
            Command::ModeSelect {
                width: ModeWidth::Ten,
                page_format,
                save,
                length,
            }
        }),
        (any::<u8>(), any::<bool>(), any::<bool>()).prop_map(|(length, page_format, save)| {
            Command::ModeSelect {
                width: ModeWidth::Six,
                page_format,
                save,
                length: length.into(),
            }
        }),
        blocks(),
        mode_sense(),
        read_defects(),
    ]
}

fn address(format: AddressFormat) -> BoxedStrategy<Address> {
    match format {
        AddressFormat::ShortBlock => any::<u32>()
            .prop_map(|lbn| Address::Block(Lbn(lbn.into())))
            .boxed(),
        AddressFormat::LongBlock => any::<u64>()
            .prop_map(|lbn| Address::Block(Lbn(lbn)))
            .boxed(),
        AddressFormat::PhysicalSector => (0..1u32 << 24, any::<u8>(), any::<u32>())
            .prop_map(|(cylinder, head, slot)| {
                Address::Sector(Place {
                    cylinder: Cylinder(cylinder),
                    surface: Surface(head.into()),
                    slot,
                })
            })
            .boxed(),
    }
}

fn translation() -> impl Strategy<Value = Translation> {
    format()
        .prop_flat_map(|translated| {
            let addresses = prop::collection::vec(address(translated), 0..20);
            (Just(translated), format(), any::<[bool; 3]>(), addresses)
        })
        .prop_map(|(translated, supplied, [r, s, t], addresses)| Translation {
            supplied,
            translated,
            reserved_area: r,
            alternate_sector: s,
            alternate_track: t,
            addresses,
        })
}

fn defect_list() -> impl Strategy<Value = DefectList> {
    format()
        .prop_flat_map(|format| {
            let addresses = prop::collection::vec(address(format), 0..20);
            (Just(format), any::<bool>(), any::<bool>(), addresses)
        })
        .prop_map(|(format, primary, grown, addresses)| {
            DefectList::new(primary, grown, format, addresses)
        })
}

fn sense() -> impl Strategy<Value = Sense> {
    let field = (any::<bool>(), any::<u16>())
        .prop_map(|(in_command, byte)| FieldPointer { in_command, byte });
    (
        0..16u8,
        any::<(u8, u8)>(),
        any::<Option<u64>>(),
        prop::option::of(field),
        any::<bool>(),
    )
        .prop_map(|(key, (code, qualifier), information, field, deferred)| {
            let key = SenseKey::from_number(key);
            Sense {
                key,
                code: AdditionalSense::new(code, qualifier),
                information,
                field: field.filter(|_| key == SenseKey::IllegalRequest),
                deferred,
            }
        })
}

proptest! {
    /// Does every encoded command decode to itself, even if further bytes follow?
    #[test]
    fn commands_round_trip(command in command(), tail in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut bytes = command.encode();
        bytes.extend(tail);
        prop_assert_eq!(Command::decode(&bytes), Ok(command));
    }

    /// Is a truncated command refused?
    #[test]
    fn truncated_commands_are_refused(command in command(), cut in 1usize..16) {
        let bytes = command.encode();
        let rest = bytes.len().saturating_sub(cut);
        prop_assert!(Command::decode(&bytes[..rest]).is_err());
    }

    /// Do requests and responses of address translation decode to themselves?
    #[test]
    fn translations_round_trip(
        translation in translation(),
        (supplied, address) in format().prop_flat_map(|f| (Just(f), address(f))),
        wanted in format(),
    ) {
        let bytes = translation.encode().unwrap();
        prop_assert_eq!(Translation::decode(&bytes).unwrap(), translation);
        let request = TranslateRequest { supplied, wanted, address };
        let bytes = request.encode().unwrap();
        prop_assert_eq!(TranslateRequest::decode(&bytes).unwrap(), request);
    }

    /// Do defect lists decode to themselves, and does a truncated list keep the part received?
    #[test]
    fn defect_lists_round_trip(list in defect_list(), keep in 0usize..200) {
        for (width, header) in [(DefectWidth::Ten, 4), (DefectWidth::Twelve, 8)] {
            let bytes = list.encode(width).unwrap();
            prop_assert_eq!(&DefectList::decode(width, &bytes).unwrap(), &list);
            let keep = keep.clamp(header, bytes.len());
            let cut = DefectList::decode(width, &bytes[..keep]).unwrap();
            let there = (keep - header) / list.format.size();
            prop_assert_eq!(&cut.addresses, &list.addresses[..there]);
            prop_assert_eq!(cut.length, list.length);
        }
    }

    /// Does sense data decode to itself? The fixed format has room for only 32 bits of information.
    #[test]
    fn sense_round_trips(sense in sense()) {
        let bytes = sense.encode(SenseFormat::Descriptors);
        prop_assert_eq!(Sense::decode(&bytes).unwrap(), sense);
        let information = sense.information.filter(|lbn| u32::try_from(*lbn).is_ok());
        let bytes = sense.encode(SenseFormat::Fixed);
        prop_assert_eq!(Sense::decode(&bytes).unwrap(), Sense { information, ..sense });
    }

    /// Does INQUIRY data decode to itself?
    #[test]
    fn inquiry_round_trips(
        vendor in "([!-~]([ -~]{0,6}[!-~])?)?",
        product in "([!-~]([ -~]{0,14}[!-~])?)?",
        revision in "([!-~]([ -~]{0,2}[!-~])?)?",
        (device_type, version) in (0..32u8, any::<u8>()),
        [connected, removable, queueing] in any::<[bool; 3]>(),
    ) {
        let inquiry =
            Inquiry { device_type, connected, removable, version, queueing, vendor, product, revision };
        prop_assert_eq!(Inquiry::decode(&inquiry.encode()).unwrap(), inquiry);
    }

    /// Do vital product data pages decode to themselves?
    #[test]
    fn vital_pages_round_trip(
        pages in prop::collection::vec(any::<u8>(), 0..300),
        serial in "([!-~]([ -~]{0,40}[!-~])?)?",
        names in prop::collection::vec((0..16u8, 0..4u8, 0..16u8, prop::collection::vec(any::<u8>(), 0..256)), 0..5),
        (granularity, longest, optimal) in any::<(u16, u32, u32)>(),
        (rotation, form_factor, zoned) in (any::<u16>(), 0..16u8, 0..4u8),
    ) {
        let names = names.into_iter().map(|(code_set, association, kind, name)| {
            Designator { code_set, association, kind, name }
        });
        let (rotation, zoned) = (Rotation::from_number(rotation), Zoned::from_number(zoned));
        for page in [
            VitalPage::Supported(pages),
            VitalPage::Serial(serial),
            VitalPage::Identification(names.collect()),
            VitalPage::BlockLimits(BlockLimits { granularity, longest, optimal }),
            VitalPage::Characteristics(Characteristics { rotation, form_factor, zoned }),
        ] {
            prop_assert_eq!(VitalPage::decode(&page.encode()).unwrap(), page);
        }
    }

    /// Do capacities decode to themselves? Does READ CAPACITY(10) state the last LBN, or FFFFFFFFh
    /// if it exceeds 32 bits?
    #[test]
    fn capacity_round_trips(
        (last_lbn, logical_bytes) in any::<(u64, u32)>(),
        (physical_exponent, lowest_aligned) in (0..16u8, 0..0x4000u16),
    ) {
        let capacity = Capacity { last_lbn, logical_bytes, physical_exponent, lowest_aligned };
        prop_assert_eq!(Capacity::decode_16(&capacity.encode_16()).unwrap(), capacity);
        let ten = Capacity::decode_10(&capacity.encode_10()).unwrap();
        prop_assert_eq!(ten.last_lbn, last_lbn.min(u32::MAX.into()));
        prop_assert_eq!(ten.logical_bytes, logical_bytes);
    }

    /// If the size of a physical sector exceeds 32 bits, is that of a logical one returned instead,
    /// for every exponent?
    #[test]
    fn physical_sectors_fit_32_bits(logical_bytes in any::<u32>(), physical_exponent: u8) {
        let capacity = Capacity { logical_bytes, physical_exponent, ..Capacity::default() };
        let bytes = u128::from(logical_bytes).checked_shl(physical_exponent.into());
        let bytes = bytes.filter(|_| physical_exponent < 32);
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        prop_assert_eq!(capacity.physical_bytes(), bytes.unwrap_or(logical_bytes));
    }

    /// Do mode pages decode to themselves, in both widths, one after another?
    #[test]
    fn mode_pages_round_trip(
        [write_cache, read_cache_disabled, read_ahead_disabled, ten, long] in any::<[bool; 5]>(),
        (prefetch_up_to, maximum_prefetch, segments) in any::<(u16, u16, u8)>(),
        (cylinders, heads, rpm) in (0..1u32 << 24, any::<u8>(), any::<u16>()),
        f in any::<[u16; 7]>(),
        blocks in prop::option::of((any::<u32>(), 0..1u32 << 24)),
        (write_protected, dpo_fua) in any::<(bool, bool)>(),
    ) {
        let caching = CachingPage {
            write_cache, read_cache_disabled, read_ahead_disabled, prefetch_up_to, maximum_prefetch, segments,
        };
        let geometry = GeometryPage { cylinders, heads, rpm };
        let format = FormatPage {
            tracks_per_zone: f[0], alternate_sectors_per_zone: f[1], sectors_per_track: f[2],
            bytes_per_sector: f[3], interleave: f[4], track_skew: f[5], cylinder_skew: f[6],
        };
        let bytes = [format.encode(), geometry.encode(), caching.encode()].concat();
        let data = ModeData {
            write_protected,
            dpo_fua,
            blocks: blocks.map(|(sectors, bytes)| {
                BlockDescriptor { sectors: sectors.into(), bytes, long: long && ten }
            }),
            pages: &bytes,
        };
        let width = if ten { ModeWidth::Ten } else { ModeWidth::Six };
        let sent = data.encode_sense(width);
        prop_assert_eq!(ModeData::decode(width, &sent).unwrap(), data);
        let found: Vec<_> = pages(data.pages).collect();
        prop_assert_eq!(found.len(), 3);
        prop_assert_eq!(FormatPage::decode(found[0].bytes), format);
        prop_assert_eq!(GeometryPage::decode(found[1].bytes), geometry);
        prop_assert_eq!(CachingPage::decode(found[2].bytes), caching);
        // The data for MODE SELECT has the same block descriptor and pages, but no savable bits.
        let back = data.encode_select(width);
        let select = ModeData::decode(width, &back).unwrap();
        prop_assert_eq!(select.blocks, data.blocks);
        for (back, page) in pages(select.pages).zip(found) {
            prop_assert!(!back.savable);
            prop_assert_eq!(&back.bytes[1..], &page.bytes[1..]);
        }
    }
}
