//! Sense data: the reason why a command failed, in the fixed or the descriptor format (SPC-5,
//! "Sense data").
//!
//! The sense key, the additional code, the information field (the LBN of a media error) and the
//! pointer to a bad field are kept. Other descriptors are ignored.

use std::fmt;

use super::wire::{
    IntoBytes, ScsiError, U16, U32, U64, at_most, bits, decode_prefix, padded, wire,
};

/// The reason why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The kind of failure.
    pub key: SenseKey,
    /// The specific failure.
    pub code: AdditionalSense,
    /// For a media error, the first LBN affected.
    pub information: Option<u64>,
    /// For an illegal request, the place of the bad field.
    pub field: Option<FieldPointer>,
    /// Whether an earlier command failed, not the current one.
    pub deferred: bool,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenseKey {
    /// No failure.
    NoSense,
    /// The drive recovered from an error by itself.
    Recovered,
    /// The drive is not ready.
    NotReady,
    /// A media error.
    Medium,
    /// A drive error.
    Hardware,
    /// A request that is not allowed.
    IllegalRequest,
    /// The state of the drive has changed since the last command.
    UnitAttention,
    /// Writing is not allowed.
    DataProtect,
    /// The command was aborted.
    Aborted,
    /// The compared data differs.
    Miscompare,
    /// Any other key, by its number.
    Other(u8),
}

/// An additional sense code with its qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdditionalSense {
    /// The code (ASC).
    pub code: u8,
    /// Its qualifier (ASCQ).
    pub qualifier: u8,
}

/// The place of the bad field in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPointer {
    /// Whether it is in the command. Otherwise it is in the data that the host sent.
    pub in_command: bool,
    /// The byte, counted from 0.
    pub byte: u16,
}

/// A format of sense data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenseFormat {
    /// 18 bytes; the information has 32 bits.
    #[default]
    Fixed,
    /// A header and descriptors; the information has 64 bits.
    Descriptors,
}

impl AdditionalSense {
    /// No additional information.
    pub const NONE: AdditionalSense = AdditionalSense::new(0x00, 0x00);
    /// A sector could not be written.
    pub const WRITE_ERROR: AdditionalSense = AdditionalSense::new(0x0c, 0x00);
    /// A sector could not be read.
    pub const UNRECOVERED_READ_ERROR: AdditionalSense = AdditionalSense::new(0x11, 0x00);
    /// The data from the host is too short.
    pub const PARAMETER_LIST_LENGTH_ERROR: AdditionalSense = AdditionalSense::new(0x1a, 0x00);
    /// There is no such defect list.
    pub const DEFECT_LIST_NOT_FOUND: AdditionalSense = AdditionalSense::new(0x1c, 0x00);
    /// The drive does not support the command.
    pub const INVALID_OPERATION: AdditionalSense = AdditionalSense::new(0x20, 0x00);
    /// The LBN is beyond the end of the drive.
    pub const LBN_OUT_OF_RANGE: AdditionalSense = AdditionalSense::new(0x21, 0x00);
    /// A field of the command has an invalid value.
    pub const INVALID_FIELD_IN_COMMAND: AdditionalSense = AdditionalSense::new(0x24, 0x00);
    /// A field of the data has an invalid value.
    pub const INVALID_FIELD_IN_DATA: AdditionalSense = AdditionalSense::new(0x26, 0x00);
    /// Mode pages have been changed.
    pub const MODE_PARAMETERS_CHANGED: AdditionalSense = AdditionalSense::new(0x2a, 0x01);

    /// Creates a code with its qualifier.
    pub const fn new(code: u8, qualifier: u8) -> AdditionalSense {
        AdditionalSense { code, qualifier }
    }
}

bits! {
    struct ResponseByte {
        #[bits(7)] code: u8,
        valid: bool,
    }
    struct KeyByte {
        #[bits(4)] key: u8,
        __: bool,
        incorrect_length: bool,
        end_of_medium: bool,
        filemark: bool,
    }
    struct PointerFlags {
        #[bits(3)] bit: u8,
        bit_valid: bool,
        #[bits(2)] __: u8,
        in_command: bool,
        valid: bool,
    }
}

wire! {
    struct Pointer { flags: PointerFlags, byte: U16 }
    struct Fixed {
        response: ResponseByte,
        segment: u8,
        key: KeyByte,
        information: U32,
        additional: u8,
        command_specific: U32,
        code: u8,
        qualifier: u8,
        replaceable_unit: u8,
        pointer: Pointer,
    }
    struct Header {
        response: ResponseByte,
        key: KeyByte,
        code: u8,
        qualifier: u8,
        reserved: [u8; 3],
        additional: u8,
    }
    struct DescriptorHeader { kind: u8, additional: u8 }
    struct InformationDescriptor { header: DescriptorHeader, valid: ResponseByte, reserved: u8, information: U64 }
    struct PointerDescriptor { header: DescriptorHeader, reserved: U16, pointer: Pointer, reserved_2: u8 }
}

const FIXED_CURRENT: u8 = 0x70;
const FIXED_DEFERRED: u8 = 0x71;
const DESCRIPTORS_CURRENT: u8 = 0x72;
const DESCRIPTORS_DEFERRED: u8 = 0x73;
const INFORMATION: u8 = 0x00;
const SENSE_KEY_SPECIFIC: u8 = 0x02;

impl Sense {
    /// Creates a failure without further information.
    pub const fn new(key: SenseKey, code: AdditionalSense) -> Sense {
        Sense {
            key,
            code,
            information: None,
            field: None,
            deferred: false,
        }
    }

    /// Encodes the data. The fixed format omits information that exceeds 32 bits.
    pub fn encode(&self, format: SenseFormat) -> Vec<u8> {
        let key = KeyByte::new().with_key(self.key.number());
        let AdditionalSense { code, qualifier } = self.code;
        let pointer = self.field.map(|field| Pointer {
            flags: PointerFlags::new()
                .with_valid(true)
                .with_in_command(field.in_command),
            byte: field.byte.into(),
        });
        let response = |current, deferred| {
            ResponseByte::new().with_code(if self.deferred { deferred } else { current })
        };
        if format == SenseFormat::Fixed {
            let information = self.information.and_then(|lbn| u32::try_from(lbn).ok());
            return Fixed {
                response: response(FIXED_CURRENT, FIXED_DEFERRED).with_valid(information.is_some()),
                key,
                information: information.unwrap_or(0).into(),
                additional: (size_of::<Fixed>() - size_of::<Header>()) as u8,
                code,
                qualifier,
                pointer: pointer.unwrap_or_default(),
                ..Default::default()
            }
            .as_bytes()
            .to_vec();
        }
        let mut descriptors = Vec::new();
        if let Some(information) = self.information {
            let descriptor = InformationDescriptor {
                header: descriptor_header::<InformationDescriptor>(INFORMATION),
                valid: ResponseByte::new().with_valid(true),
                reserved: 0,
                information: information.into(),
            };
            descriptors.extend_from_slice(descriptor.as_bytes());
        }
        if let Some(pointer) = pointer {
            let descriptor = PointerDescriptor {
                header: descriptor_header::<PointerDescriptor>(SENSE_KEY_SPECIFIC),
                pointer,
                ..Default::default()
            };
            descriptors.extend_from_slice(descriptor.as_bytes());
        }
        let header = Header {
            response: response(DESCRIPTORS_CURRENT, DESCRIPTORS_DEFERRED),
            key,
            code,
            qualifier,
            additional: descriptors.len() as u8,
            ..Default::default()
        };
        [header.as_bytes(), &descriptors].concat()
    }

    /// Decodes sense data in either format. Fields that a short response omits count as zero.
    ///
    /// # Errors
    /// Returns an error if there is no data, or its format is unknown.
    pub fn decode(bytes: &[u8]) -> Result<Sense, ScsiError> {
        let what = "sense data";
        let (&response, _) = decode_prefix::<ResponseByte>(what, bytes)?;
        let deferred = matches!(response.code(), FIXED_DEFERRED | DESCRIPTORS_DEFERRED);
        match response.code() {
            FIXED_CURRENT | FIXED_DEFERRED => {
                let fixed: Fixed = padded(bytes);
                let key = SenseKey::from_number(fixed.key.key());
                Ok(Sense {
                    key,
                    code: AdditionalSense::new(fixed.code, fixed.qualifier),
                    information: response.valid().then(|| fixed.information.get().into()),
                    field: fixed.pointer.field(key),
                    deferred,
                })
            }
            DESCRIPTORS_CURRENT | DESCRIPTORS_DEFERRED => {
                let header: Header = padded(bytes);
                let key = SenseKey::from_number(header.key.key());
                let mut sense = Sense {
                    deferred,
                    ..Sense::new(key, AdditionalSense::new(header.code, header.qualifier))
                };
                let descriptors = bytes.get(size_of::<Header>()..).unwrap_or_default();
                sense.read_descriptors(at_most(descriptors, header.additional.into()));
                Ok(sense)
            }
            other => Err(ScsiError::Field {
                what,
                byte: 0,
                value: other.into(),
            }),
        }
    }

    fn read_descriptors(&mut self, mut bytes: &[u8]) {
        while let Ok((header, rest)) = decode_prefix::<DescriptorHeader>("a descriptor", bytes) {
            let length = size_of::<DescriptorHeader>() + usize::from(header.additional);
            let descriptor = at_most(bytes, length);
            match header.kind {
                INFORMATION => {
                    let information: InformationDescriptor = padded(descriptor);
                    if information.valid.valid() {
                        self.information = Some(information.information.get());
                    }
                }
                SENSE_KEY_SPECIFIC => {
                    let specific: PointerDescriptor = padded(descriptor);
                    self.field = specific.pointer.field(self.key);
                }
                _ => {}
            }
            bytes = rest.get(header.additional.into()..).unwrap_or_default();
        }
    }
}

fn descriptor_header<T>(kind: u8) -> DescriptorHeader {
    DescriptorHeader {
        kind,
        additional: (size_of::<T>() - size_of::<DescriptorHeader>()) as u8,
    }
}

impl Pointer {
    /// Returns the pointer, if the bytes contain one. They do so only for an illegal request; with
    /// other sense keys, they mean something else.
    fn field(self, key: SenseKey) -> Option<FieldPointer> {
        (key == SenseKey::IllegalRequest && self.flags.valid()).then(|| FieldPointer {
            in_command: self.flags.in_command(),
            byte: self.byte.get(),
        })
    }
}

/// The keys that have names, with their numbers.
const KEYS: [(u8, SenseKey); 10] = [
    (0x0, SenseKey::NoSense),
    (0x1, SenseKey::Recovered),
    (0x2, SenseKey::NotReady),
    (0x3, SenseKey::Medium),
    (0x4, SenseKey::Hardware),
    (0x5, SenseKey::IllegalRequest),
    (0x6, SenseKey::UnitAttention),
    (0x7, SenseKey::DataProtect),
    (0xb, SenseKey::Aborted),
    (0xe, SenseKey::Miscompare),
];

impl SenseKey {
    /// The key's number.
    pub fn number(self) -> u8 {
        match self {
            SenseKey::Other(number) => number.min(0xf),
            named => KEYS
                .iter()
                .find(|(_, key)| *key == named)
                .map_or(0, |k| k.0),
        }
    }

    /// Returns the key for a number.
    pub fn from_number(number: u8) -> SenseKey {
        let named = KEYS.iter().find(|(known, _)| *known == number);
        named.map_or(SenseKey::Other(number), |(_, key)| *key)
    }
}

impl fmt::Display for SenseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SenseKey::NoSense => "no sense",
            SenseKey::Recovered => "recovered error",
            SenseKey::NotReady => "not ready",
            SenseKey::Medium => "medium error",
            SenseKey::Hardware => "hardware error",
            SenseKey::IllegalRequest => "illegal request",
            SenseKey::UnitAttention => "unit attention",
            SenseKey::DataProtect => "data protect",
            SenseKey::Aborted => "aborted command",
            SenseKey::Miscompare => "miscompare",
            SenseKey::Other(number) => return write!(f, "sense key {number:#x}"),
        })
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AdditionalSense { code, qualifier } = self.code;
        write!(f, "{}, {code:02x}h/{qualifier:02x}h", self.key)?;
        match self.code {
            AdditionalSense::UNRECOVERED_READ_ERROR => f.write_str(" (unrecovered read error)")?,
            AdditionalSense::DEFECT_LIST_NOT_FOUND => f.write_str(" (defect list not found)")?,
            AdditionalSense::INVALID_OPERATION => f.write_str(" (invalid operation code)")?,
            AdditionalSense::LBN_OUT_OF_RANGE => f.write_str(" (LBN out of range)")?,
            AdditionalSense::INVALID_FIELD_IN_COMMAND => f.write_str(" (invalid field in CDB)")?,
            AdditionalSense::INVALID_FIELD_IN_DATA => {
                f.write_str(" (invalid field in parameter list)")?;
            }
            _ => {}
        }
        if let Some(field) = self.field {
            write!(f, ", byte {}", field.byte)?;
        }
        if let Some(lbn) = self.information {
            write!(f, ", LBN {lbn}")?;
        }
        Ok(())
    }
}

impl Sense {
    /// Returns whether the drive does not support the command, or part of it.
    pub fn is_unsupported(&self) -> bool {
        let codes = [
            AdditionalSense::INVALID_OPERATION,
            AdditionalSense::INVALID_FIELD_IN_COMMAND,
        ];
        self.key == SenseKey::IllegalRequest && codes.contains(&self.code)
    }
}
