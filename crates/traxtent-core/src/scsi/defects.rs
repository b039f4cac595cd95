//! Lists of bad sectors: READ DEFECT DATA (SBC-4).

use super::address::{Address, Format, Inexpressible};
use super::command::DefectWidth;
use super::wire::{IntoBytes, ScsiError, U16, U32, at_most, bits, front, wire};

/// What READ DEFECT DATA answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefectList {
    /// Whether it has the defects of manufacture (PLISTV).
    pub primary: bool,
    /// Whether it has those grown since (GLISTV).
    pub grown: bool,
    /// The form of the addresses, which may be another than was asked for.
    pub format: Format,
    /// Bytes of all addresses from the first wanted on, also where the host had no room for them.
    pub length: u32,
    /// The addresses that are there.
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
    /// A list with all of its addresses.
    pub fn new(primary: bool, grown: bool, format: Format, addresses: Vec<Address>) -> DefectList {
        DefectList {
            primary,
            grown,
            format,
            length: u32::try_from(addresses.len() * format.size()).unwrap_or(u32::MAX),
            addresses,
        }
    }

    /// The list's bytes. In ten bytes, a length beyond 65,535 is written as that.
    ///
    /// # Errors
    /// Where an address does not fit the form.
    pub fn encode(&self, width: DefectWidth) -> Result<Vec<u8>, Inexpressible> {
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

    /// Reads a list, as far as the host had room for it.
    ///
    /// # Errors
    /// Where its header is cut short, or its form is not known.
    pub fn decode(width: DefectWidth, bytes: &[u8]) -> Result<DefectList, ScsiError> {
        let what = "a defect list";
        let (flags, length, rest) = match width {
            DefectWidth::Ten => {
                let (header, rest) = front::<Header10>(what, bytes)?;
                (header.flags, header.length.get().into(), rest)
            }
            DefectWidth::Twelve => {
                let (header, rest) = front::<Header12>(what, bytes)?;
                (header.flags, header.length.get(), rest)
            }
        };
        let format = Format::from_code(flags.format()).ok_or(ScsiError::Field {
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
