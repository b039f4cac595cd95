//! The size of a drive: READ CAPACITY data (SBC-4).

use super::wire::{IntoBytes, ScsiError, U32, U64, bits, decode_prefix, padded, wire};

/// The response to READ CAPACITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// The last LBN.
    pub last_lbn: u64,
    /// The number of bytes in a logical sector.
    pub logical_bytes: u32,
    /// The binary logarithm of the number of logical sectors per physical one: 3 for 512e drives.
    /// Only READ CAPACITY(16) reports it.
    pub physical_exponent: u8,
    /// The lowest LBN at which a physical sector begins. Only READ CAPACITY(16) reports it.
    pub lowest_aligned: u16,
}

bits! {
    struct Exponents {
        #[bits(4)] physical: u8,
        #[bits(4)] protection: u8,
    }
}

wire! {
    struct Capacity10 { last_lbn: U32, logical_bytes: U32 }
    struct Capacity16 {
        last_lbn: U64,
        logical_bytes: U32,
        protection: u8,
        exponents: Exponents,
        lowest_aligned: Alignment,
        reserved: [u8; 16],
    }
}

/// The lowest aligned LBN and the flags of provisioning.
#[bitfield_struct::bitfield(u16, repr = zerocopy::big_endian::U16, from = from_u16, into = to_u16)]
#[derive(
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
    zerocopy::Unaligned,
)]
struct Alignment {
    #[bits(14)]
    number: u16,
    provisioning_zeros: bool,
    provisioning: bool,
}

const fn from_u16(number: u16) -> zerocopy::big_endian::U16 {
    zerocopy::big_endian::U16::from_bytes(number.to_be_bytes())
}

const fn to_u16(number: zerocopy::big_endian::U16) -> u16 {
    u16::from_be_bytes(number.to_bytes())
}

/// The last LBN that READ CAPACITY(10) reports if a drive is too large for its 32 bits.
pub const TOO_LARGE: u64 = u32::MAX as u64;

impl Capacity {
    /// Encodes the response to READ CAPACITY(10).
    pub fn encode_10(&self) -> Vec<u8> {
        Capacity10 {
            last_lbn: u32::try_from(self.last_lbn).unwrap_or(u32::MAX).into(),
            logical_bytes: self.logical_bytes.into(),
        }
        .as_bytes()
        .to_vec()
    }

    /// Encodes the response to READ CAPACITY(16).
    pub fn encode_16(&self) -> Vec<u8> {
        Capacity16 {
            last_lbn: self.last_lbn.into(),
            logical_bytes: self.logical_bytes.into(),
            exponents: Exponents::new().with_physical(self.physical_exponent.min(0xf)),
            lowest_aligned: Alignment::new().with_number(self.lowest_aligned.min(0x3fff)),
            ..Default::default()
        }
        .as_bytes()
        .to_vec()
    }

    /// Decodes the response to READ CAPACITY(10). If the last LBN is [`TOO_LARGE`], only READ
    /// CAPACITY(16) reports the size.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete.
    pub fn decode_10(bytes: &[u8]) -> Result<Capacity, ScsiError> {
        let (data, _) = decode_prefix::<Capacity10>("READ CAPACITY(10) data", bytes)?;
        Ok(Capacity {
            last_lbn: data.last_lbn.get().into(),
            logical_bytes: data.logical_bytes.get(),
            ..Capacity::default()
        })
    }

    /// Decodes the response to READ CAPACITY(16).
    ///
    /// # Errors
    /// Returns an error if the response lacks the last LBN or the size of a sector.
    pub fn decode_16(bytes: &[u8]) -> Result<Capacity, ScsiError> {
        decode_prefix::<[u8; 12]>("READ CAPACITY(16) data", bytes)?;
        let data: Capacity16 = padded(bytes);
        Ok(Capacity {
            last_lbn: data.last_lbn.get(),
            logical_bytes: data.logical_bytes.get(),
            physical_exponent: data.exponents.physical(),
            lowest_aligned: data.lowest_aligned.number(),
        })
    }

    /// The number of bytes in a physical sector, or in a logical one if that number exceeds 32
    /// bits.
    pub fn physical_bytes(&self) -> u32 {
        2u32.checked_pow(self.physical_exponent.into())
            .and_then(|ratio| ratio.checked_mul(self.logical_bytes))
            .unwrap_or(self.logical_bytes)
    }
}
