//! Diagnostic pages: the list of supported pages, and the translation of addresses (SPC-5,
//! "Diagnostic parameters"; SBC-3, "Translate Address diagnostic pages").
//!
//! A host sends page 40h with an address and the requested format, and receives page 40h with the
//! result. A drive may return several addresses if a logical sector spans several physical ones. It
//! may return no address if the whole address lies in a reserved area.

use super::address::{Address, AddressFormat, NotRepresentable};
use super::wire::{IntoBytes, ScsiError, U16, at_most, bits, decode_prefix, wire};

/// The page that lists the others.
pub const SUPPORTED_DIAGNOSTICS: u8 = 0x00;
/// The page that translates addresses.
pub const TRANSLATE_ADDRESS: u8 = 0x40;

/// A request: page 40h as sent by a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslateRequest {
    /// The format of the address.
    pub supplied: AddressFormat,
    /// The requested format.
    pub wanted: AddressFormat,
    /// The address.
    pub address: Address,
}

/// A response: page 40h as sent by a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The format of the address in the request.
    pub supplied: AddressFormat,
    /// The format of the addresses in the response.
    pub translated: AddressFormat,
    /// Whether all or part of the address is in a reserved area (RAREA).
    pub reserved_area: bool,
    /// Whether all or part of the address is in a sector that replaces another (ALTSEC).
    pub alternate_sector: bool,
    /// Whether all or part of the address is on a track that replaces another, or the drive cannot
    /// tell whether it is (ALTTRK).
    pub alternate_track: bool,
    /// The addresses, up to 8,191.
    pub addresses: Vec<Address>,
}

bits! {
    struct FormatByte {
        #[bits(3)] format: u8,
        #[bits(5)] __: u8,
    }
    struct TranslatedByte {
        #[bits(3)] format: u8,
        #[bits(2)] __: u8,
        alternate_track: bool,
        alternate_sector: bool,
        reserved_area: bool,
    }
}

wire! {
    struct PageHeader { page: u8, reserved: u8, length: U16 }
    struct TranslateRequestPage { header: PageHeader, supplied: FormatByte, wanted: FormatByte, address: [u8; ADDRESS_BYTES] }
    struct TranslateResponseHeader { header: PageHeader, supplied: FormatByte, translated: TranslatedByte }
}

/// The number of bytes of an address in these pages. A short address is padded with zeros.
const ADDRESS_BYTES: usize = 8;

impl TranslateRequest {
    /// Encodes the page.
    ///
    /// # Errors
    /// Returns an error if the format cannot express the address.
    pub fn encode(&self) -> Result<Vec<u8>, NotRepresentable> {
        let page = TranslateRequestPage {
            header: PageHeader {
                page: TRANSLATE_ADDRESS,
                reserved: 0,
                length: ((size_of::<TranslateRequestPage>() - size_of::<PageHeader>()) as u16)
                    .into(),
            },
            supplied: FormatByte::new().with_format(self.supplied.code()),
            wanted: FormatByte::new().with_format(self.wanted.code()),
            address: address_field(self.address, self.supplied)?,
        };
        Ok(page.as_bytes().to_vec())
    }

    /// Decodes the page.
    ///
    /// # Errors
    /// Returns an error if the page is incomplete, has a different code, or contains an unknown
    /// format.
    pub fn decode(bytes: &[u8]) -> Result<TranslateRequest, ScsiError> {
        let (page, _) = decode_prefix::<TranslateRequestPage>("a translate address page", bytes)?;
        check_page(&page.header)?;
        let supplied = format(4, page.supplied.format())?;
        Ok(TranslateRequest {
            supplied,
            wanted: format(5, page.wanted.format())?,
            address: Address::decode(supplied, &page.address)?,
        })
    }
}

impl Translation {
    /// Encodes the page.
    ///
    /// # Errors
    /// Returns an error if the format cannot express an address, or there are too many addresses.
    pub fn encode(&self) -> Result<Vec<u8>, NotRepresentable> {
        let body = 2 + self.addresses.len() * ADDRESS_BYTES;
        let page = TranslateResponseHeader {
            header: PageHeader {
                page: TRANSLATE_ADDRESS,
                reserved: 0,
                length: u16::try_from(body).map_err(|_| NotRepresentable)?.into(),
            },
            supplied: FormatByte::new().with_format(self.supplied.code()),
            translated: TranslatedByte::new()
                .with_format(self.translated.code())
                .with_reserved_area(self.reserved_area)
                .with_alternate_sector(self.alternate_sector)
                .with_alternate_track(self.alternate_track),
        };
        let mut bytes = page.as_bytes().to_vec();
        for address in &self.addresses {
            bytes.extend_from_slice(&address_field(*address, self.translated)?);
        }
        Ok(bytes)
    }

    /// Decodes the page, which may be truncated to the allocation length.
    ///
    /// # Errors
    /// Returns an error if the header is incomplete, or the page has a different code or contains
    /// an unknown format.
    pub fn decode(bytes: &[u8]) -> Result<Translation, ScsiError> {
        let (page, rest) =
            decode_prefix::<TranslateResponseHeader>("a translate address page", bytes)?;
        check_page(&page.header)?;
        let translated = format(5, page.translated.format())?;
        let body = usize::from(page.header.length.get()).saturating_sub(2);
        let addresses = at_most(rest, body)
            .chunks_exact(ADDRESS_BYTES)
            .map(|bytes| Address::decode(translated, bytes))
            .collect::<Result<_, _>>()?;
        Ok(Translation {
            supplied: format(4, page.supplied.format())?,
            translated,
            reserved_area: page.translated.reserved_area(),
            alternate_sector: page.translated.alternate_sector(),
            alternate_track: page.translated.alternate_track(),
            addresses,
        })
    }
}

/// Encodes the page that lists the diagnostic pages of a drive.
pub fn encode_supported(pages: &[u8]) -> Vec<u8> {
    let pages = at_most(pages, u16::MAX.into());
    let header = PageHeader {
        page: SUPPORTED_DIAGNOSTICS,
        reserved: 0,
        length: (pages.len() as u16).into(),
    };
    [header.as_bytes(), pages].concat()
}

/// Decodes the page that lists the diagnostic pages of a drive.
///
/// # Errors
/// Returns an error if the header is incomplete, or the page has a different code.
pub fn decode_supported(bytes: &[u8]) -> Result<&[u8], ScsiError> {
    let what = "a list of diagnostic pages";
    let (header, rest) = decode_prefix::<PageHeader>(what, bytes)?;
    if header.page != SUPPORTED_DIAGNOSTICS {
        return Err(wrong(what, 0, header.page));
    }
    Ok(at_most(rest, header.length.get().into()))
}

fn address_field(
    address: Address,
    format: AddressFormat,
) -> Result<[u8; ADDRESS_BYTES], NotRepresentable> {
    let mut bytes = Vec::with_capacity(ADDRESS_BYTES);
    address.encode(format, &mut bytes)?;
    bytes.resize(ADDRESS_BYTES, 0);
    bytes.try_into().map_err(|_| NotRepresentable)
}

fn check_page(header: &PageHeader) -> Result<(), ScsiError> {
    if header.page == TRANSLATE_ADDRESS {
        Ok(())
    } else {
        Err(wrong("a translate address page", 0, header.page))
    }
}

fn format(byte: u16, code: u8) -> Result<AddressFormat, ScsiError> {
    AddressFormat::from_code(code).ok_or(wrong("a translate address page", byte, code))
}

fn wrong(what: &'static str, byte: u16, value: u8) -> ScsiError {
    ScsiError::Field {
        what,
        byte,
        value: value.into(),
    }
}
