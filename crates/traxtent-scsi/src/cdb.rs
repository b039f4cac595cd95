//! Encoding and decoding of commands (SPC-5, section 6; SBC-4, section 5).

use super::address::AddressFormat;
use super::command::{
    BlockOp, Blocks, Command, Compare, DefectWidth, ModeSense, ModeWidth, PageValues,
    ReadDefectData, Width,
};
use super::wire::{IntoBytes, ScsiError, U16, U32, U64, bits, decode_prefix, wire};

mod opcode {
    pub(super) const TEST_UNIT_READY: u8 = 0x00;
    pub(super) const REQUEST_SENSE: u8 = 0x03;
    pub(super) const INQUIRY: u8 = 0x12;
    pub(super) const MODE_SELECT_6: u8 = 0x15;
    pub(super) const MODE_SENSE_6: u8 = 0x1a;
    pub(super) const RECEIVE_DIAGNOSTIC: u8 = 0x1c;
    pub(super) const SEND_DIAGNOSTIC: u8 = 0x1d;
    pub(super) const READ_CAPACITY_10: u8 = 0x25;
    pub(super) const READ_10: u8 = 0x28;
    pub(super) const WRITE_10: u8 = 0x2a;
    pub(super) const VERIFY_10: u8 = 0x2f;
    pub(super) const SYNCHRONIZE_CACHE_10: u8 = 0x35;
    pub(super) const READ_DEFECT_DATA_10: u8 = 0x37;
    pub(super) const MODE_SELECT_10: u8 = 0x55;
    pub(super) const MODE_SENSE_10: u8 = 0x5a;
    pub(super) const READ_16: u8 = 0x88;
    pub(super) const WRITE_16: u8 = 0x8a;
    pub(super) const VERIFY_16: u8 = 0x8f;
    pub(super) const SYNCHRONIZE_CACHE_16: u8 = 0x91;
    pub(super) const SERVICE_ACTION_IN_16: u8 = 0x9e;
    pub(super) const READ_DEFECT_DATA_12: u8 = 0xb7;
}

/// The service action READ CAPACITY(16) of SERVICE ACTION IN(16).
const READ_CAPACITY_16: u8 = 0x10;

bits! {
    struct BlockFlags {
        obsolete: bool,
        #[bits(2)] bytchk: u8,
        fua: bool,
        dpo: bool,
        #[bits(3)] protect: u8,
    }
    struct SynchronizeFlags {
        obsolete: bool,
        immediate: bool,
        #[bits(6)] __: u8,
    }
    struct LowBit {
        set: bool,
        #[bits(7)] __: u8,
    }
    struct DiagnosticFlags {
        unit_offline: bool,
        device_offline: bool,
        self_test: bool,
        __: bool,
        page_format: bool,
        #[bits(3)] self_test_code: u8,
    }
    struct DefectFlags {
        #[bits(3)] format: u8,
        grown: bool,
        primary: bool,
        #[bits(3)] __: u8,
    }
    struct SenseFlags {
        #[bits(3)] __: u8,
        no_block_descriptor: bool,
        long_lbn_accepted: bool,
        #[bits(3)] __: u8,
    }
    struct SelectFlags {
        save: bool,
        revert: bool,
        #[bits(2)] __: u8,
        page_format: bool,
        #[bits(3)] __: u8,
    }
    struct PageByte {
        #[bits(6)] page: u8,
        #[bits(2)] values: u8,
    }
    struct ServiceAction {
        #[bits(5)] action: u8,
        #[bits(3)] __: u8,
    }
}

wire! {
    struct Plain6 { opcode: u8, reserved: [u8; 4], control: u8 }
    struct RequestSense6 { opcode: u8, descriptors: LowBit, reserved: [u8; 2], allocation: u8, control: u8 }
    struct Inquiry6 { opcode: u8, vital: LowBit, page: u8, allocation: U16, control: u8 }
    struct SendDiagnostic6 { opcode: u8, flags: DiagnosticFlags, reserved: u8, length: U16, control: u8 }
    struct ModeSense6 { opcode: u8, flags: SenseFlags, page: PageByte, subpage: u8, allocation: u8, control: u8 }
    struct ModeSelect6 { opcode: u8, flags: SelectFlags, reserved: [u8; 2], length: u8, control: u8 }
    struct Capacity10 { opcode: u8, reserved: u8, lbn: U32, reserved_2: [u8; 2], partial: u8, control: u8 }
    struct Blocks10 { opcode: u8, flags: BlockFlags, lbn: U32, group: u8, sectors: U16, control: u8 }
    struct Synchronize10 { opcode: u8, flags: SynchronizeFlags, lbn: U32, group: u8, sectors: U16, control: u8 }
    struct ReadDefect10 { opcode: u8, reserved: u8, flags: DefectFlags, reserved_2: [u8; 4], allocation: U16, control: u8 }
    struct ModeSense10 { opcode: u8, flags: SenseFlags, page: PageByte, subpage: u8, reserved: [u8; 3], allocation: U16, control: u8 }
    struct ModeSelect10 { opcode: u8, flags: SelectFlags, reserved: [u8; 5], length: U16, control: u8 }
    struct ReadDefect12 { opcode: u8, flags: DefectFlags, index: U32, allocation: U32, reserved: u8, control: u8 }
    struct Capacity16 { opcode: u8, action: ServiceAction, lbn: U64, allocation: U32, partial: u8, control: u8 }
    struct Blocks16 { opcode: u8, flags: BlockFlags, lbn: U64, sectors: U32, group: u8, control: u8 }
    struct Synchronize16 { opcode: u8, flags: SynchronizeFlags, lbn: U64, sectors: U32, group: u8, control: u8 }
}

impl Command {
    /// Encodes the command. If its width cannot express the command, the next larger width is used.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Command::TestUnitReady => Plain6::default().as_bytes().to_vec(),
            Command::RequestSense {
                descriptors,
                allocation,
            } => RequestSense6 {
                opcode: opcode::REQUEST_SENSE,
                descriptors: LowBit::new().with_set(descriptors),
                allocation,
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            Command::Inquiry { page, allocation } => paged(opcode::INQUIRY, page, allocation),
            Command::ReadCapacity10 => Capacity10 {
                opcode: opcode::READ_CAPACITY_10,
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            Command::ReadCapacity16 { allocation } => Capacity16 {
                opcode: opcode::SERVICE_ACTION_IN_16,
                action: ServiceAction::new().with_action(READ_CAPACITY_16),
                allocation: allocation.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            Command::Blocks(blocks) => blocks.encode(),
            Command::SynchronizeCache {
                width,
                lbn,
                sectors,
                immediate,
            } => {
                let flags = SynchronizeFlags::new().with_immediate(immediate);
                match (width, u32::try_from(lbn), u16::try_from(sectors)) {
                    (Width::Ten, Ok(lbn), Ok(sectors)) => Synchronize10 {
                        opcode: opcode::SYNCHRONIZE_CACHE_10,
                        flags,
                        lbn: lbn.into(),
                        sectors: sectors.into(),
                        ..Default::default()
                    }
                    .as_bytes()
                    .to_vec(),
                    _ => Synchronize16 {
                        opcode: opcode::SYNCHRONIZE_CACHE_16,
                        flags,
                        lbn: lbn.into(),
                        sectors: sectors.into(),
                        ..Default::default()
                    }
                    .as_bytes()
                    .to_vec(),
                }
            }
            Command::SendDiagnostic {
                page_format,
                self_test,
                length,
            } => SendDiagnostic6 {
                opcode: opcode::SEND_DIAGNOSTIC,
                flags: DiagnosticFlags::new()
                    .with_page_format(page_format)
                    .with_self_test(self_test),
                length: length.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            Command::ReceiveDiagnostic { page, allocation } => {
                paged(opcode::RECEIVE_DIAGNOSTIC, page, allocation)
            }
            Command::ReadDefectData(read) => read.encode(),
            Command::ModeSense(sense) => sense.encode(),
            Command::ModeSelect {
                width,
                page_format,
                save,
                length,
            } => {
                let flags = SelectFlags::new()
                    .with_page_format(page_format)
                    .with_save(save);
                match (width, u8::try_from(length)) {
                    (ModeWidth::Six, Ok(length)) => ModeSelect6 {
                        opcode: opcode::MODE_SELECT_6,
                        flags,
                        length,
                        ..Default::default()
                    }
                    .as_bytes()
                    .to_vec(),
                    _ => ModeSelect10 {
                        opcode: opcode::MODE_SELECT_10,
                        flags,
                        length: length.into(),
                        ..Default::default()
                    }
                    .as_bytes()
                    .to_vec(),
                }
            }
        }
    }

    /// Decodes a command. Any bytes after it are ignored.
    ///
    /// # Errors
    /// Returns an error if the bytes end too early, the operation is not supported, or a field
    /// requests an unsupported feature.
    pub fn decode(bytes: &[u8]) -> Result<Command, ScsiError> {
        let (&opcode, _) = decode_prefix::<u8>("a command", bytes)?;
        Ok(match opcode {
            opcode::TEST_UNIT_READY => {
                decode_prefix::<Plain6>("TEST UNIT READY", bytes)?;
                Command::TestUnitReady
            }
            opcode::REQUEST_SENSE => {
                let (cdb, _) = decode_prefix::<RequestSense6>("REQUEST SENSE", bytes)?;
                Command::RequestSense {
                    descriptors: cdb.descriptors.set(),
                    allocation: cdb.allocation,
                }
            }
            opcode::INQUIRY => {
                let (page, allocation) = decode_paged("INQUIRY", bytes)?;
                Command::Inquiry { page, allocation }
            }
            opcode::READ_CAPACITY_10 => {
                decode_prefix::<Capacity10>("READ CAPACITY(10)", bytes)?;
                Command::ReadCapacity10
            }
            opcode::SERVICE_ACTION_IN_16 => {
                let what = "SERVICE ACTION IN(16)";
                let (cdb, _) = decode_prefix::<Capacity16>(what, bytes)?;
                if cdb.action.action() != READ_CAPACITY_16 {
                    return Err(field(what, 1, cdb.action.action()));
                }
                Command::ReadCapacity16 {
                    allocation: cdb.allocation.get(),
                }
            }
            opcode::READ_10 | opcode::WRITE_10 | opcode::VERIFY_10 => {
                let (cdb, _) = decode_prefix::<Blocks10>("READ, WRITE or VERIFY(10)", bytes)?;
                let (lbn, sectors) = (cdb.lbn.get().into(), cdb.sectors.get().into());
                Blocks::decode(opcode, cdb.flags, Width::Ten, lbn, sectors)?
            }
            opcode::READ_16 | opcode::WRITE_16 | opcode::VERIFY_16 => {
                let (cdb, _) = decode_prefix::<Blocks16>("READ, WRITE or VERIFY(16)", bytes)?;
                let (lbn, sectors) = (cdb.lbn.get(), cdb.sectors.get());
                Blocks::decode(opcode, cdb.flags, Width::Sixteen, lbn, sectors)?
            }
            opcode::SYNCHRONIZE_CACHE_10 => {
                let (cdb, _) = decode_prefix::<Synchronize10>("SYNCHRONIZE CACHE(10)", bytes)?;
                Command::SynchronizeCache {
                    width: Width::Ten,
                    lbn: cdb.lbn.get().into(),
                    sectors: cdb.sectors.get().into(),
                    immediate: cdb.flags.immediate(),
                }
            }
            opcode::SYNCHRONIZE_CACHE_16 => {
                let (cdb, _) = decode_prefix::<Synchronize16>("SYNCHRONIZE CACHE(16)", bytes)?;
                Command::SynchronizeCache {
                    width: Width::Sixteen,
                    lbn: cdb.lbn.get(),
                    sectors: cdb.sectors.get(),
                    immediate: cdb.flags.immediate(),
                }
            }
            opcode::SEND_DIAGNOSTIC => {
                let (cdb, _) = decode_prefix::<SendDiagnostic6>("SEND DIAGNOSTIC", bytes)?;
                let code = cdb.flags.self_test_code();
                if code != 0 {
                    return Err(field("SEND DIAGNOSTIC", 1, code));
                }
                Command::SendDiagnostic {
                    page_format: cdb.flags.page_format(),
                    self_test: cdb.flags.self_test(),
                    length: cdb.length.get(),
                }
            }
            opcode::RECEIVE_DIAGNOSTIC => {
                let (page, allocation) = decode_paged("RECEIVE DIAGNOSTIC RESULTS", bytes)?;
                Command::ReceiveDiagnostic { page, allocation }
            }
            opcode::READ_DEFECT_DATA_10 | opcode::READ_DEFECT_DATA_12 => {
                Command::ReadDefectData(ReadDefectData::decode(opcode, bytes)?)
            }
            opcode::MODE_SENSE_6 | opcode::MODE_SENSE_10 => {
                Command::ModeSense(ModeSense::decode(opcode, bytes)?)
            }
            opcode::MODE_SELECT_6 => {
                let (cdb, _) = decode_prefix::<ModeSelect6>("MODE SELECT(6)", bytes)?;
                Command::ModeSelect {
                    width: ModeWidth::Six,
                    page_format: cdb.flags.page_format(),
                    save: cdb.flags.save(),
                    length: cdb.length.into(),
                }
            }
            opcode::MODE_SELECT_10 => {
                let (cdb, _) = decode_prefix::<ModeSelect10>("MODE SELECT(10)", bytes)?;
                Command::ModeSelect {
                    width: ModeWidth::Ten,
                    page_format: cdb.flags.page_format(),
                    save: cdb.flags.save(),
                    length: cdb.length.get(),
                }
            }
            opcode => return Err(ScsiError::UnknownOperation { opcode }),
        })
    }
}

impl Blocks {
    fn encode(&self) -> Vec<u8> {
        let (bytchk, ten, sixteen) = match self.op {
            BlockOp::Read => (0, opcode::READ_10, opcode::READ_16),
            BlockOp::Write => (0, opcode::WRITE_10, opcode::WRITE_16),
            BlockOp::Verify(compare) => {
                let bytchk = match compare {
                    Compare::Nothing => 0,
                    Compare::Each => 1,
                    Compare::WithOne => 3,
                };
                (bytchk, opcode::VERIFY_10, opcode::VERIFY_16)
            }
        };
        let fua = self.fua && !matches!(self.op, BlockOp::Verify(_));
        let flags = BlockFlags::new()
            .with_bytchk(bytchk)
            .with_fua(fua)
            .with_dpo(self.dpo);
        let (lbn, sectors) = (self.lbn, self.sectors);
        match (self.width, u32::try_from(lbn), u16::try_from(sectors)) {
            (Width::Ten, Ok(lbn), Ok(sectors)) => Blocks10 {
                opcode: ten,
                flags,
                lbn: lbn.into(),
                sectors: sectors.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            _ => Blocks16 {
                opcode: sixteen,
                flags,
                lbn: lbn.into(),
                sectors: sectors.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
        }
    }

    fn decode(
        opcode: u8,
        flags: BlockFlags,
        width: Width,
        lbn: u64,
        sectors: u32,
    ) -> Result<Command, ScsiError> {
        let what = "READ, WRITE or VERIFY";
        if flags.protect() != 0 {
            return Err(field(what, 1, flags.into_bits()));
        }
        let op = match opcode {
            opcode::READ_10 | opcode::READ_16 => BlockOp::Read,
            opcode::WRITE_10 | opcode::WRITE_16 => BlockOp::Write,
            _ => BlockOp::Verify(match flags.bytchk() {
                0 => Compare::Nothing,
                1 => Compare::Each,
                3 => Compare::WithOne,
                _ => return Err(field(what, 1, flags.into_bits())),
            }),
        };
        Ok(Command::Blocks(Blocks {
            op,
            width,
            lbn,
            sectors,
            dpo: flags.dpo(),
            fua: flags.fua() && !matches!(op, BlockOp::Verify(_)),
        }))
    }
}

impl ReadDefectData {
    fn encode(&self) -> Vec<u8> {
        let flags = DefectFlags::new()
            .with_format(self.format.code())
            .with_grown(self.grown)
            .with_primary(self.primary);
        match (self.width, u16::try_from(self.allocation)) {
            (DefectWidth::Ten, Ok(allocation)) if self.index == 0 => ReadDefect10 {
                opcode: opcode::READ_DEFECT_DATA_10,
                flags,
                allocation: allocation.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
            _ => ReadDefect12 {
                opcode: opcode::READ_DEFECT_DATA_12,
                flags,
                index: self.index.into(),
                allocation: self.allocation.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
        }
    }

    fn decode(opcode: u8, bytes: &[u8]) -> Result<ReadDefectData, ScsiError> {
        let (width, byte, flags, index, allocation) = if opcode == opcode::READ_DEFECT_DATA_10 {
            let (cdb, _) = decode_prefix::<ReadDefect10>("READ DEFECT DATA(10)", bytes)?;
            (
                DefectWidth::Ten,
                2,
                cdb.flags,
                0,
                cdb.allocation.get().into(),
            )
        } else {
            let (cdb, _) = decode_prefix::<ReadDefect12>("READ DEFECT DATA(12)", bytes)?;
            let (index, allocation) = (cdb.index.get(), cdb.allocation.get());
            (DefectWidth::Twelve, 1, cdb.flags, index, allocation)
        };
        let format = AddressFormat::from_code(flags.format()).ok_or(field(
            "READ DEFECT DATA",
            byte,
            flags.format(),
        ))?;
        Ok(ReadDefectData {
            width,
            primary: flags.primary(),
            grown: flags.grown(),
            format,
            index,
            allocation,
        })
    }
}

impl ModeSense {
    fn encode(&self) -> Vec<u8> {
        let flags = SenseFlags::new().with_no_block_descriptor(self.no_block_descriptor);
        let page = PageByte::new()
            .with_page(self.page.min(0x3f))
            .with_values(match self.values {
                PageValues::Current => 0,
                PageValues::Changeable => 1,
                PageValues::Default => 2,
                PageValues::Saved => 3,
            });
        match (self.width, u8::try_from(self.allocation)) {
            (ModeWidth::Six, Ok(allocation)) => ModeSense6 {
                opcode: opcode::MODE_SENSE_6,
                flags,
                page,
                subpage: self.subpage,
                allocation,
                control: 0,
            }
            .as_bytes()
            .to_vec(),
            _ => ModeSense10 {
                opcode: opcode::MODE_SENSE_10,
                flags,
                page,
                subpage: self.subpage,
                allocation: self.allocation.into(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec(),
        }
    }

    fn decode(opcode: u8, bytes: &[u8]) -> Result<ModeSense, ScsiError> {
        let (width, flags, page, subpage, allocation) = if opcode == opcode::MODE_SENSE_6 {
            let (cdb, _) = decode_prefix::<ModeSense6>("MODE SENSE(6)", bytes)?;
            let allocation = cdb.allocation.into();
            (ModeWidth::Six, cdb.flags, cdb.page, cdb.subpage, allocation)
        } else {
            let (cdb, _) = decode_prefix::<ModeSense10>("MODE SENSE(10)", bytes)?;
            let allocation = cdb.allocation.get();
            (ModeWidth::Ten, cdb.flags, cdb.page, cdb.subpage, allocation)
        };
        Ok(ModeSense {
            width,
            page: page.page(),
            subpage,
            values: match page.values() {
                0 => PageValues::Current,
                1 => PageValues::Changeable,
                2 => PageValues::Default,
                _ => PageValues::Saved,
            },
            no_block_descriptor: flags.no_block_descriptor(),
            allocation,
        })
    }
}

/// Encodes INQUIRY or RECEIVE DIAGNOSTIC RESULTS. A bit indicates whether the page field is valid.
fn paged(opcode: u8, page: Option<u8>, allocation: u16) -> Vec<u8> {
    Inquiry6 {
        opcode,
        vital: LowBit::new().with_set(page.is_some()),
        page: page.unwrap_or(0),
        allocation: allocation.into(),
        control: 0,
    }
    .as_bytes()
    .to_vec()
}

fn decode_paged(what: &'static str, bytes: &[u8]) -> Result<(Option<u8>, u16), ScsiError> {
    let (cdb, _) = decode_prefix::<Inquiry6>(what, bytes)?;
    let page = cdb.vital.set().then_some(cdb.page);
    if page.is_none() && cdb.page != 0 {
        return Err(field(what, 2, cdb.page));
    }
    Ok((page, cdb.allocation.get()))
}

fn field(what: &'static str, byte: u16, value: u8) -> ScsiError {
    ScsiError::Field {
        what,
        byte,
        value: value.into(),
    }
}
