//! A SCSI drive as a probe's target: converts requests to commands, and responses to places and
//! times.

mod caching;
mod read_defects;

pub use caching::CachingOff;

use std::ops::RangeInclusive;

use crate::{Defects, Identity, Target, TargetError, Timing};
use traxtent_model::geometry::Place;
use traxtent_scsi::ScsiError;
use traxtent_scsi::diagnostic::{TranslateRequest, Translation};
use traxtent_scsi::inquiry::{
    BLOCK_LIMITS_PAGE, BlockLimits, Inquiry, SERIAL_PAGE, SUPPORTED_PAGES, VitalPage,
};
use traxtent_scsi::{AdditionalSense, Sense, SenseKey};
use traxtent_scsi::{Address, AddressFormat};
use traxtent_scsi::{BlockOp, Blocks, Command, Compare, Width};
use traxtent_scsi::{Capacity, TOO_LARGE};
use traxtent_scsi::{DataTransfer, Reply, Status, Transport, TransportError};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime, Span};

/// A SCSI drive that is being probed.
///
/// It only reads, unless [`ScsiTarget::allow_writes`] has been called. When it is dropped, it
/// restores the caching page that [`ScsiTarget::suspend_caching`] or [`ScsiTarget::change_caching`]
/// has changed.
#[derive(Debug)]
pub struct ScsiTarget<T: Transport> {
    transport: T,
    inquiry: Inquiry,
    identity: Identity,
    limits: BlockLimits,
    buffer: Vec<u8>,
    writes: bool,
    /// Whether the drive has successfully translated an address.
    has_translated: bool,
    suspended: Option<caching::SavedCachingPage>,
}

/// The reason why a command returned no result.
#[derive(Clone, Debug, PartialEq)]
enum Failure {
    /// The drive reported the reason.
    Sense(Sense),
    /// Another reason, such as a transport error or an invalid response.
    Target(TargetError),
}

/// The maximum length of a request in bytes.
const TRANSFER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Plausible sizes of a logical sector in bytes.
const SECTOR_BYTES: RangeInclusive<u32> = 128..=65_536;
/// The largest number of times that a command is sent to a drive that is busy, or that reports a
/// unit attention or a deferred error.
const ATTEMPTS_MAX: u32 = 20;
/// The pause before a command is sent again to a busy drive.
const RETRY_PAUSE: Span = Span(100_000_000_000);
/// The allocation length for one translation, in bytes. A drive may return several addresses.
const TRANSLATION_BYTES_MAX: u16 = 6 + 32 * 8;

impl Failure {
    /// Converts the failure to an error about `what`, the requested operation.
    fn into_target_error(self, what: &'static str) -> TargetError {
        match self {
            Failure::Target(error) => error,
            Failure::Sense(sense) if sense.is_unsupported() => TargetError::Unsupported(what),
            Failure::Sense(sense) => TargetError::Refused(format!("{what}: {sense}")),
        }
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Failure {
        Failure::Target(match error {
            TransportError::Unavailable(why) => TargetError::Gone(why),
            error => TargetError::Refused(error.to_string()),
        })
    }
}

impl From<ScsiError> for Failure {
    fn from(error: ScsiError) -> Failure {
        Failure::Target(TargetError::Refused(error.to_string()))
    }
}

impl<T: Transport> ScsiTarget<T> {
    /// Opens a drive and reads its identification.
    ///
    /// # Errors
    /// Returns an error if no device is connected, if the drive does not respond, is not a disk, or
    /// has an implausible sector size, or if it refuses INQUIRY or READ CAPACITY.
    pub fn open(mut transport: T) -> Result<ScsiTarget<T>, TargetError> {
        let drive = &mut transport;
        let inquiry =
            standard_inquiry(drive).map_err(|error| error.into_target_error("INQUIRY"))?;
        if inquiry.device_type != 0 || !inquiry.connected {
            let kind = inquiry.device_type;
            return refuse(if inquiry.connected {
                format!("not a disk: device type {kind:#x}")
            } else {
                "no device is connected".to_owned()
            });
        }
        let capacity = capacity(drive).map_err(|error| error.into_target_error("READ CAPACITY"))?;
        let listed = match vital_page(drive, SUPPORTED_PAGES) {
            Ok(VitalPage::Supported(pages)) => pages,
            Err(Failure::Target(gone @ TargetError::Gone(_))) => return Err(gone),
            _ => Vec::new(),
        };
        let mut page = |code: u8| {
            let listed = listed.contains(&code);
            listed.then(|| vital_page(drive, code).ok()).flatten()
        };
        let serial = match page(SERIAL_PAGE) {
            Some(VitalPage::Serial(serial)) => serial,
            _ => String::new(),
        };
        let limits = match page(BLOCK_LIMITS_PAGE) {
            Some(VitalPage::BlockLimits(limits)) => limits,
            _ => BlockLimits::default(),
        };
        let identity = Identity {
            vendor: inquiry.vendor.clone(),
            product: inquiry.product.clone(),
            serial,
            capacity: Sectors(capacity.last_lbn.saturating_add(1)),
            logical_bytes: capacity.logical_bytes,
            physical_bytes: capacity.physical_bytes(),
        };
        Ok(ScsiTarget {
            transport,
            inquiry,
            identity,
            limits,
            buffer: Vec::new(),
            writes: false,
            has_translated: false,
            suspended: None,
        })
    }

    /// Allows requests to write. They write zeros.
    pub fn allow_writes(&mut self) {
        self.writes = true;
    }

    /// The drive's response to INQUIRY.
    pub fn inquiry(&self) -> &Inquiry {
        &self.inquiry
    }

    /// Returns a page of vital product data.
    ///
    /// # Errors
    /// Returns an error if the drive does not return the page.
    pub fn vital_page(&mut self, code: u8) -> Result<VitalPage, TargetError> {
        vital_page(&mut self.transport, code)
            .map_err(|error| error.into_target_error("a page of vital product data"))
    }

    /// The transport to the drive.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the command for a request, and the number of bytes that it transfers.
    fn command(&self, request: &Request) -> Result<(Command, u64), TargetError> {
        let Request {
            lbn: Lbn(lbn),
            sectors,
            op,
            fua,
        } = *request;
        let width = Width::needed(lbn, sectors);
        let bytes = u64::from(sectors) * u64::from(self.identity.logical_bytes);
        let (op, bytes) = match op {
            Op::Read => (BlockOp::Read, bytes),
            Op::Write if self.writes => (BlockOp::Write, bytes),
            Op::Write => return refuse("writes are not allowed".to_owned()),
            Op::Verify => (BlockOp::Verify(Compare::Nothing), 0),
            Op::Flush => {
                let flush = Command::SynchronizeCache {
                    width: Width::Ten,
                    lbn: 0,
                    sectors: 0,
                    immediate: false,
                };
                return Ok((flush, 0));
            }
        };
        let longest = u64::from(self.limits.longest);
        if sectors == 0 {
            return refuse(format!("zero sectors at LBN {lbn}"));
        }
        if bytes > TRANSFER_BYTES_MAX {
            return refuse(format!(
                "{bytes} bytes exceed the limit of {TRANSFER_BYTES_MAX} bytes per request"
            ));
        }
        if bytes > 0 && longest > 0 && u64::from(sectors) > longest {
            return refuse(format!(
                "{sectors} sectors exceed the drive's limit of {longest} sectors per request"
            ));
        }
        let blocks = Blocks {
            op,
            width,
            lbn,
            sectors,
            dpo: fua,
            fua,
        };
        Ok((Command::Blocks(blocks), bytes))
    }

    /// Translates an address. Returns `None` if the address is in a reserved area or cannot be
    /// encoded.
    fn translation(
        &mut self,
        address: Address,
        supplied: AddressFormat,
        wanted: AddressFormat,
    ) -> Result<Option<Address>, Failure> {
        let request = TranslateRequest {
            supplied,
            wanted,
            address,
        };
        // No drive has an address that cannot be encoded.
        let Ok(page) = request.encode() else {
            return Ok(None);
        };
        let send = Command::SendDiagnostic {
            page_format: true,
            self_test: false,
            length: page.len() as u16,
        };
        run(&mut self.transport, &send, DataTransfer::Out(&page))?;
        let mut room = [0; TRANSLATION_BYTES_MAX as usize];
        let receive = Command::ReceiveDiagnostic {
            page: None,
            allocation: TRANSLATION_BYTES_MAX,
        };
        let reply = run(&mut self.transport, &receive, DataTransfer::In(&mut room))?;
        let translation = Translation::decode(&room[..reply.received])?;
        if translation.translated != wanted {
            let why = "the drive returned an address format other than the requested one";
            return Err(Failure::Target(TargetError::Refused(why.to_owned())));
        }
        self.has_translated = true;
        Ok(translation.addresses.first().copied())
    }
}

impl<T: Transport> Target for ScsiTarget<T> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> SimTime {
        self.transport.now()
    }

    fn wait_until(&mut self, at: SimTime) {
        self.transport.wait_until(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        let (command, bytes) = self.command(&request)?;
        self.buffer.resize(self.buffer.len().max(bytes as usize), 0);
        let buffer = &mut self.buffer[..bytes as usize];
        let data = match request.op {
            Op::Read => DataTransfer::In(buffer),
            Op::Write => {
                buffer.fill(0);
                DataTransfer::Out(buffer)
            }
            Op::Verify | Op::Flush => DataTransfer::None,
        };
        match run(&mut self.transport, &command, data) {
            Ok(reply) => Ok(reply.timing),
            Err(Failure::Sense(sense))
                if sense.key == SenseKey::Medium && matches!(request.op, Op::Read | Op::Verify) =>
            {
                Err(TargetError::Unreadable {
                    lbn: request.lbn,
                    sectors: request.sectors,
                })
            }
            Err(failure) => Err(failure.into_target_error(match request.op {
                Op::Read => "READ",
                Op::Write => "WRITE",
                Op::Flush => "SYNCHRONIZE CACHE",
                Op::Verify => "VERIFY",
            })),
        }
    }

    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        let what = "address translation";
        let Sectors(end) = self.identity.capacity;
        if lbn.0 >= end {
            return refuse(format!("LBN {lbn}: the drive ends before LBN {end}"));
        }
        let form = AddressFormat::of_block(lbn);
        match self.translation(Address::Block(lbn), form, AddressFormat::PhysicalSector) {
            Ok(Some(Address::Sector(place))) => Ok(place),
            Ok(_) => refuse(format!("LBN {lbn} is in a reserved area")),
            // The LBN exists, so the drive does not support the page or the format.
            Err(Failure::Sense(sense))
                if sense.code == AdditionalSense::INVALID_FIELD_IN_DATA && !self.has_translated =>
            {
                Err(TargetError::Unsupported(what))
            }
            Err(failure) => Err(failure.into_target_error(what)),
        }
    }

    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        let last = Lbn(self.identity.capacity.0.saturating_sub(1));
        let form = AddressFormat::of_block(last);
        match self.translation(Address::Sector(place), AddressFormat::PhysicalSector, form) {
            Ok(Some(Address::Block(lbn))) => Ok(Some(lbn)),
            Ok(_) => Ok(None),
            // The drive does not have such a place.
            Err(Failure::Sense(sense))
                if sense.code == AdditionalSense::INVALID_FIELD_IN_DATA && self.has_translated =>
            {
                Ok(None)
            }
            Err(Failure::Sense(sense)) if sense.code == AdditionalSense::INVALID_FIELD_IN_DATA => {
                // Or the drive does not translate at all. A translation of an existing LBN
                // distinguishes the two cases.
                self.translate(Lbn(0)).map(|_| None)
            }
            Err(failure) => Err(failure.into_target_error("address translation")),
        }
    }

    /// A track that is bad as a whole is listed with the slot [`traxtent_scsi::WHOLE_TRACK`].
    fn defects(&mut self) -> Result<Defects, TargetError> {
        let primary = read_defects::read_list(&mut self.transport, true)?;
        let grown = read_defects::read_list(&mut self.transport, false)?;
        Ok(Defects { primary, grown })
    }

    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        if on {
            return self.restore_caching();
        }
        let off = self.suspend_caching()?;
        if off.reads || off.read_ahead || off.prefetch {
            Ok(())
        } else {
            Err(TargetError::Unsupported("cache control"))
        }
    }
}

fn refuse<V>(why: String) -> Result<V, TargetError> {
    Err(TargetError::Refused(why))
}

/// Sends a command until the drive accepts it, at most [`ATTEMPTS_MAX`] times. A response with a
/// recovered error or without a sense key counts as success.
fn run<T: Transport>(
    transport: &mut T,
    command: &Command,
    mut data: DataTransfer<'_>,
) -> Result<Reply, Failure> {
    let bytes = command.encode();
    for _ in 0..ATTEMPTS_MAX {
        let again = match &mut data {
            DataTransfer::None => DataTransfer::None,
            DataTransfer::Out(bytes) => DataTransfer::Out(bytes),
            DataTransfer::In(room) => DataTransfer::In(room),
        };
        let reply = transport.execute(&bytes, again)?;
        match reply.status {
            Status::Good => return Ok(reply),
            Status::CheckCondition => {
                let sense = Sense::decode(&reply.sense)?;
                match sense.key {
                    SenseKey::NoSense | SenseKey::Recovered => return Ok(reply),
                    SenseKey::UnitAttention => {}
                    _ if sense.deferred => {}
                    _ => return Err(Failure::Sense(sense)),
                }
            }
            Status::Busy | Status::TaskSetFull => {
                transport.wait_until(transport.now() + RETRY_PAUSE);
            }
            Status::ReservationConflict => {
                let why = "another host has reserved the drive".to_owned();
                return Err(Failure::Target(TargetError::Refused(why)));
            }
            Status::Other(status) => {
                let why = format!("status {status:#04x}");
                return Err(Failure::Target(TargetError::Refused(why)));
            }
        }
    }
    let why = format!("the drive did not accept a command in {ATTEMPTS_MAX} attempts");
    Err(Failure::Target(TargetError::Refused(why)))
}

fn standard_inquiry<T: Transport>(transport: &mut T) -> Result<Inquiry, Failure> {
    let mut room = [0; 36];
    let command = Command::Inquiry {
        page: None,
        allocation: room.len() as u16,
    };
    let reply = run(transport, &command, DataTransfer::In(&mut room))?;
    Ok(Inquiry::decode(&room[..reply.received])?)
}

fn vital_page<T: Transport>(transport: &mut T, page: u8) -> Result<VitalPage, Failure> {
    let mut room = [0; 252];
    let command = Command::Inquiry {
        page: Some(page),
        allocation: room.len() as u16,
    };
    let reply = run(transport, &command, DataTransfer::In(&mut room))?;
    Ok(VitalPage::decode(&room[..reply.received])?)
}

/// Reads the capacity by READ CAPACITY(16), or by READ CAPACITY(10) if the drive does not support
/// the former.
fn capacity<T: Transport>(transport: &mut T) -> Result<Capacity, Failure> {
    let mut room = [0; 32];
    let command = Command::ReadCapacity16 {
        allocation: room.len() as u32,
    };
    let capacity = match run(transport, &command, DataTransfer::In(&mut room)) {
        Ok(reply) => Capacity::decode_16(&room[..reply.received])?,
        Err(Failure::Sense(sense)) if sense.is_unsupported() => {
            let reply = run(
                transport,
                &Command::ReadCapacity10,
                DataTransfer::In(&mut room[..8]),
            )?;
            let capacity = Capacity::decode_10(&room[..reply.received])?;
            if capacity.last_lbn == TOO_LARGE {
                return Err(Failure::Sense(sense));
            }
            capacity
        }
        Err(failure) => return Err(failure),
    };
    let bytes = capacity.logical_bytes;
    if !SECTOR_BYTES.contains(&bytes) {
        let (least, most) = (SECTOR_BYTES.start(), SECTOR_BYTES.end());
        let why = format!("implausible sector size of {bytes} bytes; expected {least} to {most}");
        return Err(Failure::Target(TargetError::Refused(why)));
    }
    Ok(capacity)
}
