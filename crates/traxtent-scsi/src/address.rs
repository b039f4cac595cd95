//! Addresses on the media in the translate address page and in defect lists (SBC-4, "Address
//! descriptors").
//!
//! Left out: the bytes from index format and the extended formats, which nothing here needs.

use super::wire::{IntoBytes, ScsiError, U32, U64, front, to_u24, u24, wire};
use traxtent_model::geometry::Place;
use traxtent_units::{Cylinder, Lbn, Surface};

/// A format of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
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
    /// A physical sector. The slot [`WHOLE_TRACK`] means all of its track.
    Sector(Place),
}

/// The sector number that means a whole track.
pub const WHOLE_TRACK: u32 = u32::MAX;

wire! {
    struct PhysicalSector { cylinder: [u8; 3], head: u8, sector: U32 }
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [
        Format::ShortBlock,
        Format::LongBlock,
        Format::PhysicalSector,
    ];

    /// The code of the format.
    pub fn code(self) -> u8 {
        match self {
            Format::ShortBlock => 0b000,
            Format::LongBlock => 0b011,
            Format::PhysicalSector => 0b101,
        }
    }

    /// Returns the format with the given code.
    pub fn from_code(code: u8) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.code() == code)
    }

    /// The number of bytes of an address.
    pub fn size(self) -> usize {
        match self {
            Format::ShortBlock => size_of::<U32>(),
            Format::LongBlock => size_of::<U64>(),
            Format::PhysicalSector => size_of::<PhysicalSector>(),
        }
    }

    /// Returns the narrowest format that can express the LBN.
    pub fn of_block(lbn: Lbn) -> Format {
        if u32::try_from(lbn.0).is_ok() {
            Format::ShortBlock
        } else {
            Format::LongBlock
        }
    }
}

impl Address {
    /// Appends the address in the given format.
    ///
    /// # Errors
    /// Returns an error, and appends nothing, if the format is for another kind of address or too
    /// narrow.
    pub fn encode(self, format: Format, bytes: &mut Vec<u8>) -> Result<(), Inexpressible> {
        match (self, format) {
            (Address::Block(Lbn(lbn)), Format::LongBlock) => {
                bytes.extend_from_slice(&lbn.to_be_bytes());
            }
            (Address::Block(Lbn(lbn)), Format::ShortBlock) => {
                let lbn = u32::try_from(lbn).map_err(|_| Inexpressible)?;
                bytes.extend_from_slice(&lbn.to_be_bytes());
            }
            (Address::Sector(place), Format::PhysicalSector) => {
                let cylinder = to_u24(place.cylinder.0);
                if u24(cylinder) != place.cylinder.0 {
                    return Err(Inexpressible);
                }
                let sector = PhysicalSector {
                    cylinder,
                    head: u8::try_from(place.surface.0).map_err(|_| Inexpressible)?,
                    sector: place.slot.into(),
                };
                bytes.extend_from_slice(sector.as_bytes());
            }
            _ => return Err(Inexpressible),
        }
        Ok(())
    }

    /// Decodes the address at the beginning of the bytes.
    ///
    /// # Errors
    /// Returns an error if there are too few bytes.
    pub fn decode(format: Format, bytes: &[u8]) -> Result<Address, ScsiError> {
        let what = "an address";
        Ok(match format {
            Format::ShortBlock => Address::Block(Lbn(front::<U32>(what, bytes)?.0.get().into())),
            Format::LongBlock => Address::Block(Lbn(front::<U64>(what, bytes)?.0.get())),
            Format::PhysicalSector => {
                let (sector, _) = front::<PhysicalSector>(what, bytes)?;
                Address::Sector(Place {
                    cylinder: Cylinder(u24(sector.cylinder)),
                    surface: Surface(sector.head.into()),
                    slot: sector.sector.get(),
                })
            }
        })
    }
}

/// An address that a format cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address that its form cannot express")]
pub struct Inexpressible;
