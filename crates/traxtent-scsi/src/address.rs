//! Addresses on the media in the translate address page and in defect lists (SBC-4, "Address
//! descriptors").
//!
//! Left out: the bytes from index format and the extended formats.

use super::wire::{IntoBytes, ScsiError, U32, U64, decode_prefix, to_u24, u24, wire};
use traxtent_model::geometry::Place;
use traxtent_units::{Cylinder, Lbn, Surface};

/// A format of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFormat {
    /// An LBN of 32 bits.
    ShortBlock,
    /// An LBN of 64 bits.
    LongBlock,
    /// Cylinder, head and sector.
    PhysicalSector,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A logical block.
    Block(Lbn),
    /// A physical sector. The slot number [`WHOLE_TRACK`] means the whole track.
    Sector(Place),
}

/// The sector number that means a whole track.
pub const WHOLE_TRACK: u32 = u32::MAX;

wire! {
    struct PhysicalSector { cylinder: [u8; 3], head: u8, sector: U32 }
}

impl AddressFormat {
    /// All formats.
    pub const ALL: [AddressFormat; 3] = [
        AddressFormat::ShortBlock,
        AddressFormat::LongBlock,
        AddressFormat::PhysicalSector,
    ];

    /// The code of the format.
    pub fn code(self) -> u8 {
        match self {
            AddressFormat::ShortBlock => 0b000,
            AddressFormat::LongBlock => 0b011,
            AddressFormat::PhysicalSector => 0b101,
        }
    }

    /// Returns the format with the given code.
    pub fn from_code(code: u8) -> Option<AddressFormat> {
        AddressFormat::ALL
            .into_iter()
            .find(|format| format.code() == code)
    }

    /// The number of bytes of an address.
    pub fn size(self) -> usize {
        match self {
            AddressFormat::ShortBlock => size_of::<U32>(),
            AddressFormat::LongBlock => size_of::<U64>(),
            AddressFormat::PhysicalSector => size_of::<PhysicalSector>(),
        }
    }

    /// Returns the narrowest format that can express the LBN.
    pub fn of_block(lbn: Lbn) -> AddressFormat {
        if u32::try_from(lbn.0).is_ok() {
            AddressFormat::ShortBlock
        } else {
            AddressFormat::LongBlock
        }
    }
}

impl Address {
    /// Appends the address in the given format.
    ///
    /// # Errors
    /// Returns an error, and appends nothing, if the format is too narrow or for another kind of
    /// address.
    pub fn encode(
        self,
        format: AddressFormat,
        bytes: &mut Vec<u8>,
    ) -> Result<(), NotRepresentable> {
        match (self, format) {
            (Address::Block(Lbn(lbn)), AddressFormat::LongBlock) => {
                bytes.extend_from_slice(&lbn.to_be_bytes());
            }
            (Address::Block(Lbn(lbn)), AddressFormat::ShortBlock) => {
                let lbn = u32::try_from(lbn).map_err(|_| NotRepresentable)?;
                bytes.extend_from_slice(&lbn.to_be_bytes());
            }
            (Address::Sector(place), AddressFormat::PhysicalSector) => {
                let cylinder = to_u24(place.cylinder.0);
                if u24(cylinder) != place.cylinder.0 {
                    return Err(NotRepresentable);
                }
                let sector = PhysicalSector {
                    cylinder,
                    head: u8::try_from(place.surface.0).map_err(|_| NotRepresentable)?,
                    sector: place.slot.into(),
                };
                bytes.extend_from_slice(sector.as_bytes());
            }
            _ => return Err(NotRepresentable),
        }
        Ok(())
    }

    /// Decodes the address at the beginning of the bytes.
    ///
    /// # Errors
    /// Returns an error if there are too few bytes.
    pub fn decode(format: AddressFormat, bytes: &[u8]) -> Result<Address, ScsiError> {
        let what = "an address";
        Ok(match format {
            AddressFormat::ShortBlock => {
                Address::Block(Lbn(decode_prefix::<U32>(what, bytes)?.0.get().into()))
            }
            AddressFormat::LongBlock => {
                Address::Block(Lbn(decode_prefix::<U64>(what, bytes)?.0.get()))
            }
            AddressFormat::PhysicalSector => {
                let (sector, _) = decode_prefix::<PhysicalSector>(what, bytes)?;
                Address::Sector(Place {
                    cylinder: Cylinder(u24(sector.cylinder)),
                    surface: Surface(sector.head.into()),
                    slot: sector.sector.get(),
                })
            }
        })
    }
}

/// The error for an address that a format cannot express, or for more addresses than a page can
/// hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the format cannot express the address, or there are too many addresses")]
pub struct NotRepresentable;
