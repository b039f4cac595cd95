//! The chunks of Btrfs: where its logical addresses are on a device.
//!
//! Btrfs addresses its data by logical addresses, and FIEMAP reports these. A chunk is a run of
//! logical addresses that is stored by one rule, its profile. Its stripes are its places on
//! devices.
//!
//! Only chunks whose stripes each hold the whole chunk have a place here: those of the profiles
//! single and DUP. The first copy of DUP counts.
//!
//! Source: struct btrfs_chunk in include/uapi/linux/btrfs_tree.h of the Linux kernel.

use std::fmt;
use std::ops::Range;

use super::super::error::{LayerError, contradiction};
use super::super::fields::Fields;

/// The size of an item without its stripes, in bytes.
const HEAD_BYTES: usize = 48;
/// The size of a stripe in an item, in bytes.
const STRIPE_BYTES: usize = 32;

/// `BTRFS_BLOCK_GROUP_DATA`, `_SYSTEM` and `_METADATA`: the content of a chunk.
const CONTENT: u64 = 0b111;
/// `BTRFS_BLOCK_GROUP_DUP`.
const DUP: u64 = 1 << 5;
/// The bits of the other profiles, and their names.
const OTHERS: [(u64, &str); 7] = [
    (1 << 3, "RAID0"),
    (1 << 4, "RAID1"),
    (1 << 6, "RAID10"),
    (1 << 7, "RAID5"),
    (1 << 8, "RAID6"),
    (1 << 9, "RAID1C3"),
    (1 << 10, "RAID1C4"),
];

/// The rule by which a chunk is stored on devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// One copy in one piece.
    Single,
    /// Two copies on one device, each in one piece.
    Dup,
    /// A profile for several devices: its name.
    Raid(&'static str),
    /// A profile that is not known: its bits.
    Unknown(u64),
}

impl Profile {
    fn of(kind: u64) -> Profile {
        let bits = kind & !CONTENT;
        let name = OTHERS.iter().find(|(bit, _)| *bit == bits);
        match (bits, name) {
            (0, _) => Profile::Single,
            (DUP, _) => Profile::Dup,
            (_, Some((_, name))) => Profile::Raid(name),
            (bits, None) => Profile::Unknown(bits),
        }
    }

    /// Returns the number of stripes; `None` if a chunk can have any number.
    fn stripes(self) -> Option<u16> {
        match self {
            Profile::Single => Some(1),
            Profile::Dup => Some(2),
            Profile::Raid(_) | Profile::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::Single => f.write_str("single"),
            Profile::Dup => f.write_str("DUP"),
            Profile::Raid(name) => f.write_str(name),
            Profile::Unknown(bits) => write!(f, "{bits:#x}"),
        }
    }
}

/// A run of logical addresses that is stored by one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The logical addresses.
    pub logical: Range<u64>,
    /// The rule.
    pub profile: Profile,
    /// The places on devices, at least one.
    pub stripes: Vec<Stripe>,
}

/// A place of a chunk on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// The number of the device within the file system.
    pub device: u64,
    /// The first byte on the device.
    pub start: u64,
}

impl Chunk {
    /// Parses an item of the chunk tree. `logical` is the offset in its key.
    ///
    /// # Errors
    /// Returns an error if the item has another length than its stripes need, if its profile has
    /// another number of stripes, or if its addresses exceed 64 bits.
    pub fn parse(logical: u64, item: &[u8]) -> Result<Chunk, LayerError> {
        let invalid = |problem: String| {
            contradiction(
                "Btrfs",
                format!("the chunk at address {logical}: {problem}"),
            )
        };
        if item.len() < HEAD_BYTES {
            return Err(invalid(format!(
                "{} bytes are too few; an item has at least {HEAD_BYTES}",
                item.len()
            )));
        }
        let fields = Fields(item);
        let (bytes, profile) = (fields.le64(0), Profile::of(fields.le64(24)));
        let count = fields.le16(44);
        let needed = HEAD_BYTES + usize::from(count) * STRIPE_BYTES;
        if item.len() != needed {
            return Err(invalid(format!(
                "{} bytes do not fit {count} stripes, which need {needed}",
                item.len()
            )));
        }
        if count == 0 || profile.stripes().is_some_and(|stripes| stripes != count) {
            return Err(invalid(format!(
                "{count} stripes are not possible with the profile {profile}"
            )));
        }
        let end = logical.checked_add(bytes).filter(|end| *end > logical);
        let end = end.ok_or_else(|| invalid(format!("a length of {bytes} bytes is invalid")))?;
        let stripe = |at: usize| Stripe {
            device: fields.le64(at),
            start: fields.le64(at + 8),
        };
        let stripes = (HEAD_BYTES..needed).step_by(STRIPE_BYTES).map(stripe);
        let stripes: Vec<Stripe> = stripes.collect();
        // A stripe of another profile is shorter than the chunk, or as long.
        let is_whole = profile.stripes().is_some();
        let is_beyond = |stripe: &&Stripe| stripe.start.checked_add(bytes).is_none();
        if let Some(stripe) = stripes.iter().find(is_beyond).filter(|_| is_whole) {
            return Err(invalid(format!(
                "a stripe of {bytes} bytes cannot begin at byte {} of a device",
                stripe.start
            )));
        }
        Ok(Chunk {
            logical: logical..end,
            profile,
            stripes,
        })
    }
}

/// The reason why logical addresses have no place on the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The chunks are on several devices.
    #[error("its Btrfs has data on several devices; only one is supported")]
    Devices,
    /// The chunk is stored by a rule that is not supported.
    #[error("its data has the Btrfs profile {0}; only single and DUP are supported")]
    Profile(Profile),
    /// No chunk holds the address.
    #[error("no chunk of Btrfs holds its address {0}")]
    Absent(u64),
}

/// The chunks of a Btrfs file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkMap {
    /// In ascending order of addresses.
    chunks: Vec<Chunk>,
    has_several_devices: bool,
}

impl ChunkMap {
    /// Makes a map of chunks in any order.
    ///
    /// # Errors
    /// Returns an error if two chunks have addresses in common.
    pub fn new(mut chunks: Vec<Chunk>) -> Result<ChunkMap, LayerError> {
        chunks.sort_by_key(|chunk| chunk.logical.start);
        let overlaps = |pair: &&[Chunk]| pair[0].logical.end > pair[1].logical.start;
        if let Some(pair) = chunks.windows(2).find(overlaps) {
            let (one, next) = (&pair[0].logical, &pair[1].logical);
            let problem = format!(
                "the chunk at address {} ends at {}, after the next one begins at {}",
                one.start, one.end, next.start
            );
            return Err(contradiction("Btrfs", problem));
        }
        let mut stripes = chunks.iter().flat_map(|chunk| &chunk.stripes);
        let first = stripes.next().map(|stripe| stripe.device);
        let has_several_devices = stripes.any(|stripe| Some(stripe.device) != first);
        Ok(ChunkMap {
            chunks,
            has_several_devices,
        })
    }

    /// Returns the place of logical addresses on the only device, in order. Ranges that follow each
    /// other on the device are merged. The first copy of DUP counts.
    ///
    /// # Errors
    /// Returns an error if the chunks are on several devices, if a chunk of these addresses has a
    /// profile other than single and DUP, or if no chunk holds one of them.
    pub fn on_device(&self, logical: Range<u64>) -> Result<Vec<Range<u64>>, PlaceError> {
        if self.has_several_devices {
            return Err(PlaceError::Devices);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut at = logical.start;
        while at < logical.end {
            let begins_before = |chunk: &Chunk| chunk.logical.start <= at;
            let after = self.chunks.partition_point(begins_before);
            let chunk = self.chunks[..after]
                .last()
                .filter(|chunk| at < chunk.logical.end)
                .ok_or(PlaceError::Absent(at))?;
            if !matches!(chunk.profile, Profile::Single | Profile::Dup) {
                return Err(PlaceError::Profile(chunk.profile));
            }
            let end = logical.end.min(chunk.logical.end);
            let start = chunk.stripes[0].start + (at - chunk.logical.start);
            let place = start..start + (end - at);
            match ranges.last_mut() {
                Some(last) if last.end == place.start => last.end = place.end,
                _ => ranges.push(place),
            }
            at = end;
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAID1: u64 = 1 << 4;
    const DATA: u64 = 1;

    /// Returns an item with stripes: the numbers of their devices, and their first bytes.
    fn item(bytes: u64, kind: u64, stripes: &[(u64, u64)]) -> Vec<u8> {
        let mut item = vec![0; HEAD_BYTES];
        item[..8].copy_from_slice(&bytes.to_le_bytes());
        item[24..32].copy_from_slice(&kind.to_le_bytes());
        item[44..46].copy_from_slice(&(stripes.len() as u16).to_le_bytes());
        for (device, start) in stripes {
            item.extend(device.to_le_bytes());
            item.extend(start.to_le_bytes());
            item.extend([7; 16]);
        }
        item
    }

    fn one(place: Range<u64>) -> Result<Vec<Range<u64>>, PlaceError> {
        Ok(std::iter::once(place).collect())
    }

    fn map(items: &[(u64, Vec<u8>)]) -> ChunkMap {
        let parse = |(logical, item): &(u64, Vec<u8>)| Chunk::parse(*logical, item);
        let chunks = items.iter().map(parse).collect::<Result<_, _>>();
        ChunkMap::new(chunks.expect("they are valid")).expect("they do not overlap")
    }

    /// Is each byte where its chunk has it, on either side of a border between chunks? Are ranges
    /// merged only if they follow each other on the device, and is a gap between chunks refused?
    #[test]
    fn addresses_are_translated_chunk_by_chunk() {
        let map = map(&[
            // Not in order. The second follows the first in addresses, the third on the device too.
            (300, item(100, DATA, &[(1, 2100)])),
            (100, item(100, DATA, &[(1, 5000)])),
            (200, item(100, DATA | DUP, &[(1, 2000), (1, 9000)])),
            (500, item(100, DATA, &[(1, 100)])),
        ]);
        let place = |logical: Range<u64>| map.on_device(logical);
        assert_eq!(place(100..200), one(5000..5100));
        assert_eq!(place(199..200), one(5099..5100));
        assert_eq!(place(200..201), one(2000..2001));
        assert_eq!(place(150..400), Ok(vec![5050..5100, 2000..2200]));
        assert_eq!(place(399..400), one(2199..2200));
        assert_eq!(place(250..250), Ok(Vec::new()));
        for (range, first) in [(99..101, 99), (350..501, 400), (599..601, 600)] {
            assert_eq!(place(range), Err(PlaceError::Absent(first)));
        }
    }

    /// Are chunks of other profiles refused if they hold the addresses, with the name of the
    /// profile? Are chunks on several devices refused for all addresses?
    #[test]
    fn other_profiles_and_devices_are_refused() {
        let raid = map(&[
            (100, item(100, DATA, &[(1, 5000)])),
            (200, item(100, DATA | RAID1, &[(1, 2000), (1, 8000)])),
            (300, item(100, DATA | 1 << 40, &[(1, 3000)])),
        ]);
        assert_eq!(raid.on_device(100..200), one(5000..5100));
        let text = |range| raid.on_device(range).unwrap_err().to_string();
        assert_eq!(
            text(150..250),
            "its data has the Btrfs profile RAID1; only single and DUP are supported"
        );
        assert_eq!(
            text(300..301),
            "its data has the Btrfs profile 0x10000000000; only single and DUP are supported"
        );
        let several = map(&[
            (100, item(100, DATA, &[(1, 5000)])),
            (200, item(100, DATA, &[(2, 5000)])),
        ]);
        assert_eq!(several.on_device(100..200), Err(PlaceError::Devices));
    }

    /// Are broken items refused without a panic: cut off at any byte, with bytes after the stripes,
    /// with no stripe or a wrong number of them, and with addresses beyond 64 bits? Are chunks that
    /// overlap refused?
    #[test]
    fn broken_items_are_refused() {
        let whole = item(100, DATA | DUP, &[(1, 2000), (1, 9000)]);
        assert!(Chunk::parse(0, &whole).is_ok());
        for end in 0..whole.len() {
            let parsed = Chunk::parse(0, &whole[..end]);
            assert!(parsed.is_err(), "{end} bytes: {parsed:?}");
        }
        let longer = [&whole[..], &[0]].concat();
        let mut many = whole.clone();
        many[44..46].fill(0xff);
        let cases = [
            (0, longer, "113 bytes do not fit 2 stripes"),
            (0, many, "112 bytes do not fit 65535 stripes"),
            (0, item(100, DATA, &[]), "0 stripes are not possible"),
            (
                0,
                item(100, DATA | RAID1, &[]),
                "0 stripes are not possible",
            ),
            (
                0,
                item(100, DATA, &[(1, 0), (1, 100)]),
                "the profile single",
            ),
            (0, item(100, DATA | DUP, &[(1, 0)]), "the profile DUP"),
            (0, item(0, DATA, &[(1, 0)]), "a length of 0 bytes"),
            (
                u64::MAX,
                item(100, DATA, &[(1, 0)]),
                "a length of 100 bytes",
            ),
            (0, item(100, DATA, &[(1, u64::MAX - 99)]), "a stripe of 100"),
        ];
        for (logical, item, says) in cases {
            let text = Chunk::parse(logical, &item).unwrap_err().to_string();
            assert!(text.contains(says), "{text}");
        }
        let chunk = |logical| Chunk::parse(logical, &item(100, DATA, &[(1, 0)])).unwrap();
        assert!(ChunkMap::new(vec![chunk(100), chunk(0)]).is_ok());
        let text = ChunkMap::new(vec![chunk(99), chunk(0)]).unwrap_err();
        let says = "Btrfs: the chunk at address 0 ends at 100, after the next one begins at 99";
        assert_eq!(text.to_string(), says);
    }
}
