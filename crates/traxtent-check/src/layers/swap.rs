//! Swap space, with a signature at the end of the first page.
//!
//! Source: union swap_header in include/linux/swap.h of the Linux kernel, mkswap(8).

use super::error::Parsed;
use super::fields::{Fields, header};
use crate::layers::Swap;
use crate::source::Source;

/// The page sizes that Linux supports for swap, in bytes; the first that matches is used.
const PAGE_SIZES_BYTES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// Parses the header. The page size is the first whose page ends with the signature.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn parse(source: &dyn Source) -> Parsed<Swap> {
    for page_bytes in PAGE_SIZES_BYTES {
        let Some(signature) = header(source, page_bytes - 10, 10)? else {
            break;
        };
        if signature == *b"SWAPSPACE2"
            && let Some(info) = header(source, 1024, 12)?
        {
            let pages = u64::from(Fields(&info).le32(4)) + 1;
            return Ok(Some(Swap { page_bytes, pages }));
        }
    }
    Ok(None)
}
