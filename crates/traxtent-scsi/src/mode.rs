//! Mode parameters: a header, a block descriptor, pages (SPC-5, "Mode parameters").

use super::command::ModeWidth;
use super::wire::{
    IntoBytes, ScsiError, U16, U32, U64, at_most, bits, decode_prefix, padded, to_u24, u24, wire,
};

/// The page code that means all pages.
pub const ALL_PAGES: u8 = 0x3f;

/// The data of MODE SENSE and MODE SELECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeData<'a> {
    /// Whether the device is write-protected (WP).
    pub write_protected: bool,
    /// Whether the drive supports the bits DPO and FUA (DPOFUA).
    pub dpo_fua: bool,
    /// The number of logical sectors, and their size.
    pub blocks: Option<BlockDescriptor>,
    /// The bytes of consecutive pages; [`pages`] splits them.
    pub pages: &'a [u8],
}

/// The number of a drive's logical sectors, and their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockDescriptor {
    /// The number of sectors. A short descriptor (8 bytes) contains 2^32 - 1 if the number is
    /// larger.
    pub sectors: u64,
    /// The number of bytes per sector.
    pub bytes: u32,
    /// Whether the descriptor has 16 bytes.
    pub long: bool,
}

/// A mode page as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPage<'a> {
    /// The page's number.
    pub code: u8,
    /// The number of the subpage, or 0 if the page has none.
    pub subpage: u8,
    /// Whether the drive can save the page across power cycles (PS).
    pub savable: bool,
    /// All bytes of the page, including the header.
    pub bytes: &'a [u8],
}

bits! {
    struct DeviceByte {
        #[bits(4)] __: u8,
        dpo_fua: bool,
        #[bits(2)] __: u8,
        write_protected: bool,
    }
    struct LongBlocks {
        set: bool,
        #[bits(7)] __: u8,
    }
    struct PageByte {
        #[bits(6)] code: u8,
        subpages: bool,
        savable: bool,
    }
}

wire! {
    struct Header6 { length: u8, medium: u8, device: DeviceByte, descriptors: u8 }
    struct Header10 { length: U16, medium: u8, device: DeviceByte, long: LongBlocks, reserved: u8, descriptors: U16 }
    struct ShortDescriptor { sectors: U32, density: u8, bytes: [u8; 3] }
    struct LongDescriptor { sectors: U64, density: U32, bytes: U32 }
    struct PageHeader { code: PageByte, length: u8 }
    struct SubpageHeader { code: PageByte, subpage: u8, length: U16 }
}

impl ModeData<'_> {
    /// Encodes a response to MODE SENSE.
    pub fn encode_sense(&self, width: ModeWidth) -> Vec<u8> {
        let device = DeviceByte::new()
            .with_dpo_fua(self.dpo_fua)
            .with_write_protected(self.write_protected);
        let descriptor = self.blocks.map_or_else(Vec::new, BlockDescriptor::encode);
        let follow = descriptor.len() + self.pages.len();
        let header = match width {
            ModeWidth::Six => {
                let length = follow + size_of::<Header6>() - size_of::<u8>();
                header_6(u8::try_from(length).unwrap_or(u8::MAX), device, &descriptor)
            }
            ModeWidth::Ten => {
                let length = follow + size_of::<Header10>() - size_of::<U16>();
                let length = u16::try_from(length).unwrap_or(u16::MAX);
                self.header_10(length, device, &descriptor)
            }
        };
        [&header, &descriptor, self.pages].concat()
    }

    /// Encodes the data that MODE SELECT sends. In this data, the length, the device-specific byte
    /// and the pages' PS bits are reserved and zero.
    pub fn encode_select(&self, width: ModeWidth) -> Vec<u8> {
        let descriptor = self.blocks.map_or_else(Vec::new, BlockDescriptor::encode);
        let header = match width {
            ModeWidth::Six => header_6(0, DeviceByte::new(), &descriptor),
            ModeWidth::Ten => self.header_10(0, DeviceByte::new(), &descriptor),
        };
        let mut bytes = [header, descriptor].concat();
        for page in pages(self.pages) {
            let from = bytes.len();
            bytes.extend_from_slice(page.bytes);
            let code = PageByte::from_bits(bytes[from]).with_savable(false);
            bytes[from] = code.into_bits();
        }
        bytes
    }

    fn header_10(&self, length: u16, device: DeviceByte, descriptor: &[u8]) -> Vec<u8> {
        Header10 {
            length: length.into(),
            device,
            long: LongBlocks::new().with_set(self.blocks.is_some_and(|blocks| blocks.long)),
            descriptors: (descriptor.len() as u16).into(),
            ..Default::default()
        }
        .as_bytes()
        .to_vec()
    }
}

fn header_6(length: u8, device: DeviceByte, descriptor: &[u8]) -> Vec<u8> {
    Header6 {
        length,
        medium: 0,
        device,
        descriptors: descriptor.len() as u8,
    }
    .as_bytes()
    .to_vec()
}

impl<'a> ModeData<'a> {
    /// Decodes the data of a MODE SENSE or MODE SELECT, which may be truncated to the allocation
    /// length. A length of zero, as in MODE SELECT, means all bytes.
    ///
    /// # Errors
    /// Returns an error if the header or the block descriptor is incomplete.
    pub fn decode(width: ModeWidth, bytes: &'a [u8]) -> Result<ModeData<'a>, ScsiError> {
        let what = "mode parameters";
        let (length, device, long, descriptors, rest, head) = match width {
            ModeWidth::Six => {
                let (header, rest) = decode_prefix::<Header6>(what, bytes)?;
                let (length, descriptors) = (header.length.into(), header.descriptors.into());
                let head = size_of::<Header6>() - size_of::<u8>();
                (length, header.device, false, descriptors, rest, head)
            }
            ModeWidth::Ten => {
                let (header, rest) = decode_prefix::<Header10>(what, bytes)?;
                let length = usize::from(header.length.get());
                let descriptors = usize::from(header.descriptors.get());
                let head = size_of::<Header10>() - size_of::<U16>();
                let long = header.long.set();
                (length, header.device, long, descriptors, rest, head)
            }
        };
        let body = match length {
            0 => rest,
            length => at_most(rest, usize::saturating_sub(length, head)),
        };
        let (descriptor, pages) =
            body.split_at_checked(descriptors)
                .ok_or(ScsiError::Truncated {
                    what: "block descriptors",
                    needed: descriptors,
                    got: body.len(),
                })?;
        Ok(ModeData {
            write_protected: device.write_protected(),
            dpo_fua: device.dpo_fua(),
            blocks: BlockDescriptor::decode(descriptor, long)?,
            pages,
        })
    }
}

impl BlockDescriptor {
    fn encode(self) -> Vec<u8> {
        if self.long {
            LongDescriptor {
                sectors: self.sectors.into(),
                density: 0.into(),
                bytes: self.bytes.into(),
            }
            .as_bytes()
            .to_vec()
        } else {
            ShortDescriptor {
                sectors: u32::try_from(self.sectors).unwrap_or(u32::MAX).into(),
                density: 0,
                bytes: to_u24(self.bytes),
            }
            .as_bytes()
            .to_vec()
        }
    }

    /// Decodes the first descriptor, if there is one.
    fn decode(bytes: &[u8], long: bool) -> Result<Option<BlockDescriptor>, ScsiError> {
        let what = "a block descriptor";
        if bytes.is_empty() {
            return Ok(None);
        }
        let (sectors, size) = if long {
            let (descriptor, _) = decode_prefix::<LongDescriptor>(what, bytes)?;
            (descriptor.sectors.get(), descriptor.bytes.get())
        } else {
            let (descriptor, _) = decode_prefix::<ShortDescriptor>(what, bytes)?;
            (descriptor.sectors.get().into(), u24(descriptor.bytes))
        };
        Ok(Some(BlockDescriptor {
            sectors,
            bytes: size,
            long,
        }))
    }
}

/// Iterates over consecutive pages, up to the first incomplete one.
pub fn pages(mut bytes: &[u8]) -> impl Iterator<Item = RawPage<'_>> {
    std::iter::from_fn(move || {
        let (header, _) = decode_prefix::<PageHeader>("a mode page", bytes).ok()?;
        let (subpage, length) = if header.code.subpages() {
            let (long, _) = decode_prefix::<SubpageHeader>("a mode subpage", bytes).ok()?;
            let length = size_of::<SubpageHeader>() + usize::from(long.length.get());
            (long.subpage, length)
        } else {
            (0, size_of::<PageHeader>() + usize::from(header.length))
        };
        let (page, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(RawPage {
            code: header.code.code(),
            subpage,
            savable: header.code.savable(),
            bytes: page,
        })
    })
}

/// The caching page (08h; SBC-4), limited to the fields that a probe and a model need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachingPage {
    /// Whether a write is complete once it is in the buffer (WCE).
    pub write_cache: bool,
    /// Whether reads bypass the buffer (RCD).
    pub read_cache_disabled: bool,
    /// Whether read-ahead is disabled (DRA). Drives older than SCSI-3 lack this bit.
    pub read_ahead_disabled: bool,
    /// The length in logical sectors above which a read causes no read-ahead (DISABLE PREFETCH
    /// TRANSFER LENGTH).
    pub prefetch_up_to: u16,
    /// The longest read-ahead, in logical sectors.
    pub maximum_prefetch: u16,
    /// The number of segments in the buffer.
    pub segments: u8,
}

/// The format page (03h; obsolete since SBC-2), limited to the meaningful fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatPage {
    /// The number of tracks that share spares. 0 if not reported.
    pub tracks_per_zone: u16,
    /// Spare sectors per group of [`FormatPage::tracks_per_zone`] tracks.
    pub alternate_sectors_per_zone: u16,
    /// Physical sectors per track. 0 if it varies.
    pub sectors_per_track: u16,
    /// Bytes per physical sector.
    pub bytes_per_sector: u16,
    /// 1 if consecutive sectors are adjacent.
    pub interleave: u16,
    /// Sectors between the beginnings of consecutive tracks of a cylinder.
    pub track_skew: u16,
    /// Sectors between the beginnings of consecutive cylinders.
    pub cylinder_skew: u16,
}

/// The rigid disk geometry page (04h; obsolete since SBC-2), limited to the meaningful fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeometryPage {
    /// Arm positions, up to 2^24 - 1.
    pub cylinders: u32,
    /// Surfaces.
    pub heads: u8,
    /// Revolutions per minute. 0 if not reported.
    pub rpm: u16,
}

/// The number of the format page.
pub const FORMAT_PAGE: u8 = 0x03;
/// The number of the geometry page.
pub const GEOMETRY_PAGE: u8 = 0x04;
/// The number of the caching page.
pub const CACHING_PAGE: u8 = 0x08;

bits! {
    struct CacheFlags {
        read_cache_disabled: bool,
        multiplication: bool,
        write_cache: bool,
        size: bool,
        discontinuity: bool,
        analysis: bool,
        abort_prefetch: bool,
        initiator_control: bool,
    }
    struct AheadFlags {
        non_volatile_disabled: bool,
        #[bits(2)] progress: u8,
        #[bits(2)] vendor: u8,
        read_ahead_disabled: bool,
        segment_size_in_sectors: bool,
        force_sequential: bool,
    }
}

wire! {
    struct Caching {
        header: PageHeader,
        flags: CacheFlags,
        retention: u8,
        prefetch_up_to: U16,
        minimum_prefetch: U16,
        maximum_prefetch: U16,
        prefetch_ceiling: U16,
        ahead: AheadFlags,
        segments: u8,
        segment_size: U16,
        reserved: u8,
        obsolete: [u8; 3],
    }
    struct Format {
        header: PageHeader,
        tracks_per_zone: U16,
        alternate_sectors_per_zone: U16,
        alternate_tracks_per_zone: U16,
        alternate_tracks: U16,
        sectors_per_track: U16,
        bytes_per_sector: U16,
        interleave: U16,
        track_skew: U16,
        cylinder_skew: U16,
        sectoring: u8,
        reserved: [u8; 3],
    }
    struct Geometry {
        header: PageHeader,
        cylinders: [u8; 3],
        heads: u8,
        unused: [u8; 11],
        position_locking: u8,
        rotational_offset: u8,
        reserved: u8,
        rpm: U16,
        reserved_2: U16,
    }
}

fn page_header<T>(code: u8, savable: bool) -> PageHeader {
    PageHeader {
        code: PageByte::new().with_code(code).with_savable(savable),
        length: (size_of::<T>() - size_of::<PageHeader>()) as u8,
    }
}

impl CachingPage {
    /// Encodes the page as 20 bytes. Other fields are zero.
    pub fn encode(&self) -> Vec<u8> {
        let blank = Caching {
            header: page_header::<Caching>(CACHING_PAGE, true),
            ..Default::default()
        };
        let mut bytes = blank.as_bytes().to_vec();
        self.apply(&mut bytes);
        bytes
    }

    /// Writes these values to the bytes of a page and leaves all other values unchanged. Values for
    /// which a page of an earlier standard has no room are omitted.
    pub fn apply(&self, page: &mut [u8]) {
        let mut caching: Caching = padded(page);
        caching.flags.set_write_cache(self.write_cache);
        caching
            .flags
            .set_read_cache_disabled(self.read_cache_disabled);
        caching
            .ahead
            .set_read_ahead_disabled(self.read_ahead_disabled);
        caching.prefetch_up_to = self.prefetch_up_to.into();
        caching.maximum_prefetch = self.maximum_prefetch.into();
        caching.segments = self.segments;
        let length = page.len().min(size_of::<Caching>());
        page[..length].copy_from_slice(&caching.as_bytes()[..length]);
    }

    /// Decodes a page. Fields that a page of an earlier standard lacks are zero.
    pub fn decode(page: &[u8]) -> CachingPage {
        let caching: Caching = padded(page);
        CachingPage {
            write_cache: caching.flags.write_cache(),
            read_cache_disabled: caching.flags.read_cache_disabled(),
            read_ahead_disabled: caching.ahead.read_ahead_disabled(),
            prefetch_up_to: caching.prefetch_up_to.get(),
            maximum_prefetch: caching.maximum_prefetch.get(),
            segments: caching.segments,
        }
    }
}

impl FormatPage {
    /// Encodes the page as 24 bytes.
    pub fn encode(&self) -> Vec<u8> {
        Format {
            header: page_header::<Format>(FORMAT_PAGE, false),
            tracks_per_zone: self.tracks_per_zone.into(),
            alternate_sectors_per_zone: self.alternate_sectors_per_zone.into(),
            sectors_per_track: self.sectors_per_track.into(),
            bytes_per_sector: self.bytes_per_sector.into(),
            interleave: self.interleave.into(),
            track_skew: self.track_skew.into(),
            cylinder_skew: self.cylinder_skew.into(),
            ..Default::default()
        }
        .as_bytes()
        .to_vec()
    }

    /// Decodes a page. Missing fields are zero.
    pub fn decode(page: &[u8]) -> FormatPage {
        let format: Format = padded(page);
        FormatPage {
            tracks_per_zone: format.tracks_per_zone.get(),
            alternate_sectors_per_zone: format.alternate_sectors_per_zone.get(),
            sectors_per_track: format.sectors_per_track.get(),
            bytes_per_sector: format.bytes_per_sector.get(),
            interleave: format.interleave.get(),
            track_skew: format.track_skew.get(),
            cylinder_skew: format.cylinder_skew.get(),
        }
    }
}

impl GeometryPage {
    /// Encodes the page as 24 bytes.
    pub fn encode(&self) -> Vec<u8> {
        Geometry {
            header: page_header::<Geometry>(GEOMETRY_PAGE, false),
            cylinders: to_u24(self.cylinders),
            heads: self.heads,
            rpm: self.rpm.into(),
            ..Default::default()
        }
        .as_bytes()
        .to_vec()
    }

    /// Decodes a page. Missing fields are zero.
    pub fn decode(page: &[u8]) -> GeometryPage {
        let geometry: Geometry = padded(page);
        GeometryPage {
            cylinders: u24(geometry.cylinders),
            heads: geometry.heads,
            rpm: geometry.rpm.get(),
        }
    }
}
