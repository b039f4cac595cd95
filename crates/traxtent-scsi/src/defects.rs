//! Lists of bad sectors: READ DEFECT DATA (SBC-4).

use super::address::{Address, AddressFormat, NotRepresentable};
use super::command::DefectWidth;
use super::wire::{IntoBytes, ScsiError, U16, U32, at_most, bits, decode_prefix, wire};

/// The response to READ DEFECT DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefectList {
    /// Whether it contains the primary defects, found during manufacture (PLISTV).
    pub primary: bool,
    /// Whether it contains the grown defects (GLISTV).
    pub grown: bool,
    /// The format of the addresses, which may differ from the requested one.
    pub format: AddressFormat,
    /// The number of bytes of all addresses from the first requested one, including addresses
    /// beyond the allocation length.
    pub length: u32,
    /// The addresses in the response.
    pub addresses: Vec<Address>,
}

bits! {
    struct ListFlags {
        #[bits(3)] format: u8,
        grown: bool,
        primary: bool,
        #[bits(3)] __: u8,
    }
}

wire! {
    struct Header10 { reserved: u8, flags: ListFlags, length: U16 }
    struct Header12 { reserved: u8, flags: ListFlags, generation: U16, length: U32 }
}

impl DefectList {
    /// Creates a complete list: its length is that of `addresses`.
    pub fn new(
        primary: bool,
        grown: bool,
        format: AddressFormat,
        addresses: Vec<Address>,
    ) -> DefectList {
        DefectList {
            primary,
            grown,
            format,
            length: u32::try_from(addresses.len() * format.size()).unwrap_or(u32::MAX),
            addresses,
        }
    }

    /// Encodes the list. With a 10-byte command, a length above 65,535 is written as 65,535.
    ///
    /// # Errors
    /// Returns an error if the format cannot express an address.
    pub fn encode(&self, width: DefectWidth) -> Result<Vec<u8>, NotRepresentable> {
        let flags = ListFlags::new()
            .with_format(self.format.code())
            .with_grown(self.grown)
            .with_primary(self.primary);
        let mut bytes = match width {
            DefectWidth::Ten => Header10 {
                reserved: 0,
                flags,
                length: u16::try_from(self.length).unwrap_or(u16::MAX).into(),
            }
            .as_bytes()
            .to_vec(),
            DefectWidth::Twelve => Header12 {
                flags,
                length: self.length.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
        };
        for address in &self.addresses {
            address.encode(self.format, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Decodes a list, which may be truncated to the allocation length. An incomplete address at
    /// the end is omitted.
    ///
    /// # Errors
    /// Returns an error if the header is incomplete, or the format is unknown.
    pub fn decode(width: DefectWidth, bytes: &[u8]) -> Result<DefectList, ScsiError> {
        let what = "a defect list";
        let (flags, length, rest) = match width {
            DefectWidth::Ten => {
                let (header, rest) = decode_prefix::<Header10>(what, bytes)?;
                (header.flags, header.length.get().into(), rest)
            }
            DefectWidth::Twelve => {
                let (header, rest) = decode_prefix::<Header12>(what, bytes)?;
                (header.flags, header.length.get(), rest)
            }
        };
        let format = AddressFormat::from_code(flags.format()).ok_or(ScsiError::Field {
            what,
            byte: 1,
            value: flags.format().into(),
        })?;
        let addresses = at_most(rest, usize::try_from(length).unwrap_or(usize::MAX))
            .chunks_exact(format.size())
            .map(|bytes| Address::decode(format, bytes))
            .collect::<Result<_, _>>()?;
        Ok(DefectList {
            primary: flags.primary(),
            grown: flags.grown(),
            format,
            length,
            addresses,
        })
    }
}
