//! The commands that make a stack from scratch, with every layer aligned to those below.

mod error;
mod free_names;
pub mod script;

use serde::Serialize;
use traxtent_layout::Partition;
use traxtent_units::Lbn;

use super::badblocks::{BadBlocks, FileSystemSpec, NoListError};
use super::stack_spec::{FileSystem, Partitioner, StackSpec, Table};
use super::target_drive::{
    ALIGNMENT_BYTES, DriveProperties, GPT_TAIL_LBNS, PartitionPlace, StartReason,
};

pub use error::StackPlanError;

/// The offset of md's data, after its superblock and bitmap. The default of mdadm depends on the
/// size; this offset has room for both at any size, and is a multiple of every chunk.
const MD_DATA_BYTES: u64 = 64 << 20;
/// The default of cryptsetup for the header of LUKS2.
const LUKS_DATA_BYTES: u64 = 16 << 20;
/// The default extent size of vgcreate.
const EXTENT_BYTES: u64 = 4 << 20;
/// The size of an extent is a power of two or a multiple of this.
const EXTENT_STEP_BYTES: u64 = 128 << 10;
/// The largest unit in which the log of XFS is written.
const XFS_LOG_UNIT_BYTES_MAX: u64 = 256 << 10;
/// The unit that mkfs.xfs uses for the log instead of a larger one.
const XFS_LOG_UNIT_BYTES: u64 = 32 << 10;
/// The minimum size of a file system of XFS (xfsprogs 5.19 and later: `validate_supported` in
/// mkfs/xfs_mkfs.c).
const XFS_BYTES_MIN: u64 = 300 << 20;
/// The minimum size of a file system of XFS on stripes. mkfs.xfs then makes 8 allocation groups, of
/// which each must have room for a log of 64 MiB and for headers (xfsprogs 5.19 and later).
const XFS_STRIPED_BYTES_MIN: u64 = 8 * (64 << 20) + ALIGNMENT_BYTES;
/// The minimum size of a file system of Btrfs with nodes of 16 KiB and two copies of metadata
/// (btrfs-progs: `btrfs_min_dev_size` in mkfs/common.c).
const BTRFS_BYTES_MIN: u64 = 109 << 20;
/// The node of the array.
const ARRAY: &str = "/dev/md0";
/// The name of the volume group.
const GROUP: &str = "vg0";
/// The node of the opened LUKS device.
const OPENED: &str = "/dev/mapper/data";
/// `blockdev` and `cryptsetup` count in units of this size.
const UNIT_BYTES: u64 = 512;

/// The commands of a stack, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// The version of the JSON format.
    pub schema: u32,
    /// The place of the partition on each drive; `None` without a partition table.
    pub partition: Option<PartitionJson>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The list of bad blocks for mke2fs, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlockFile>,
}

/// A partition, in LBNs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionJson {
    /// The first LBN.
    pub start_lbn: u64,
    /// The first LBN after the partition.
    pub end_lbn: u64,
    /// Whether the partition begins at a track boundary.
    pub on_track: bool,
    /// The reason for its start.
    pub why: StartReason,
}

/// One step: its purpose and its commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The purpose.
    pub what: String,
    /// The program that does it.
    pub program: &'static str,
    /// The commands. One command may have several lines.
    pub commands: Vec<String>,
}

/// A list of bad blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadBlockFile {
    /// The name of the file, as in the commands.
    pub file: String,
    /// The number of blocks in the list.
    pub blocks: u64,
    /// The number of blocks of the partition that span two tracks.
    pub excluded: u64,
    /// The number of them that stay out of the list.
    pub left_in: u64,
    /// The list, and the parameters that mke2fs needs with it.
    #[serde(skip)]
    pub list: BadBlocks,
}

/// Plans a stack. `devices` names the drives as they appear in commands, `list` the file for bad
/// blocks.
///
/// # Errors
/// Returns an error if such a stack is not possible on these drives, or if the number of devices
/// differs from the number of drives.
pub fn plan_stack(
    properties: &DriveProperties,
    want: &StackSpec,
    devices: &[String],
    list: &str,
) -> Result<Recipe, StackPlanError> {
    if devices.len() != want.disks as usize {
        return Err(StackPlanError::Devices {
            disks: want.disks,
            named: devices.len(),
        });
    }
    let mut builder = RecipeBuilder::new(properties, want);
    builder.partitions(devices)?;
    builder.array()?;
    builder.volume_group()?;
    builder.encryption()?;
    builder.file_system(list)?;
    builder.read_ahead();
    builder.check_again(devices);
    builder.test_names();
    Ok(builder.recipe)
}

/// The state of a recipe under construction.
struct RecipeBuilder<'a> {
    properties: &'a DriveProperties,
    want: &'a StackSpec,
    recipe: Recipe,
    /// The block devices that the next layer lies on.
    below: Vec<String>,
    /// The LBN on each drive that holds the next layer's address 0; `None` if chunks of several
    /// drives alternate.
    base: Option<u64>,
    /// The first LBN after those that the next layer may use.
    end: u64,
    /// The size of the device that the next layer lies on, in bytes.
    bytes: u64,
    /// The sizes in bytes of a chunk and of the data in a full stripe.
    stripes: Option<(u64, u64)>,
}

impl<'a> RecipeBuilder<'a> {
    fn new(properties: &'a DriveProperties, want: &'a StackSpec) -> RecipeBuilder<'a> {
        RecipeBuilder {
            properties,
            want,
            recipe: Recipe {
                schema: 1,
                partition: None,
                steps: Vec::new(),
                notes: Vec::new(),
                bad_blocks: None,
            },
            below: Vec::new(),
            base: Some(0),
            end: properties.lbns,
            bytes: properties
                .lbns
                .saturating_mul(u64::from(properties.logical_bytes)),
            stripes: None,
        }
    }

    fn step(&mut self, what: &str, program: &'static str, commands: Vec<String>) {
        self.recipe.steps.push(Step {
            what: what.to_owned(),
            program,
            commands,
        });
    }

    fn note(&mut self, note: String) {
        self.recipe.notes.push(note);
    }

    fn partitions(&mut self, devices: &[String]) -> Result<(), StackPlanError> {
        self.note(format!("All data on {} will be lost.", devices.join(", ")));
        if let Some(covered) = self.properties.partly_mapped().filter(|_| self.want.tracks) {
            let effect = match self.want.table {
                Table::None => "no other block is left out for a track boundary",
                Table::Gpt | Table::Mbr => "the partition ends there",
            };
            self.note(format!(
                "The track map covers only LBNs {} to {} of {}, so {effect}.",
                covered.start,
                covered.end - 1,
                self.properties.lbns
            ));
        }
        if self.want.table == Table::None {
            self.below = devices.to_vec();
            if self.properties.lowest_aligned.0 > 0 {
                self.note(format!(
                    "The first physical sector begins at LBN {}, so without a partition nothing is aligned.",
                    self.properties.lowest_aligned.0
                ));
            }
            return Ok(());
        }
        // Layers between the partition and the file system shift it by whole blocks.
        let can_list_blocks =
            self.want.fs.is_ext() && self.want.raid.is_none_or(|raid| raid.chunk_bytes.is_none());
        let block = u64::from(
            self.want.block_bytes / self.properties.logical_bytes.min(self.want.block_bytes),
        );
        let site = self
            .properties
            .site(self.want.tracks, can_list_blocks.then_some(block));
        let site = site.ok_or(StackPlanError::TooSmall {
            lbns: self.properties.lbns,
        })?;
        if self.want.table == Table::Mbr && site.lbns.end.0 > 1 << 32 {
            return Err(StackPlanError::MbrTooShort {
                end: site.lbns.end.0,
            });
        }
        let program = match self.want.with {
            Partitioner::Sfdisk => "sfdisk",
            Partitioner::Parted => "parted",
            Partitioner::Sgdisk => "sgdisk",
        };
        let commands = devices.iter().map(|device| self.partition(device, &site));
        let mut commands: Vec<String> = commands.collect();
        if devices.len() > 1 {
            commands.insert(0, self.test_drives(devices, &site));
        }
        if devices.iter().any(|device| is_udev_link(device)) {
            commands.push("udevadm settle".to_owned());
        }
        commands.extend(devices.iter().map(|device| announce_partition(device)));
        let what = format!(
            "One partition, from LBN {}: {}",
            site.lbns.start.0, site.why
        );
        self.step(&what, program, commands);
        self.below = devices
            .iter()
            .map(|device| first_partition(device))
            .collect();
        (self.base, self.end) = (Some(site.lbns.start.0), site.lbns.end.0);
        self.bytes =
            (site.lbns.end.0 - site.lbns.start.0) * u64::from(self.properties.logical_bytes);
        self.recipe.partition = Some(PartitionJson {
            start_lbn: site.lbns.start.0,
            end_lbn: site.lbns.end.0,
            on_track: site.on_track,
            why: site.why,
        });
        Ok(())
    }

    /// Returns the command that tests all drives before the first table is replaced.
    fn test_drives(&self, devices: &[String], site: &PartitionPlace) -> String {
        let logical = self.properties.logical_bytes;
        let lbns = site.lbns.end.0 + GPT_TAIL_LBNS;
        format!(
            "for drive in {}; do\n  \
             test -b \"$drive\" || {{ echo \"$drive: there is no such block device\" >&2; exit 1; }}\n  \
             test \"$(blockdev --getss \"$drive\")\" = {logical} && \
             test \"$(blockdev --getsize64 \"$drive\")\" -ge {} ||\n    \
             {{ echo \"$drive: not a drive of {lbns} or more sectors of {logical} bytes\" >&2; exit 1; }}\n\
             done",
            devices.join(" "),
            lbns * u64::from(logical),
        )
    }

    fn partition(&self, device: &str, site: &PartitionPlace) -> String {
        let (start, end) = (site.lbns.start.0, site.lbns.end.0);
        let kind = match self.want {
            want if want.raid.is_some() => Content::Raid,
            want if want.lvm => Content::Lvm,
            want if want.luks_sector.is_some() => Content::Linux,
            want if want.fs == FileSystem::Swap => Content::Swap,
            _ => Content::Linux,
        };
        let gpt = self.want.table == Table::Gpt;
        match self.want.with {
            Partitioner::Sfdisk => {
                let label = if gpt { "gpt" } else { "dos" };
                // By default sfdisk keeps the first 1 MiB free, which does not suit a drive with a
                // shifted numbering.
                let first = if gpt {
                    format!(
                        "first-lba: {}\n",
                        start.min(ALIGNMENT_BYTES / u64::from(self.properties.logical_bytes))
                    )
                } else {
                    String::new()
                };
                format!(
                    "sfdisk {device} <<'END'\nlabel: {label}\nunit: sectors\n{first}start={start}, size={}, type={}\nEND",
                    end - start,
                    kind.shortcut()
                )
            }
            Partitioner::Parted => {
                let (label, name) = if gpt {
                    ("gpt", "data")
                } else {
                    ("msdos", "primary")
                };
                let flag = match kind {
                    Content::Raid => " set 1 raid on",
                    Content::Lvm => " set 1 lvm on",
                    Content::Swap if gpt => " set 1 swap on",
                    _ => "",
                };
                format!(
                    "parted --script --align none {device} mklabel {label} mkpart {name} {start}s {}s{flag}",
                    end - 1
                )
            }
            Partitioner::Sgdisk => format!(
                "sgdisk --clear --set-alignment=1 --new=1:{start}:{} --typecode=1:{} {device}",
                end - 1,
                kind.typecode()
            ),
        }
    }

    fn array(&mut self) -> Result<(), StackPlanError> {
        let Some(raid) = self.want.raid else {
            return Ok(());
        };
        let bitmap = if raid.level == 0 {
            ""
        } else {
            " --bitmap=internal"
        };
        let chunk = raid
            .chunk_bytes
            .map_or(String::new(), |bytes| format!(" --chunk={}K", bytes >> 10));
        let command = format!(
            "mdadm --create {ARRAY} --run --metadata=1.2 --level={} --raid-devices={}{chunk}{bitmap} --data-offset={}M {}",
            raid.level,
            self.want.disks,
            MD_DATA_BYTES >> 20,
            self.below.join(" ")
        );
        self.step(
            "The array; its data begins at a multiple of its chunk",
            "mdadm",
            vec![command],
        );
        self.below = vec![ARRAY.to_owned()];
        self.stripes = raid
            .chunk_bytes
            .map(|chunk| (chunk, chunk * u64::from(raid.data_chunks(self.want.disks))));
        let grain = raid.chunk_bytes.unwrap_or(ALIGNMENT_BYTES);
        self.advance_base("a member of the array", MD_DATA_BYTES, grain)?;
        let chunks = u64::from(raid.data_chunks(self.want.disks));
        self.bytes = self.bytes.saturating_mul(chunks);
        if self.stripes.is_some() {
            self.base = None;
        }
        Ok(())
    }

    /// Refuses a stack if fewer than `bytes` bytes are left for `layer`.
    fn require(&self, layer: &'static str, bytes: u64) -> Result<(), StackPlanError> {
        if self.bytes >= bytes {
            return Ok(());
        }
        Err(StackPlanError::LayerTooSmall {
            lbns: self.properties.lbns,
            layer,
            needed_bytes: bytes,
            left_bytes: self.bytes,
        })
    }

    /// Moves the start of the data by `bytes`, for a layer whose data length is a multiple of
    /// `grain` bytes: the layer's own rounding unit or a multiple of it.
    fn advance_base(
        &mut self,
        layer: &'static str,
        bytes: u64,
        grain: u64,
    ) -> Result<(), StackPlanError> {
        self.require(layer, bytes + grain)?;
        self.bytes = (self.bytes - bytes) / grain * grain;
        let logical = u64::from(self.properties.logical_bytes);
        self.base = self.base.map(|base| base + bytes / logical);
        if let Some(base) = self.base {
            let grain = grain / logical;
            self.end = base + self.end.saturating_sub(base) / grain * grain;
        }
        Ok(())
    }

    /// Rounds `bytes` up to a whole number of full stripes.
    fn whole_stripes(&self, bytes: u64) -> u64 {
        self.stripes
            .map_or(bytes, |(_, stripe)| bytes.next_multiple_of(stripe))
    }

    fn device(&self) -> String {
        self.below[0].clone()
    }

    fn volume_group(&mut self) -> Result<(), StackPlanError> {
        if !self.want.lvm {
            return Ok(());
        }
        let (device, data) = (self.device(), self.whole_stripes(ALIGNMENT_BYTES));
        // Later volumes begin at multiples of an extent, so an extent is also a whole number of
        // stripes.
        let extent = match self.stripes {
            Some((_, stripe)) if !EXTENT_BYTES.is_multiple_of(stripe) => {
                let step = lcm(stripe, EXTENT_STEP_BYTES);
                EXTENT_BYTES.next_multiple_of(step)
            }
            _ => EXTENT_BYTES,
        };
        self.step(
            match self.stripes {
                Some(_) => "A volume group and one volume; data and extents are whole stripes",
                None => "A volume group and one volume",
            },
            "lvm",
            vec![
                format!("pvcreate --dataalignment {}k {device}", data >> 10),
                format!(
                    "vgcreate --physicalextentsize {}k {GROUP} {device}",
                    extent >> 10
                ),
                format!("lvcreate --extents 100%FREE --name data {GROUP}"),
            ],
        );
        self.below = vec![format!("/dev/{GROUP}/data")];
        self.advance_base("a physical volume", data, extent)
    }

    fn encryption(&mut self) -> Result<(), StackPlanError> {
        let Some(requested) = self.want.luks_sector else {
            return Ok(());
        };
        let physical = self.properties.physical_bytes;
        let sector = if requested == 0 {
            physical.clamp(512, 4096)
        } else {
            requested
        };
        if sector < physical.min(4096) {
            return Err(StackPlanError::LuksBelowSector {
                sector_bytes: sector,
                physical_bytes: physical,
            });
        }
        if self.want.block_bytes < sector {
            return Err(StackPlanError::BlockBelowLuks {
                block_bytes: self.want.block_bytes,
                sector_bytes: sector,
            });
        }
        let (device, data) = (self.device(), self.whole_stripes(LUKS_DATA_BYTES));
        self.step(
            &format!("Encryption in sectors of {sector} bytes; data begins {} KiB after the start of the header", data >> 10),
            "cryptsetup",
            vec![
                format!(
                    "cryptsetup luksFormat --type luks2 --sector-size {sector} --offset {} {device}",
                    data / UNIT_BYTES
                ),
                format!("cryptsetup open {device} data"),
            ],
        );
        self.below = vec![OPENED.to_owned()];
        self.advance_base("LUKS2", data, u64::from(sector))
    }

    fn file_system(&mut self, list: &str) -> Result<(), StackPlanError> {
        let (device, block) = (self.device(), self.want.block_bytes);
        if block < self.properties.physical_bytes {
            return Err(StackPlanError::BlockBelowSector {
                block_bytes: block,
                physical_bytes: self.properties.physical_bytes,
            });
        }
        let least = match (self.want.fs, self.stripes) {
            (FileSystem::Xfs, None) => XFS_BYTES_MIN,
            (FileSystem::Xfs, Some(_)) => XFS_STRIPED_BYTES_MIN,
            (FileSystem::Btrfs, _) => BTRFS_BYTES_MIN,
            // Enough for mke2fs and mkswap, and the smallest partition.
            _ => ALIGNMENT_BYTES,
        };
        self.require(self.want.fs.name(), least)?;
        let what = format!("{} in blocks of {block} bytes", self.want.fs);
        match self.want.fs {
            FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => return self.ext(list),
            FileSystem::Xfs => {
                let sector = self.properties.physical_bytes.max(512);
                let stripes = self.stripes.map_or(String::new(), |(chunk, stripe)| {
                    let log = if chunk <= XFS_LOG_UNIT_BYTES_MAX {
                        chunk
                    } else {
                        XFS_LOG_UNIT_BYTES
                    };
                    format!(
                        " -d su={}k,sw={} -l su={}k",
                        chunk >> 10,
                        stripe / chunk,
                        log >> 10
                    )
                });
                let command =
                    format!("mkfs.xfs -b size={block} -s size={sector}{stripes} {device}");
                self.step(&what, "mkfs.xfs", vec![command]);
            }
            FileSystem::Btrfs => {
                let command = format!("mkfs.btrfs --sectorsize {block} {device}");
                self.step(&what, "mkfs.btrfs", vec![command]);
            }
            FileSystem::Swap => {
                self.step(
                    "Swap space, in pages",
                    "mkswap",
                    vec![format!("mkswap {device}")],
                );
            }
        }
        Ok(())
    }

    fn ext(&mut self, list: &str) -> Result<(), StackPlanError> {
        let (device, block, fs) = (self.device(), self.want.block_bytes, self.want.fs);
        let what = format!("{fs} in blocks of {block} bytes");
        match self.bad_blocks()? {
            Some(Ok(plan)) => {
                let mut words = vec!["mke2fs".to_owned(), "-t".to_owned(), fs.to_string()];
                words.extend(plan.arguments(list));
                words.extend([device.clone(), plan.blocks.to_string()]);
                // If the device does not exist, mke2fs creates a file of that many blocks.
                let exists = format!(
                    "test -b {device} || {{ echo {device}: not a block device >&2; exit 1; }}"
                );
                let what = format!("{what}, without those that span two tracks");
                self.step(&what, "mke2fs", vec![exists, words.join(" ")]);
                self.step(
                    "Is the file system consistent?",
                    "e2fsck",
                    vec![format!("e2fsck -fn {device}")],
                );
                self.note_list(&plan);
                self.recipe.bad_blocks = Some(BadBlockFile {
                    file: list.to_owned(),
                    blocks: plan.list.len() as u64,
                    excluded: plan.excluded,
                    left_in: plan.under_tables + plan.too_many,
                    list: plan,
                });
                return Ok(());
            }
            Some(Err(why)) => {
                self.note(format!("There is no list of bad blocks for mke2fs: {why}."))
            }
            None => {}
        }
        let stripes = self.stripes.map_or(String::new(), |(chunk, stripe)| {
            let block = u64::from(block);
            format!(
                " -E stride={},stripe_width={}",
                chunk / block,
                stripe / block
            )
        });
        let command = format!(
            "mke2fs -t {fs} -b {block} -i {}{stripes} {device}",
            self.want.inode_ratio
        );
        self.step(&what, "mke2fs", vec![command]);
        Ok(())
    }

    /// Returns the list of bad blocks, or the reason for not having one; `None` if tracks are not
    /// considered.
    fn bad_blocks(&mut self) -> Result<Option<Result<BadBlocks, NoListError>>, StackPlanError> {
        let Some(map) = self.properties.tracks.as_ref().filter(|_| self.want.tracks) else {
            return Ok(None);
        };
        let Some(base) = self.base else {
            self.note(
                "The blocks of the array lie on several drives in turn, so tracks are not considered above it.".to_owned(),
            );
            return Ok(None);
        };
        let sectors = traxtent_layout::sectors_of_block(
            self.want.block_bytes,
            self.properties.logical_bytes,
        )?;
        let end = Lbn(self.end.min(map.end().0));
        let partition = Partition::new(std::sync::Arc::clone(map), Lbn(base)..end, sectors)?;
        let spec = FileSystemSpec {
            block_bytes: self.want.block_bytes,
            inode_ratio: self.want.inode_ratio,
        };
        Ok(Some(BadBlocks::plan(&partition, spec)))
    }

    fn note_list(&mut self, plan: &BadBlocks) {
        let percent = 100.0 * plan.excluded as f64 / plan.blocks as f64;
        let stay = |count: u64| match count {
            1 => "1 stays".to_owned(),
            count => format!("{count} stay"),
        };
        self.note(format!(
            "{} of {} blocks ({percent:.2} %) span two tracks; {} are given up.",
            plan.excluded,
            plan.blocks,
            plan.list.len()
        ));
        if plan.under_tables > 0 {
            self.note(format!(
                "{} in use, because mke2fs may put superblocks or descriptors there.",
                stay(plan.under_tables)
            ));
        }
        if let (1.., Some(last)) = (plan.too_many, plan.list.last()) {
            self.note(format!(
                "{} in use, after block {last}, because the inode of bad blocks must be shorter than 2 GiB; two partitions{} would avoid this.",
                stay(plan.too_many),
                if self.want.block_bytes > 1024 { " or smaller blocks" } else { "" }
            ));
        }
        if plan.inode_ratio() > 2 * self.want.inode_ratio {
            self.note(format!(
                "There is one inode per {} bytes, not per {}, so that the inode table of a group fits between two such blocks.",
                plan.inode_ratio(),
                self.want.inode_ratio
            ));
        }
    }

    fn read_ahead(&mut self) {
        if self.want.fs == FileSystem::Swap {
            return;
        }
        let logical = u64::from(self.properties.logical_bytes);
        let tracks = self.properties.tracks.as_ref().filter(|_| self.want.tracks);
        let track = tracks.and_then(|map| map.runs().map(|(sectors, _)| sectors).max());
        let (bytes, what) = match (self.stripes, track) {
            (Some((_, stripe)), _) => (
                2 * stripe,
                "Read-ahead of two full stripes, until the next boot",
            ),
            (None, Some(track)) => (
                u64::from(track) * logical,
                "Read-ahead of a track, until the next boot",
            ),
            (None, None) => return,
        };
        // The read-ahead of the topmost block device, in whole pages.
        let units = bytes.next_multiple_of(4096) / UNIT_BYTES;
        let command = format!("blockdev --setra {units} {}", self.device());
        self.step(what, "blockdev", vec![command]);
    }

    fn check_again(&mut self, devices: &[String]) {
        let mut command = format!("traxtent check {}", devices.join(" "));
        if self.properties.physical_bytes != self.properties.logical_bytes {
            command += &format!(" --physical-sector {}", self.properties.physical_bytes);
        }
        self.step("Is every layer aligned?", "traxtent", vec![command]);
    }
}

/// The purpose of a partition.
#[derive(Clone, Copy)]
enum Content {
    Linux,
    Raid,
    Lvm,
    Swap,
}

impl Content {
    /// Returns the type for sfdisk, for GPT and MBR alike.
    fn shortcut(self) -> &'static str {
        match self {
            Content::Linux => "L",
            Content::Raid => "R",
            Content::Lvm => "V",
            Content::Swap => "S",
        }
    }

    /// Returns the type for sgdisk.
    fn typecode(self) -> &'static str {
        match self {
            Content::Linux => "8300",
            Content::Raid => "FD00",
            Content::Lvm => "8E00",
            Content::Swap => "8200",
        }
    }
}

/// Returns whether a shell word is a link that udev creates, after the kernel creates the device.
fn is_udev_link(device: &str) -> bool {
    device.trim_start_matches('\'').starts_with("/dev/disk/")
}

/// Returns the node of the first partition: if the device name ends in a digit, a `p` comes before
/// the number. For links of udev, `-part` does. A quoted shell variable is a loop device.
fn first_partition(device: &str) -> String {
    if let Some(variable) = device
        .strip_prefix("\"$")
        .and_then(|rest| rest.strip_suffix('"'))
    {
        return format!("\"${{{variable}}}p1\"");
    }
    let name = device.trim_end_matches('\'');
    let p = if is_udev_link(device) {
        "-part"
    } else if name.ends_with(|c: char| c.is_ascii_digit()) {
        "p"
    } else {
        ""
    };
    format!("{device}{p}1")
}

/// Returns the command that tells the kernel of a new partition. The partitioning programs only ask
/// the kernel to read the table again. It refuses that for loop devices without partition scanning,
/// and some kernels for all loop devices. If the kernel has the partition, a failure of `partx`
/// does not end the script: udev may be reading the same table.
fn announce_partition(device: &str) -> String {
    format!(
        "partx --update {device} || test -b {}",
        first_partition(device)
    )
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the nodes of partitions named like those of the kernel and udev, also for quoted paths
    /// and a quoted shell variable?
    #[test]
    fn partition_nodes() {
        for (device, partition) in [
            ("/dev/sda", "/dev/sda1"),
            ("/dev/nvme0n1", "/dev/nvme0n1p1"),
            ("/dev/disk/by-id/ata-X", "/dev/disk/by-id/ata-X-part1"),
            ("/dev/disk/by-id/ata-X_7", "/dev/disk/by-id/ata-X_7-part1"),
            ("'/dev/disk/by-id/a b'", "'/dev/disk/by-id/a b'-part1"),
            ("'/dev/a b0'", "'/dev/a b0'p1"),
            ("\"$DISK\"", "\"${DISK}p1\""),
        ] {
            assert_eq!(first_partition(device), partition);
            assert_eq!(
                announce_partition(device),
                format!("partx --update {device} || test -b {partition}")
            );
        }
    }
}
