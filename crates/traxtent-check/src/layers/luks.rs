//! LUKS1 and LUKS2: the start and end of the encrypted data, and the sector size.
//!
//! Sources: LUKS On-Disk Format Specification 1.2.3, and LUKS2 On-Disk Format Specification 1.1.3.
//! Digests, tokens and the content of key slots are skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::{Parsed, contradiction};
use super::fields::{Fields, header, power_of_two};
use crate::layers::{LayerError, Luks};
use crate::source::Source;

/// The sector size of LUKS1, and of LUKS2 if its header states none, in bytes.
const SECTOR_BYTES: u64 = 512;
/// The number of stripes into which LUKS1 splits a key.
const KEY_STRIPES: u64 = 4000;
/// The size of the binary part of a LUKS2 header; JSON text follows.
const BINARY_BYTES: u64 = 4096;

/// Parses a header.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if the header contradicts its format.
pub fn parse(source: &dyn Source) -> Parsed<Luks> {
    let Some(bytes) = header(source, 0, 592)? else {
        return Ok(None);
    };
    if !bytes.starts_with(b"LUKS\xba\xbe") {
        return Ok(None);
    }
    let fields = Fields(&bytes);
    match fields.be16(6) {
        1 => Ok(Some(Luks {
            version: 1,
            sector_bytes: SECTOR_BYTES,
            data_start: u64::from(fields.be32(104)) * SECTOR_BYTES,
            data_bytes: None,
            key_slots_end: Some(key_slots_end(fields)),
            uuid: fields.word(168, 40),
        })),
        2 => version_2(source, fields).map(Some),
        version => Err(contradiction(
            "LUKS",
            format!("version {version} is not supported"),
        )),
    }
}

/// Returns the first byte after the key material of the last of the eight key slots of LUKS1.
fn key_slots_end(fields: Fields<'_>) -> u64 {
    let material = u64::from(fields.be32(108)) * KEY_STRIPES;
    let material = material.next_multiple_of(SECTOR_BYTES);
    let ends = (0..8).map(|slot| {
        let at = 208 + 48 * slot;
        u64::from(fields.be32(at + 40)) * SECTOR_BYTES + material
    });
    ends.fold(0, u64::max)
}

/// The relevant part of the JSON text of a LUKS2 header.
#[derive(Deserialize)]
struct Text {
    segments: BTreeMap<String, Segment>,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(rename = "type")]
    kind: String,
    offset: String,
    size: String,
    sector_size: Option<u64>,
}

fn version_2(source: &dyn Source, fields: Fields<'_>) -> Result<Luks, LayerError> {
    let wrong = |problem: String| contradiction("LUKS2", problem);
    let header_bytes = fields.be64(8);
    if !power_of_two(header_bytes, 16 << 10..=4 << 20) {
        return Err(wrong(format!(
            "header size of {header_bytes} bytes is invalid; powers of two from 16 KiB to 4 MiB are allowed"
        )));
    }
    let text = source.read(BINARY_BYTES, (header_bytes - BINARY_BYTES) as usize)?;
    let end = text
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(text.len());
    let text: Text = serde_json::from_slice(&text[..end])
        .map_err(|error| wrong(format!("its JSON text: {error}")))?;
    let segment = text
        .segments
        .values()
        .find(|segment| segment.kind == "crypt")
        .ok_or_else(|| wrong("it has no encrypted segment".to_owned()))?;
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| {
            wrong(format!(
                "the {name} of its segment is {text:?}, not a number"
            ))
        })
    };
    let sector_bytes = segment.sector_size.unwrap_or(SECTOR_BYTES);
    if !power_of_two(sector_bytes, 512..=4096) {
        return Err(wrong(format!(
            "sector size of {sector_bytes} bytes is invalid; powers of two from 512 to 4096 are allowed"
        )));
    }
    Ok(Luks {
        version: 2,
        sector_bytes,
        data_start: number("offset", &segment.offset)?,
        data_bytes: match segment.size.as_str() {
            "dynamic" => None,
            size => Some(number("size", size)?),
        },
        key_slots_end: None,
        uuid: fields.word(168, 40),
    })
}
