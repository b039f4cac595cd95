//! The model drive as a SCSI device, with commands and data as input, and status, data and sense
//! data as output.
//!
//! Commands that need the media or the buffer take the time that [`Drive`] computes, but the
//! response to an immediate SYNCHRONIZE CACHE does not wait for it. A translation and a defect list
//! each take the profile's `scsi.translate_ms`. A VERIFY that the drive ignores takes 0.1 ms, and
//! all other commands take no time. Commands are executed one at a time. The drive stores no data:
//! reads return zeros, and a VERIFY that compares data is refused. A slipped sector is in the
//! primary defect list, a remapped one in the grown list.

use super::address::{Address, AddressFormat, WHOLE_TRACK};
use super::capacity::Capacity;
use super::command::{BlockOp, Blocks, Command, Compare, ModeWidth, ReadDefectData};
use super::defects::DefectList;
use super::diagnostic::{
    SUPPORTED_DIAGNOSTICS, TRANSLATE_ADDRESS, TranslateRequest, Translation, encode_supported,
};
use super::faults::{Compliance, Faults};
use super::inquiry::{
    BLOCK_LIMITS_PAGE, BlockLimits, CHARACTERISTICS_PAGE, Characteristics, Designator,
    IDENTIFICATION_PAGE, Inquiry, Rotation, SERIAL_PAGE, SUPPORTED_PAGES, VitalPage,
};
use super::modes::ModePages;
use super::sense::{AdditionalSense, FieldPointer, Sense, SenseFormat, SenseKey};
use super::transport::Status;
use super::wire::ScsiError;
use traxtent_model::drive::{Caching, Drive, RequestError};
use traxtent_model::geometry::{Geometry, Occupant, Place, Replacement};
use traxtent_model::profile::Profile;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};

/// A model drive that executes commands.
#[derive(Clone, Debug)]
pub struct DeviceServer {
    drive: Drive,
    modes: ModePages,
    /// The response to the last SEND DIAGNOSTIC page that the drive accepted.
    diagnostic: Option<Vec<u8>>,
    faults: Faults,
    /// Whether the current command has used the media or the buffer, or claims to have done so.
    worked: bool,
}

/// The drive's response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandResponse {
    /// The status of the command.
    pub status: Status,
    /// Data for the host.
    pub data: Payload,
    /// Sense data, empty unless the status is [`Status::CheckCondition`].
    pub sense: Vec<u8>,
    /// The time of completion.
    pub completed: SimTime,
    /// Whether the command used the drive's media or buffer, or claims to have done so.
    pub worked: bool,
}

/// Data for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// These bytes.
    Bytes(Vec<u8>),
    /// This number of zero bytes, the response to a read.
    Zeros(u64),
}

impl Payload {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Bytes(bytes) => bytes.len() as u64,
            Payload::Zeros(length) => *length,
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies as many bytes as fit into `room`, and returns their number.
    pub fn copy_to(&self, room: &mut [u8]) -> usize {
        let length = usize::try_from(self.len()).map_or(room.len(), |n| n.min(room.len()));
        match self {
            Payload::Bytes(bytes) => room[..length].copy_from_slice(&bytes[..length]),
            Payload::Zeros(_) => room[..length].fill(0),
        }
        length
    }
}

/// The result of a command that succeeded, and the time at which it ended.
struct CommandSuccess {
    data: Payload,
    at: SimTime,
    /// Sense data that accompanies valid data.
    remark: Option<Sense>,
}

/// The reason why a command failed, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The reason.
    pub sense: Sense,
    /// The time at which the command ended.
    pub at: SimTime,
}

impl CommandSuccess {
    fn nothing(at: SimTime) -> CommandSuccess {
        CommandSuccess::bytes(Vec::new(), usize::MAX, at)
    }

    fn bytes(mut bytes: Vec<u8>, allocation: usize, at: SimTime) -> CommandSuccess {
        bytes.truncate(allocation);
        CommandSuccess {
            data: Payload::Bytes(bytes),
            at,
            remark: None,
        }
    }
}

/// The time for a VERIFY that the drive only claims to have carried out.
const IGNORED_VERIFY_TIME: Span = Span(100_000_000);

type Outcome = Result<CommandSuccess, CommandFailure>;

fn illegal(at: SimTime, code: AdditionalSense, field: Option<FieldPointer>) -> CommandFailure {
    let sense = Sense {
        field,
        ..Sense::new(SenseKey::IllegalRequest, code)
    };
    CommandFailure { sense, at }
}

/// Returns the error for an invalid field of the command.
fn bad_command(at: SimTime, byte: u16) -> CommandFailure {
    let field = FieldPointer {
        in_command: true,
        byte,
    };
    illegal(at, AdditionalSense::INVALID_FIELD_IN_COMMAND, Some(field))
}

/// Returns the error for an invalid field of the data.
fn bad_data(at: SimTime, byte: u16) -> CommandFailure {
    let field = FieldPointer {
        in_command: false,
        byte,
    };
    illegal(at, AdditionalSense::INVALID_FIELD_IN_DATA, Some(field))
}

fn too_short(at: SimTime) -> CommandFailure {
    illegal(at, AdditionalSense::PARAMETER_LIST_LENGTH_ERROR, None)
}

impl DeviceServer {
    /// Creates a device from a drive.
    pub fn new(drive: Drive) -> DeviceServer {
        DeviceServer {
            modes: ModePages::new(&drive),
            drive,
            diagnostic: None,
            faults: Faults::default(),
            worked: false,
        }
    }

    /// Returns the device with the given faults. The transport implements
    /// [`Faults::unresponsive_after`].
    pub fn with_faults(mut self, faults: Faults) -> DeviceServer {
        self.faults = faults;
        self
    }

    /// The drive of this device.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Executes a command that arrives at `now` with the data that the host sends. `now` must not
    /// be earlier than the end of the last command.
    pub fn execute(&mut self, now: SimTime, command: &[u8], sent: &[u8]) -> CommandResponse {
        self.worked = false;
        let outcome = Command::decode(command)
            .map_err(|error| undecoded(now, &error))
            .and_then(|command| self.serve(now, command, sent));
        let (data, at, sense) = match outcome {
            Ok(done) => (done.data, done.at, done.remark),
            Err(failed) => (Payload::Bytes(Vec::new()), failed.at, Some(failed.sense)),
        };
        CommandResponse {
            status: if sense.is_some() {
                Status::CheckCondition
            } else {
                Status::Good
            },
            data,
            sense: sense.map_or_else(Vec::new, |sense| sense.encode(self.sense_format())),
            completed: at,
            worked: self.worked,
        }
    }

    /// Returns the fixed format, or the descriptor format if 32 bits cannot express all LBNs.
    fn sense_format(&self) -> SenseFormat {
        match u32::try_from(self.drive.geometry().capacity().0) {
            Ok(_) => SenseFormat::Fixed,
            Err(_) => SenseFormat::Descriptors,
        }
    }

    fn serve(&mut self, now: SimTime, command: Command, sent: &[u8]) -> Outcome {
        match command {
            Command::TestUnitReady => Ok(CommandSuccess::nothing(now)),
            Command::RequestSense {
                descriptors,
                allocation,
            } => {
                let bytes = no_sense(descriptors);
                Ok(CommandSuccess::bytes(bytes, allocation.into(), now))
            }
            Command::Inquiry { page, allocation } => {
                let bytes = match page {
                    None => inquiry(self.drive.profile()).encode(),
                    Some(page) => vital_page(&self.drive, page)
                        .ok_or_else(|| bad_command(now, 2))?
                        .encode(),
                };
                Ok(CommandSuccess::bytes(bytes, allocation.into(), now))
            }
            Command::ReadCapacity10 => {
                let bytes = capacity(&self.drive).encode_10();
                Ok(CommandSuccess::bytes(bytes, usize::MAX, now))
            }
            Command::ReadCapacity16 { allocation } => {
                let bytes = capacity(&self.drive).encode_16();
                Ok(CommandSuccess::bytes(bytes, allocation as usize, now))
            }
            Command::Blocks(blocks) => self.blocks(now, &blocks, sent),
            Command::SynchronizeCache {
                lbn,
                sectors,
                immediate,
                ..
            } => {
                self.in_range(now, lbn, sectors)?;
                let done = self.request(now, Request::flush())?;
                Ok(CommandSuccess::nothing(if immediate { now } else { done }))
            }
            Command::SendDiagnostic {
                page_format,
                length,
                ..
            } => match parameters(now, page_format, length.into(), sent)? {
                None => Ok(CommandSuccess::nothing(now)),
                Some(page) => self.send_diagnostic(now, page),
            },
            Command::ReceiveDiagnostic { page, allocation } => {
                let bytes = self
                    .receive_diagnostic(page)
                    .ok_or_else(|| bad_command(now, 2))?;
                Ok(CommandSuccess::bytes(bytes, allocation.into(), now))
            }
            Command::ReadDefectData(read) => self.read_defects(now, &read),
            Command::ModeSense(sense) => {
                let bytes = self
                    .modes
                    .sense(&self.drive, &sense)
                    .ok_or_else(|| bad_command(now, 2))?;
                Ok(CommandSuccess::bytes(bytes, sense.allocation.into(), now))
            }
            Command::ModeSelect {
                width,
                page_format,
                save,
                length,
            } => match parameters(now, page_format, length.into(), sent)? {
                None => Ok(CommandSuccess::nothing(now)),
                Some(data) => self.mode_select(now, width, data, save),
            },
        }
    }

    fn in_range(&self, now: SimTime, lbn: u64, sectors: u32) -> Result<(), CommandFailure> {
        let end = lbn.checked_add(sectors.into());
        if end.is_some_and(|end| end <= self.drive.geometry().capacity().0) {
            Ok(())
        } else {
            Err(illegal(now, AdditionalSense::LBN_OUT_OF_RANGE, None))
        }
    }

    fn blocks(&mut self, now: SimTime, blocks: &Blocks, sent: &[u8]) -> Outcome {
        let op = match blocks.op {
            BlockOp::Read => Op::Read,
            BlockOp::Write => Op::Write,
            BlockOp::Verify(Compare::Nothing) => Op::Verify,
            BlockOp::Verify(_) => return Err(bad_command(now, 1)),
        };
        self.in_range(now, blocks.lbn, blocks.sectors)?;
        if blocks.sectors == 0 {
            return Ok(CommandSuccess::nothing(now));
        }
        let bytes =
            u64::from(blocks.sectors) * u64::from(self.drive.profile().sector.logical_bytes);
        if op == Op::Write && (sent.len() as u64) < bytes {
            return Err(too_short(now));
        }
        let request = Request {
            lbn: Lbn(blocks.lbn),
            sectors: blocks.sectors,
            op,
            fua: blocks.fua,
        };
        if op == Op::Read {
            self.set_caching(now, self.modes.caching(blocks.sectors));
        }
        let at = self.request(now, request)?;
        let data = if op == Op::Read {
            Payload::Zeros(bytes)
        } else {
            Payload::Bytes(Vec::new())
        };
        Ok(CommandSuccess {
            data,
            at,
            remark: None,
        })
    }

    /// Serves a request that arrives at `now`, and returns the time of its completion.
    ///
    /// # Errors
    /// Returns an error if the drive cannot or does not carry out the request.
    pub fn request(
        &mut self,
        now: SimTime,
        mut request: Request,
    ) -> Result<SimTime, CommandFailure> {
        let faults = &self.faults;
        let verify = request.op == Op::Verify;
        if faults.unsupported.contains(&request.op)
            || (verify && faults.verify == Compliance::Refuses)
        {
            return Err(illegal(now, AdditionalSense::INVALID_OPERATION, None));
        }
        if request.fua && faults.fua == Compliance::Refuses {
            return Err(bad_command(now, 1));
        }
        request.fua &= faults.fua == Compliance::Obeys;
        if verify && faults.verify == Compliance::Ignores {
            self.worked = true;
            return Ok(now + IGNORED_VERIFY_TIME);
        }
        let served = self
            .drive
            .serve(now, request)
            .map_err(|error| match error {
                RequestError::BeyondEnd { .. } => {
                    illegal(now, AdditionalSense::LBN_OUT_OF_RANGE, None)
                }
                _ => illegal(now, AdditionalSense::INVALID_FIELD_IN_COMMAND, None),
            })?;
        let at = served.completed;
        self.worked = true;
        let Some(lbn) = request.first_of(&self.faults.unreadable) else {
            return Ok(at);
        };
        let code = if request.op == Op::Write {
            AdditionalSense::WRITE_ERROR
        } else {
            AdditionalSense::UNRECOVERED_READ_ERROR
        };
        let sense = Sense {
            information: Some(lbn.0),
            ..Sense::new(SenseKey::Medium, code)
        };
        Err(CommandFailure { sense, at })
    }

    /// Switches read caching and read-ahead off, or back to the profile's settings. In both cases,
    /// write-back is set as in the profile.
    ///
    /// # Errors
    /// Returns an error if the drive refuses to switch.
    pub fn switch_caching(&mut self, now: SimTime, on: bool) -> Result<(), CommandFailure> {
        if self.faults.cache_control == Compliance::Refuses {
            return Err(bad_data(now, 0));
        }
        let found = Caching::of(self.drive.profile());
        let off = Caching {
            read: false,
            read_ahead: false,
            ..found
        };
        self.set_caching(now, if on { found } else { off });
        Ok(())
    }

    /// Switches the drive's caching at `now` without changing the mode pages, if the drive obeys.
    pub fn set_caching(&mut self, now: SimTime, caching: Caching) {
        if self.faults.cache_control == Compliance::Obeys && caching != self.drive.caching() {
            self.drive.set_caching(now, caching);
        }
    }

    fn diagnostic_pages(&self) -> Vec<u8> {
        let pages = [SUPPORTED_DIAGNOSTICS, TRANSLATE_ADDRESS];
        let translates = self.drive.profile().scsi.translates;
        encode_supported(&pages[..if translates { 2 } else { 1 }])
    }

    fn receive_diagnostic(&self, page: Option<u8>) -> Option<Vec<u8>> {
        match page {
            Some(SUPPORTED_DIAGNOSTICS) => Some(self.diagnostic_pages()),
            Some(page) => self.diagnostic.clone().filter(|last| last[0] == page),
            None => self.diagnostic.clone(),
        }
    }

    fn mode_select(&mut self, now: SimTime, width: ModeWidth, data: &[u8], save: bool) -> Outcome {
        if self.faults.cache_control == Compliance::Refuses {
            return Err(bad_data(now, 0));
        }
        self.modes
            .select(&self.drive, width, data, save)
            .map_err(|problem| match problem.byte {
                Some(byte) => bad_data(now, byte),
                None => too_short(now),
            })?;
        self.set_caching(now, self.modes.caching(0));
        Ok(CommandSuccess::nothing(now))
    }

    fn send_diagnostic(&mut self, now: SimTime, page: &[u8]) -> Outcome {
        let scsi = &self.drive.profile().scsi;
        match page[0] {
            SUPPORTED_DIAGNOSTICS => {
                self.diagnostic = Some(self.diagnostic_pages());
                Ok(CommandSuccess::nothing(now))
            }
            TRANSLATE_ADDRESS if scsi.translates => {
                let request = TranslateRequest::decode(page).map_err(|error| match error {
                    ScsiError::Field { byte, .. } => bad_data(now, byte),
                    _ => too_short(now),
                })?;
                let at = now + Span::from_ms(scsi.translate_ms);
                let response = translate(self.drive.geometry(), &request)
                    .and_then(|translation| translation.encode().ok())
                    .ok_or_else(|| bad_data(at, 6))?;
                self.diagnostic = Some(response);
                Ok(CommandSuccess::nothing(at))
            }
            _ => Err(bad_data(now, 0)),
        }
    }

    fn read_defects(&self, now: SimTime, read: &ReadDefectData) -> Outcome {
        let scsi = &self.drive.profile().scsi;
        if !scsi.defect_lists {
            return Err(illegal(now, AdditionalSense::INVALID_OPERATION, None));
        }
        let at = now + Span::from_ms(scsi.translate_ms);
        let addresses = defects(self.drive.geometry(), read.primary, read.grown)
            .skip(read.index as usize)
            .collect();
        let list = DefectList::new(
            read.primary,
            read.grown,
            AddressFormat::PhysicalSector,
            addresses,
        );
        let bytes = list.encode(read.width).map_err(|_| bad_command(at, 2))?;
        let mut done = CommandSuccess::bytes(bytes, read.allocation as usize, at);
        // If the requested format is not supported, the drive uses its only format and reports
        // this.
        if read.format != AddressFormat::PhysicalSector {
            let code = AdditionalSense::DEFECT_LIST_NOT_FOUND;
            done.remark = Some(Sense::new(SenseKey::Recovered, code));
        }
        Ok(done)
    }
}

/// Returns the response to REQUEST SENSE. Every failed command returns its sense data at once, so
/// none is ever pending.
fn no_sense(descriptors: bool) -> Vec<u8> {
    let format = if descriptors {
        SenseFormat::Descriptors
    } else {
        SenseFormat::Fixed
    };
    Sense::new(SenseKey::NoSense, AdditionalSense::NONE).encode(format)
}

/// Returns the parameter list of a command, or `None` if it is empty. A list must be in the page
/// format.
fn parameters(
    now: SimTime,
    page_format: bool,
    length: usize,
    sent: &[u8],
) -> Result<Option<&[u8]>, CommandFailure> {
    match sent.get(..length).ok_or_else(|| too_short(now))? {
        [] => Ok(None),
        _ if !page_format => Err(bad_command(now, 1)),
        list => Ok(Some(list)),
    }
}

fn undecoded(now: SimTime, error: &ScsiError) -> CommandFailure {
    match error {
        ScsiError::UnknownOperation { .. } => {
            illegal(now, AdditionalSense::INVALID_OPERATION, None)
        }
        ScsiError::Field { byte, .. } => bad_command(now, *byte),
        ScsiError::Truncated { .. } => {
            illegal(now, AdditionalSense::INVALID_FIELD_IN_COMMAND, None)
        }
    }
}

fn inquiry(profile: &Profile) -> Inquiry {
    Inquiry {
        device_type: 0,
        connected: true,
        removable: false,
        version: 6,
        queueing: profile.queue.depth > 1,
        vendor: profile.scsi.vendor.clone(),
        product: profile.scsi.product_of(&profile.name),
        revision: profile.scsi.revision.clone(),
    }
}

fn vital_page(drive: &Drive, page: u8) -> Option<VitalPage> {
    let profile = drive.profile();
    let serial = &profile.scsi.serial;
    Some(match page {
        SUPPORTED_PAGES => {
            let mut pages = vec![SUPPORTED_PAGES];
            if !serial.is_empty() {
                pages.push(SERIAL_PAGE);
            }
            pages.extend([IDENTIFICATION_PAGE, BLOCK_LIMITS_PAGE, CHARACTERISTICS_PAGE]);
            VitalPage::Supported(pages)
        }
        SERIAL_PAGE if !serial.is_empty() => VitalPage::Serial(serial.clone()),
        IDENTIFICATION_PAGE => {
            let product = profile.scsi.product_of(&profile.name);
            let name = format!("{:<8}{product:<16}{serial}", profile.scsi.vendor);
            VitalPage::Identification(vec![Designator {
                code_set: 2,
                association: 0,
                kind: 1,
                name: name.into_bytes(),
            }])
        }
        BLOCK_LIMITS_PAGE => VitalPage::BlockLimits(BlockLimits {
            granularity: profile.sector.ratio() as u16,
            ..BlockLimits::default()
        }),
        CHARACTERISTICS_PAGE => VitalPage::Characteristics(Characteristics {
            rotation: rotation(profile),
            ..Characteristics::default()
        }),
        _ => return None,
    })
}

/// The rotation speed that the drive reports.
fn rotation(profile: &Profile) -> Rotation {
    let Some(mechanics) = &profile.mechanics else {
        return Rotation::None;
    };
    match Rotation::from_number(mechanics.rpm.round() as u16) {
        Rotation::Rpm(rpm) => Rotation::Rpm(rpm),
        _ => Rotation::Unknown,
    }
}

fn capacity(drive: &Drive) -> Capacity {
    let sector = &drive.profile().sector;
    Capacity {
        last_lbn: drive.geometry().capacity().0.saturating_sub(1),
        logical_bytes: sector.logical_bytes,
        physical_exponent: sector.ratio().ilog2() as u8,
        lowest_aligned: sector.lowest_aligned_lbn as u16,
    }
}

/// Returns the response to a translation request; `None` if the drive lacks the address, or cannot
/// translate between these formats.
fn translate(geometry: &Geometry, request: &TranslateRequest) -> Option<Translation> {
    let mut response = Translation {
        supplied: request.supplied,
        translated: request.wanted,
        reserved_area: false,
        alternate_sector: false,
        alternate_track: false,
        addresses: Vec::new(),
    };
    match (request.address, request.wanted) {
        (Address::Block(lbn), AddressFormat::PhysicalSector) => {
            let (place, home) = (geometry.locate(lbn)?, geometry.track_of(lbn)?);
            response.alternate_sector = geometry.is_moved(lbn);
            response.alternate_track =
                (place.cylinder, place.surface) != (home.cylinder, home.surface);
            response.addresses.push(Address::Sector(place));
        }
        (Address::Sector(place), AddressFormat::ShortBlock | AddressFormat::LongBlock) => {
            match geometry.lbn_at(place) {
                Occupant::Lbn(lbn) => {
                    response.alternate_sector = geometry.is_moved(lbn);
                    response.addresses.push(Address::Block(lbn));
                }
                Occupant::Bad | Occupant::Empty => response.reserved_area = true,
                Occupant::NoSuchPlace => return None,
            }
        }
        _ => return None,
    }
    Some(response)
}

/// Iterates over the bad sectors one by one: slipped ones if `primary`, then remapped ones if
/// `grown`.
fn defects(geometry: &Geometry, primary: bool, grown: bool) -> impl Iterator<Item = Address> + '_ {
    let wanted = move |remedy: Replacement| match remedy {
        Replacement::Slipped => primary,
        Replacement::Remapped(..) => grown,
    };
    let wanted = geometry
        .defects()
        .filter(move |defect| wanted(defect.remedy));
    wanted.flat_map(|defect| {
        (0..defect.slots).map(move |k| {
            Address::Sector(Place {
                slot: (defect.place.slot + k).min(WHOLE_TRACK - 1),
                ..defect.place
            })
        })
    })
}
