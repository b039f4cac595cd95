//! Requests that a drive refuses.

use traxtent_model::drive::{Drive, RequestError, ServedBy};
use traxtent_model::profile::ReadAheadUntil;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime};

use super::tiny::{drain, read, tiny, tiny_with, write};

/// Is each impossible request refused with a message that names its kind, its LBN and the reason?
/// Is a read of the last sector accepted?
#[test]
fn impossible_requests_are_refused_with_a_reason() {
    let mut drive = Drive::new(&tiny()).unwrap();
    for (request, message) in [
        (
            read(1999, 2),
            "read of 2 sectors at LBN 1999: the drive ends before LBN 2000",
        ),
        (
            write(2000, 1),
            "write of 1 sector at LBN 2000: the drive ends before LBN 2000",
        ),
        (
            Request {
                op: Op::Verify,
                ..read(u64::MAX, u32::MAX)
            },
            "verify of 4294967295 sectors at LBN 18446744073709551615: the drive ends before LBN 2000",
        ),
        (read(7, 0), "read at LBN 7: zero sectors"),
        (
            Request {
                op: Op::Flush,
                ..read(7, 1)
            },
            "flush of 1 sector at LBN 7: a flush addresses no sectors",
        ),
    ] {
        let error = drive.submit(SimTime::ZERO, request).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let error = drive.submit(SimTime::ZERO, read(2000, 1)).unwrap_err();
    assert!(matches!(
        error,
        RequestError::BeyondEnd {
            lbn: 2000,
            capacity: 2000,
            ..
        }
    ));
    assert!(
        drive
            .submit(
                SimTime::ZERO,
                Request {
                    lbn: Lbn(1999),
                    ..read(0, 1)
                }
            )
            .is_ok()
    );
}

/// Does read-ahead continue despite a refused request?
#[test]
fn refused_requests_do_not_stop_read_ahead() {
    let profile = tiny_with(|p| p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd);
    let mut drive = Drive::new(&profile).unwrap();
    drive.serve(SimTime::ZERO, read(20, 10)).unwrap();
    let refused = drive.submit(SimTime::from_ms(3.05), read(1990, 11));
    assert!(refused.is_err());
    let next = drive.serve(SimTime::from_ms(5.0), read(30, 10)).unwrap();
    assert_eq!(next.served, ServedBy::Buffer);
}

/// Do refused requests leave the drive unchanged, including its next tag and all later times?
#[test]
fn refused_requests_leave_no_trace() {
    let mut drive = Drive::new(&tiny()).unwrap();
    drive.submit(SimTime::ZERO, write(20, 10)).unwrap();
    let mut other = drive.clone();
    for refused in [
        write(1990, 11),
        read(3, 0),
        write(u64::MAX, 9),
        Request {
            sectors: 1,
            ..Request::flush()
        },
    ] {
        other.submit(SimTime::from_ms(1.0), refused).unwrap_err();
    }
    let rest = |mut drive: Drive| {
        let mut done = Vec::new();
        for (ms, request) in [
            (1.5, read(25, 10)),
            (2.0, write(500, 5)),
            (30.0, Request::flush()),
        ] {
            drain(&mut drive, Some(SimTime::from_ms(ms)), &mut done);
            drive.submit(SimTime::from_ms(ms), request).unwrap();
        }
        drain(&mut drive, None, &mut done);
        done
    };
    assert_eq!(rest(drive), rest(other));
}
