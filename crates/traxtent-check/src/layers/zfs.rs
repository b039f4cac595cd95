//! Labels of ZFS: the smallest write, as a power of two, from the tree of devices.
//!
//! Source: ZFS On-Disk Specification (Sun, 2006), sections 1.2 and 1.3; XDR (RFC 4506). In the list
//! of names and values, only `vdev_tree` is examined, and in that only `ashift` and `type`.

use super::error::{LayerError, Parsed, contradiction};
use super::fields::header;
use crate::layers::Zfs;
use crate::source::Source;

/// The size of a label.
const LABEL_BYTES: u64 = 256 << 10;
/// The position of the list in a label.
const LIST_AT: u64 = 16 << 10;
/// The size of the list.
const LIST_BYTES: usize = 112 << 10;
/// The start of the data, after two labels and the space for a boot loader.
const DATA_AT: u64 = 4 << 20;

/// The first bytes of an XDR-encoded list from a little-endian and from a big-endian machine.
const STARTS: [[u8; 4]; 2] = [[1, 1, 0, 0], [1, 0, 0, 0]];

// The types of values in a list.
const NUMBER: u32 = 8;
const WORD: u32 = 9;
const LIST: u32 = 19;

/// Returns whether at least one of the two labels at the start is present.
pub(super) fn is_at_start(source: &dyn Source) -> Result<bool, LayerError> {
    let bytes = source.bytes().min(2 * LABEL_BYTES);
    let start = source.read_up_to(0, bytes as usize)?;
    // `parse` also searches the end of a source, so it gets only these bytes.
    Ok(parse(&start)?.is_some())
}

/// Parses the first label found: two are at the start, two at the end.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if a list contradicts its format.
pub fn parse(source: &dyn Source) -> Parsed<Zfs> {
    let whole = source.bytes() & !(LABEL_BYTES - 1);
    let at_end = [2, 1].map(|labels| whole.checked_sub(labels * LABEL_BYTES));
    for label in [Some(0), Some(LABEL_BYTES)]
        .into_iter()
        .chain(at_end)
        .flatten()
    {
        let Some(start) = header(source, label + LIST_AT, 32)? else {
            continue;
        };
        // The first four bytes of many files look like the start of a list, so the version that
        // follows, 0, is checked as well.
        if !STARTS.iter().any(|encoding| start.starts_with(encoding)) || start[4..8] != [0; 4] {
            continue;
        }
        let Some(bytes) = header(source, label + LIST_AT, LIST_BYTES)? else {
            continue;
        };
        if let Some(tree) = find(&mut Reader(&bytes[12..]), "vdev_tree", LIST)? {
            // A list within a list begins with its version and flags.
            let inside = Reader(tree.get(8..).unwrap_or_default());
            let ashift = find(&mut inside.clone(), "ashift", NUMBER)?;
            let vdev = find(&mut inside.clone(), "type", WORD)?;
            return Ok(Some(Zfs {
                ashift: ashift.and_then(u64_of).map(bounded).transpose()?,
                vdev: vdev
                    .and_then(|bytes| Reader(bytes).word())
                    .unwrap_or_default(),
                data_start: DATA_AT,
            }));
        }
    }
    Ok(None)
}

fn bounded(ashift: u64) -> Result<u32, LayerError> {
    if (9..=17).contains(&ashift) {
        Ok(ashift as u32)
    } else {
        let problem = format!("ashift of {ashift} is invalid; 9 to 17 are allowed");
        Err(contradiction("ZFS", problem))
    }
}

fn u64_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// Returns the value called `name` of type `wanted`, or `None` if the list has no such pair.
fn find<'a>(
    reader: &mut Reader<'a>,
    name: &str,
    wanted: u32,
) -> Result<Option<&'a [u8]>, LayerError> {
    let torn = || contradiction("ZFS", "its list of names and values ends too early");
    loop {
        let pair = reader.0;
        let bytes = reader.number().ok_or_else(torn)? as usize;
        let _unpacked = reader.number().ok_or_else(torn)?;
        if bytes == 0 {
            return Ok(None);
        }
        // The length includes its own two words, so the list gets shorter each time.
        if bytes < 8 || bytes > pair.len() {
            return Err(torn());
        }
        let mut inside = Reader(&pair[8..bytes]);
        let found = inside.word().ok_or_else(torn)?;
        let kind = inside.number().ok_or_else(torn)?;
        let _count = inside.number().ok_or_else(torn)?;
        if found == name && kind == wanted {
            return Ok(Some(inside.0));
        }
        reader.0 = &pair[bytes..];
    }
}

/// The remaining bytes of an XDR encoding.
#[derive(Clone)]
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*first))
    }

    /// Reads a text: its length, its bytes, and zeros up to a multiple of four.
    fn word(&mut self) -> Option<String> {
        let count = self.number()? as usize;
        let text = self.0.get(..count)?;
        self.0 = self.0.get(count.checked_next_multiple_of(4)?..)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}
