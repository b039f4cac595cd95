//! The structures on the members of a volume, and orders to a volume.

use traxtent_server::volume::VolumeOrder;
use traxtent_volume::copies::superblock as copies;
use traxtent_volume::record::JournalRecord;
use traxtent_volume::superblock::{SUPERBLOCK_BYTES, Superblock, reseal};
use uuid::Uuid;

use super::text;

/// A superblock, as it is and with a correct checksum, which hardly any input has. With the
/// checksum, decoded input is encoded and decoded again.
pub(crate) fn superblock(input: &[u8]) {
    let mut bytes = input.to_vec();
    bytes.resize(SUPERBLOCK_BYTES, 0);
    if let Err(error) = Superblock::decode(&bytes) {
        assert!(!error.to_string().contains('\n'));
    }
    reseal(&mut bytes);
    if let Ok(superblock) = Superblock::decode(&bytes) {
        let again = superblock.encode();
        assert_eq!(Superblock::decode(&again), Ok(superblock));
    }
}

/// The content of the device of a volume with replicas: a superblock, with a corrected checksum
/// too, and a survey. Both are decoded from the same input, encoded, and decoded again.
pub(crate) fn copies(input: &[u8]) {
    let mut bytes = input.to_vec();
    bytes.resize(copies::SUPERBLOCK_BYTES, 0);
    if let Err(error) = copies::ReplicatedSuperblock::decode(&bytes) {
        assert!(!error.to_string().contains('\n'));
    }
    copies::reseal(&mut bytes);
    if let Ok(superblock) = copies::ReplicatedSuperblock::decode(&bytes) {
        let inside = superblock.layout_range();
        assert!(inside.start <= inside.end && inside.end.0 <= superblock.sectors.0);
        assert_eq!(
            copies::ReplicatedSuperblock::decode(&superblock.encode()),
            Ok(superblock)
        );
    }
    if let Some(survey) = copies::decode_survey(input, 1 << 20) {
        let again = copies::encode_survey(&survey);
        assert_eq!(copies::decode_survey(&again, 1 << 20), Some(survey));
    }
}

/// An order to a served volume: accepted input is written and accepted again.
pub(crate) fn order(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(order) = serde_json::from_str::<VolumeOrder>(text) {
        let again = serde_json::to_string(&order).expect("it is plain data");
        assert_eq!(
            serde_json::from_str::<VolumeOrder>(&again).ok(),
            Some(order)
        );
    }
}

/// A record of the journal, at the beginning of the input. An accepted record is sealed and read
/// again.
pub(crate) fn record(input: &[u8]) {
    let volume = input
        .get(16..32)
        .and_then(|bytes| Uuid::from_slice(bytes).ok());
    let number = |at: usize| {
        let bytes = input
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let found = JournalRecord::read(
        input,
        number(56),
        volume.unwrap_or_default(),
        number(32),
        512,
    );
    let Some((record, data)) = found else { return };
    assert_eq!(record.data_sectors() * 512, data.len());
    let mut bytes = vec![0; record.sectors(512) * 512];
    let front = bytes.len() - data.len();
    bytes[front..].copy_from_slice(data);
    record.seal(&mut bytes, 512);
    let again = JournalRecord::read(&bytes, record.position, record.volume, record.epoch, 512);
    assert_eq!(again, Some((record.clone(), data)));
}
