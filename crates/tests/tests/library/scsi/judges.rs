//! Our bytes decoded by another implementation of these formats: the programs of sg3_utils.

use std::io::Write;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use traxtent_scsi::inquiry::{BlockLimits, Characteristics, Inquiry, Rotation, VitalPage, Zoned};
use traxtent_scsi::{AdditionalSense, FieldPointer, Sense, SenseFormat, SenseKey};

fn text(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the program's output for the bytes, given as hexadecimal text on its standard input.
fn says(program: &Path, bytes: &[u8]) -> String {
    let mut child = Process::new(program)
        .arg("--inhex=-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    input
        .unwrap()
        .write_all(text(bytes).join(" ").as_bytes())
        .unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[track_caller]
fn assert_says(printed: &str, expected: &[&str]) {
    for line in expected {
        assert!(printed.contains(line), "{line:?} is not in:\n{printed}");
    }
}

/// Does `sg_inq` decode our INQUIRY data to the values that we encoded?
#[test]
fn sg_inq_reads_our_inquiry() {
    let program = testkit::tool!("sg_inq");
    let inquiry = Inquiry {
        device_type: 0,
        connected: true,
        removable: false,
        version: 6,
        queueing: true,
        vendor: "QUANTUM".into(),
        product: "ATLAS 10K II".into(),
        revision: "DA40".into(),
    };
    assert_says(
        &says(&program, &inquiry.encode()),
        &[
            "PQual=0  PDT=0  RMB=0",
            "version=0x06",
            "Resp_data_format=2",
            "CmdQue=1",
            "length=36 (0x24)",
            "Vendor identification: QUANTUM",
            "Product identification: ATLAS 10K II",
            "Product revision level: DA40",
        ],
    );
}

/// Does `sg_vpd` decode our pages to the values that we encoded?
#[test]
fn sg_vpd_reads_our_pages() {
    let program = testkit::tool!("sg_vpd");
    let limits = BlockLimits {
        granularity: 8,
        longest: 65_535,
        optimal: 1024,
    };
    assert_says(
        &says(&program, &VitalPage::BlockLimits(limits).encode()),
        &[
            "Optimal transfer length granularity: 8 blocks",
            "Maximum transfer length: 65535 blocks",
            "Optimal transfer length: 1024 blocks",
        ],
    );
    let drive = Characteristics {
        rotation: Rotation::Rpm(10_025),
        form_factor: 2,
        zoned: Zoned::DeviceManaged,
    };
    assert_says(
        &says(&program, &VitalPage::Characteristics(drive).encode()),
        &[
            "Nominal rotation rate: 10025 rpm",
            "3.5 inch",
            // The wording differs between versions of sg_vpd. In SBC-4, 2 is device managed.
            "ZONED=2",
        ],
    );
    assert_says(
        &says(&program, &VitalPage::Serial("A1 B2".into()).encode()),
        &["Unit serial number: A1 B2"],
    );
}

/// Does `sg_decode_sense` decode our sense data, in both formats, to the values that we encoded?
#[test]
fn sg_decode_sense_reads_our_sense() {
    let program = testkit::tool!("sg_decode_sense");
    let says = |sense: Sense, format| {
        let output = Process::new(&program)
            .args(text(&sense.encode(format)))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let unreadable = Sense {
        information: Some(0x1122_3344),
        ..Sense::new(SenseKey::Medium, AdditionalSense::UNRECOVERED_READ_ERROR)
    };
    let invalid = Sense {
        field: Some(FieldPointer {
            in_command: true,
            byte: 2,
        }),
        ..Sense::new(
            SenseKey::IllegalRequest,
            AdditionalSense::INVALID_FIELD_IN_COMMAND,
        )
    };
    for format in [SenseFormat::Fixed, SenseFormat::Descriptors] {
        assert_says(
            &says(unreadable, format),
            &[
                "current",
                "Sense key: Medium Error",
                "Unrecovered read error",
                "11223344",
            ],
        );
        assert_says(
            &says(invalid, format),
            &[
                "Sense key: Illegal Request",
                "Invalid field in cdb",
                "Error in Command: byte 2",
            ],
        );
    }
}
