//! The identification of a drive: INQUIRY data (SPC-5, "INQUIRY command" and "Vital product data";
//! SBC-4 for pages B0h and B1h).

use super::wire::{
    IntoBytes, ScsiError, U16, U32, at_most, bits, decode_prefix, padded, padded_text, text, wire,
};

/// Standard INQUIRY data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inquiry {
    /// The kind of device: 0 for a disk.
    pub device_type: u8,
    /// Whether the device is connected (qualifier 0).
    pub connected: bool,
    /// Whether the medium can be removed.
    pub removable: bool,
    /// The version of the standard: 2 for SCSI-2, 3 for SPC, 7 for SPC-5.
    pub version: u8,
    /// Whether several commands can be outstanding.
    pub queueing: bool,
    /// The manufacturer, up to 8 characters.
    pub vendor: String,
    /// The model, up to 16 characters.
    pub product: String,
    /// The version of the firmware, up to 4 characters.
    pub revision: String,
}

/// The page of vital product data that lists the others.
pub const SUPPORTED_PAGES: u8 = 0x00;
/// The page with the serial number.
pub const SERIAL_PAGE: u8 = 0x80;
/// The page with unique names.
pub const IDENTIFICATION_PAGE: u8 = 0x83;
/// The page with the limits of requests.
pub const BLOCK_LIMITS_PAGE: u8 = 0xb0;
/// The page with rotation speed, form factor and zones.
pub const CHARACTERISTICS_PAGE: u8 = 0xb1;

/// A page of vital product data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VitalPage {
    /// 00h: the list of supported pages.
    Supported(Vec<u8>),
    /// 80h: the serial number.
    Serial(String),
    /// 83h: names of the device and its ports.
    Identification(Vec<Designator>),
    /// B0h: limits of requests.
    BlockLimits(BlockLimits),
    /// B1h: rotation speed, form factor and zones.
    Characteristics(Characteristics),
}

/// A name of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Designator {
    /// The encoding of the name: 1 binary, 2 ASCII, 3 UTF-8.
    pub code_set: u8,
    /// The object that the name identifies: 0 the unit, 1 a port, 2 the device.
    pub association: u8,
    /// The kind of name: 1 vendor and model, 2 EUI-64, 3 NAA, 8 SCSI name string.
    pub kind: u8,
    /// The name, up to 255 bytes.
    pub name: Vec<u8>,
}

/// Limits of requests, in logical sectors. 0 if the drive does not report a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// The length of a request should be a multiple of this.
    pub granularity: u16,
    /// The longest request.
    pub longest: u32,
    /// The longest request that is still efficient.
    pub optimal: u32,
}

/// The rotation speed and form factor of a drive, and whether it writes in zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Characteristics {
    /// The rotation speed.
    pub rotation: Rotation,
    /// The nominal form factor: 1 for 5.25 inches, 2 for 3.5, 3 for 2.5; 0 if not reported.
    pub form_factor: u8,
    /// Whether the drive writes in zones.
    pub zoned: Zoned,
}

/// Whether a drive that accepts random writes nevertheless writes in zones. A drive that requires
/// sequential writes has another device type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zoned {
    /// Not reported.
    #[default]
    Unknown,
    /// Yes, and the host can take the zones into account.
    HostAware,
    /// Yes, and the drive hides the zones.
    DeviceManaged,
    /// A reserved number.
    Reserved,
}

/// The rotation speed of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rotation {
    /// Not reported.
    #[default]
    Unknown,
    /// The drive does not rotate.
    None,
    /// Revolutions per minute: 0401h to FFFEh.
    Rpm(u16),
    /// A reserved number.
    Reserved(u16),
}

bits! {
    struct Peripheral {
        #[bits(5)] device_type: u8,
        #[bits(3)] qualifier: u8,
    }
    struct HighBit {
        #[bits(7)] __: u8,
        set: bool,
    }
    struct FormatByte {
        #[bits(4)] format: u8,
        #[bits(4)] __: u8,
    }
    struct QueueByte {
        __: bool,
        queueing: bool,
        #[bits(6)] __: u8,
    }
    struct CodeSet {
        #[bits(4)] code_set: u8,
        #[bits(4)] protocol: u8,
    }
    struct DesignatorKind {
        #[bits(4)] kind: u8,
        #[bits(2)] association: u8,
        __: bool,
        protocol_valid: bool,
    }
    struct FormFactor {
        #[bits(4)] form_factor: u8,
        #[bits(4)] __: u8,
    }
    struct ZonedByte {
        #[bits(4)] __: u8,
        #[bits(2)] zoned: u8,
        #[bits(2)] __: u8,
    }
}

wire! {
    struct Standard {
        peripheral: Peripheral,
        removable: HighBit,
        version: u8,
        format: FormatByte,
        additional: u8,
        flags: [u8; 2],
        queue: QueueByte,
        vendor: [u8; 8],
        product: [u8; 16],
        revision: [u8; 4],
    }
    struct PageHeader { peripheral: Peripheral, page: u8, length: U16 }
    struct DesignatorHeader { code_set: CodeSet, kind: DesignatorKind, reserved: u8, length: u8 }
    struct Limits {
        write_same_nonzero: u8,
        compare_longest: u8,
        granularity: U16,
        longest: U32,
        optimal: U32,
    }
    struct Speed { rotation: U16, product_type: u8, form_factor: FormFactor, zoned: ZonedByte }
}

/// The number of bytes in pages B0h and B1h after their header.
const BLOCK_PAGE_BODY_BYTES: usize = 0x3c;

impl Inquiry {
    /// Encodes the data.
    pub fn encode(&self) -> Vec<u8> {
        let standard = Standard {
            peripheral: Peripheral::new()
                .with_device_type(self.device_type.min(0x1f))
                .with_qualifier(if self.connected { 0 } else { 1 }),
            removable: HighBit::new().with_set(self.removable),
            version: self.version,
            format: FormatByte::new().with_format(2),
            additional: (size_of::<Standard>() - 5) as u8,
            flags: [0; 2],
            queue: QueueByte::new().with_queueing(self.queueing),
            vendor: padded_text(&self.vendor),
            product: padded_text(&self.product),
            revision: padded_text(&self.revision),
        };
        standard.as_bytes().to_vec()
    }

    /// Decodes the data. Fields that a response of an earlier standard omits are empty.
    ///
    /// # Errors
    /// Returns an error if there are fewer than five bytes.
    pub fn decode(bytes: &[u8]) -> Result<Inquiry, ScsiError> {
        decode_prefix::<[u8; 5]>("standard INQUIRY data", bytes)?;
        let standard: Standard = padded(bytes);
        Ok(Inquiry {
            device_type: standard.peripheral.device_type(),
            connected: standard.peripheral.qualifier() == 0,
            removable: standard.removable.set(),
            version: standard.version,
            queueing: standard.queue.queueing(),
            vendor: text(&standard.vendor),
            product: text(&standard.product),
            revision: text(&standard.revision),
        })
    }
}

impl VitalPage {
    /// The page's number.
    pub fn code(&self) -> u8 {
        match self {
            VitalPage::Supported(_) => SUPPORTED_PAGES,
            VitalPage::Serial(_) => SERIAL_PAGE,
            VitalPage::Identification(_) => IDENTIFICATION_PAGE,
            VitalPage::BlockLimits(_) => BLOCK_LIMITS_PAGE,
            VitalPage::Characteristics(_) => CHARACTERISTICS_PAGE,
        }
    }

    /// Encodes the page for a disk. Bytes after the header beyond the first 65,535 are omitted.
    pub fn encode(&self) -> Vec<u8> {
        let body = match self {
            VitalPage::Supported(pages) => pages.clone(),
            VitalPage::Serial(serial) => serial.clone().into_bytes(),
            VitalPage::Identification(designators) => {
                designators.iter().flat_map(Designator::encode).collect()
            }
            VitalPage::BlockLimits(limits) => {
                let limits = Limits {
                    granularity: limits.granularity.into(),
                    longest: limits.longest.into(),
                    optimal: limits.optimal.into(),
                    ..Default::default()
                };
                let mut body = limits.as_bytes().to_vec();
                body.resize(BLOCK_PAGE_BODY_BYTES, 0);
                body
            }
            VitalPage::Characteristics(drive) => {
                let speed = Speed {
                    rotation: drive.rotation.number().into(),
                    form_factor: FormFactor::new().with_form_factor(drive.form_factor.min(0xf)),
                    zoned: ZonedByte::new().with_zoned(drive.zoned.number()),
                    ..Default::default()
                };
                let mut body = speed.as_bytes().to_vec();
                body.resize(BLOCK_PAGE_BODY_BYTES, 0);
                body
            }
        };
        let body = at_most(&body, u16::MAX.into());
        let header = PageHeader {
            page: self.code(),
            length: (body.len() as u16).into(),
            ..Default::default()
        };
        [header.as_bytes(), body].concat()
    }

    /// Decodes a page, which may be truncated to the allocation length.
    ///
    /// # Errors
    /// Returns an error if the header is incomplete, or the page is not supported.
    pub fn decode(bytes: &[u8]) -> Result<VitalPage, ScsiError> {
        let what = "vital product data";
        let (header, rest) = decode_prefix::<PageHeader>(what, bytes)?;
        let body = at_most(rest, header.length.get().into());
        Ok(match header.page {
            SUPPORTED_PAGES => VitalPage::Supported(body.to_vec()),
            SERIAL_PAGE => VitalPage::Serial(text(body)),
            IDENTIFICATION_PAGE => VitalPage::Identification(designators(body)),
            BLOCK_LIMITS_PAGE => {
                let limits: Limits = padded(body);
                VitalPage::BlockLimits(BlockLimits {
                    granularity: limits.granularity.get(),
                    longest: limits.longest.get(),
                    optimal: limits.optimal.get(),
                })
            }
            CHARACTERISTICS_PAGE => {
                let speed: Speed = padded(body);
                VitalPage::Characteristics(Characteristics {
                    rotation: Rotation::from_number(speed.rotation.get()),
                    form_factor: speed.form_factor.form_factor(),
                    zoned: Zoned::from_number(speed.zoned.zoned()),
                })
            }
            other => {
                return Err(ScsiError::Field {
                    what,
                    byte: 1,
                    value: other.into(),
                });
            }
        })
    }
}

/// Decodes the names in the body of page 83h. An incomplete name is omitted.
fn designators(mut body: &[u8]) -> Vec<Designator> {
    let mut names = Vec::new();
    while let Ok((header, rest)) = decode_prefix::<DesignatorHeader>("a designator", body) {
        let Some((name, others)) = rest.split_at_checked(header.length.into()) else {
            break;
        };
        names.push(Designator {
            code_set: header.code_set.code_set(),
            association: header.kind.association(),
            kind: header.kind.kind(),
            name: name.to_vec(),
        });
        body = others;
    }
    names
}

impl Designator {
    fn encode(&self) -> Vec<u8> {
        let name = at_most(&self.name, u8::MAX.into());
        let header = DesignatorHeader {
            code_set: CodeSet::new().with_code_set(self.code_set.min(0xf)),
            kind: DesignatorKind::new()
                .with_kind(self.kind.min(0xf))
                .with_association(self.association.min(3)),
            reserved: 0,
            length: name.len() as u8,
        };
        [header.as_bytes(), name].concat()
    }
}

impl Zoned {
    /// The number for this value.
    pub fn number(self) -> u8 {
        match self {
            Zoned::Unknown => 0,
            Zoned::HostAware => 1,
            Zoned::DeviceManaged => 2,
            Zoned::Reserved => 3,
        }
    }

    /// Returns the value for a two-bit number.
    pub fn from_number(number: u8) -> Zoned {
        match number {
            0 => Zoned::Unknown,
            1 => Zoned::HostAware,
            2 => Zoned::DeviceManaged,
            _ => Zoned::Reserved,
        }
    }
}

impl Rotation {
    /// The number for this value.
    pub fn number(self) -> u16 {
        match self {
            Rotation::Unknown => 0,
            Rotation::None => 1,
            Rotation::Rpm(number) | Rotation::Reserved(number) => number,
        }
    }

    /// Returns the value for a number.
    pub fn from_number(number: u16) -> Rotation {
        match number {
            0 => Rotation::Unknown,
            1 => Rotation::None,
            0x0401..=0xfffe => Rotation::Rpm(number),
            _ => Rotation::Reserved(number),
        }
    }
}
