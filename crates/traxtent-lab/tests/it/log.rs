//! Logs whose segments are tracks, on the model drive.

use traxtent_lab::{Bench, log};

/// Is a log around a zone boundary made of whole tracks of several sizes, cleaned, and opened after
/// every power cut without loss of synced data?
#[test]
fn a_log_works_where_tracks_change_size() {
    let bench = Bench::new("atlas10k2", 1).unwrap();
    let measured = log::working_log(&bench).unwrap();
    let &[tracks, sizes, copied, lost] = measured.as_slice() else {
        panic!("{measured:?}");
    };
    assert_eq!((tracks, lost), (1.0, 0.0));
    assert!(
        sizes >= 2.0 && copied > 1000.0,
        "{sizes} sizes, {copied} copied"
    );
}
