//! SCSI: the host's decoding of a drive's data, and the model drive's decoding of commands.

use std::sync::LazyLock;

use traxtent_model::drive::Drive;
use traxtent_model::geometry::Place;
use traxtent_model::profile::builtin;
use traxtent_probe::ScsiTarget;
use traxtent_probe::{Target, Timing};
use traxtent_scsi::diagnostic::{TranslateRequest, Translation, decode_supported};
use traxtent_scsi::inquiry::{Inquiry, VitalPage};
use traxtent_scsi::mode::{CachingPage, FormatPage, GeometryPage, ModeData, pages};
use traxtent_scsi::{
    Capacity, Command, DataTransfer, DefectList, DefectWidth, DeviceServer, ModeWidth, Reply,
    Sense, SenseFormat, Status, Transport, TransportError,
};
use traxtent_units::request::Request;
use traxtent_units::{Cylinder, Lbn, SimTime, Surface};

/// A command: decoded input is encoded and decoded to the same command.
pub(crate) fn command(input: &[u8]) {
    if let Ok(command) = Command::decode(input) {
        assert_eq!(Command::decode(&command.encode()), Ok(command));
    }
}

/// Sense data: encoded and decoded again in the format that has room for everything.
pub(crate) fn sense(input: &[u8]) {
    if let Ok(sense) = Sense::decode(input) {
        assert_eq!(
            Sense::decode(&sense.encode(SenseFormat::Descriptors)),
            Ok(sense)
        );
        assert!(Sense::decode(&sense.encode(SenseFormat::Fixed)).is_ok());
        assert!(!sense.to_string().is_empty());
    }
}

/// INQUIRY data: encoded and decoded again.
pub(crate) fn inquiry(input: &[u8]) {
    if let Ok(inquiry) = Inquiry::decode(input) {
        assert_eq!(Inquiry::decode(&inquiry.encode()), Ok(inquiry));
    }
}

/// Pages of vital product data: encoded and decoded again.
pub(crate) fn vital(input: &[u8]) {
    if let Ok(page) = VitalPage::decode(input) {
        assert_eq!(VitalPage::decode(&page.encode()), Ok(page));
    }
}

/// Capacities: encoded and decoded again.
pub(crate) fn capacity(input: &[u8]) {
    if let Ok(capacity) = Capacity::decode_16(input) {
        assert_eq!(Capacity::decode_16(&capacity.encode_16()), Ok(capacity));
        assert!(capacity.physical_bytes() >= capacity.logical_bytes);
    }
    if let Ok(capacity) = Capacity::decode_10(input) {
        assert_eq!(Capacity::decode_10(&capacity.encode_10()), Ok(capacity));
    }
}

/// Requests and responses of address translation: encoded and decoded again.
pub(crate) fn translate(input: &[u8]) {
    if let Ok(request) = TranslateRequest::decode(input) {
        let bytes = request.encode().expect("decoded input can be encoded");
        assert_eq!(TranslateRequest::decode(&bytes), Ok(request));
    }
    if let Ok(translation) = Translation::decode(input) {
        let bytes = translation.encode().expect("decoded input can be encoded");
        assert_eq!(Translation::decode(&bytes), Ok(translation));
    }
    if let Ok(pages) = decode_supported(input) {
        assert!(pages.len() < input.len());
    }
}

/// Defect lists: the complete part is encoded and decoded again.
pub(crate) fn defects(input: &[u8]) {
    for width in [DefectWidth::Ten, DefectWidth::Twelve] {
        let Ok(list) = DefectList::decode(width, input) else {
            continue;
        };
        let there = DefectList::new(list.primary, list.grown, list.format, list.addresses);
        let bytes = there.encode(width).expect("decoded input can be encoded");
        assert_eq!(DefectList::decode(width, &bytes), Ok(there));
    }
}

/// Mode parameters: the pages are parts of the input, and writing what was read changes nothing.
pub(crate) fn mode(input: &[u8]) {
    for width in [ModeWidth::Six, ModeWidth::Ten] {
        let Ok(data) = ModeData::decode(width, input) else {
            continue;
        };
        let mut length = 0;
        for page in pages(data.pages) {
            length += page.bytes.len();
            let mut copy = page.bytes.to_vec();
            CachingPage::decode(&copy).apply(&mut copy);
            assert_eq!(copy, page.bytes);
            let format = FormatPage::decode(page.bytes);
            assert_eq!(FormatPage::decode(&format.encode()), format);
            let geometry = GeometryPage::decode(page.bytes);
            assert_eq!(GeometryPage::decode(&geometry.encode()), geometry);
        }
        assert!(length <= data.pages.len());
    }
}

static DRIVE: LazyLock<Drive> = LazyLock::new(|| {
    let profile = builtin("hp-c2247").expect("a built-in drive");
    Drive::new(&profile).expect("a built-in drive is valid")
});

/// The model drive handles any sequence of commands. Each is a length and that many bytes, followed
/// by a length and that many bytes of data. Responses have sense data unless their status is good,
/// and the drive's time never goes back.
pub(crate) fn device(input: &[u8]) {
    let mut server = DeviceServer::new(DRIVE.clone());
    let mut now = SimTime::ZERO;
    let mut rest = input;
    for _ in 0..32 {
        let (Some(command), Some(data)) = (chunk(&mut rest), chunk(&mut rest)) else {
            return;
        };
        let response = server.execute(now, command, data);
        assert!(response.completed >= now);
        assert_eq!(response.sense.is_empty(), response.status == Status::Good);
        if !response.sense.is_empty() {
            Sense::decode(&response.sense).expect("a drive's own sense data");
        }
        now = response.completed;
    }
}

fn chunk<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&length, bytes) = rest.split_first()?;
    let (chunk, others) = bytes.split_at_checked(length.into())?;
    *rest = others;
    Some(chunk)
}

/// A drive whose responses come from the input: each is a status, a length, and that many bytes of
/// data or of sense data.
struct ArbitraryDrive<'a>(&'a [u8]);

impl Transport for ArbitraryDrive<'_> {
    fn now(&self) -> SimTime {
        SimTime::ZERO
    }
    fn wait_until(&mut self, _: SimTime) {}
    fn execute(&mut self, _: &[u8], data: DataTransfer<'_>) -> Result<Reply, TransportError> {
        let gone = || TransportError::Unavailable("the input is exhausted".to_owned());
        let (&status, rest) = self.0.split_first().ok_or_else(gone)?;
        self.0 = rest;
        let bytes = chunk(&mut self.0).ok_or_else(gone)?;
        let status = match status {
            0 => Status::Good,
            1 => Status::Busy,
            2 => Status::CheckCondition,
            other => Status::Other(other),
        };
        let (mut received, mut sense) = (0, Vec::new());
        if status == Status::CheckCondition {
            sense = bytes.to_vec();
        }
        if let DataTransfer::In(room) = data
            && status != Status::Busy
        {
            received = bytes.len().min(room.len());
            room[..received].copy_from_slice(&bytes[..received]);
        }
        let (sent, completed) = (SimTime::ZERO, SimTime::ZERO);
        Ok(Reply {
            status,
            received,
            sense,
            timing: Timing { sent, completed },
        })
    }
}

/// A host handles a drive whose responses are all arbitrary.
pub(crate) fn host(input: &[u8]) {
    let Ok(mut target) = ScsiTarget::open(ArbitraryDrive(input)) else {
        return;
    };
    let last = Lbn(target.identity().capacity.0.saturating_sub(1));
    let place = Place {
        cylinder: Cylinder(1),
        surface: Surface(1),
        slot: 1,
    };
    let _ = target.switch_caching(false);
    let _ = target.request(Request::read(last, 1));
    let _ = target.translate(last);
    let _ = target.translate_back(place);
    let _ = target.defects();
    let _ = target.switch_caching(true);
}
