//! The commands that make a stack from scratch, in which every layer is aligned with those below.

use serde::Serialize;
use traxtent_core::layout::{self, LayoutError, Partition};
use traxtent_core::units::Lbn;

use super::badblocks::{Ask, BadBlocks, WithoutList};
use super::ground::{GRAIN_BYTES, Ground, Site};
use super::want::{FileSystem, Partitioner, Table, Want};

/// Where md puts data behind its superblock and bitmap. What mdadm takes by itself depends on the size; this is room
/// enough for either at any size, and a multiple of every chunk.
const MD_DATA_BYTES: u64 = 64 << 20;
/// What cryptsetup leaves for the header of LUKS2 by itself.
const LUKS_DATA_BYTES: u64 = 16 << 20;
/// What vgcreate takes by itself.
const EXTENT_BYTES: u64 = 4 << 20;
/// Extents are a power of two or a multiple of this.
const EXTENT_STEP_BYTES: u64 = 128 << 10;
/// The log of XFS is written in at most so many bytes at once; beyond, mkfs.xfs takes 32 KiB.
const XFS_LOG_UNIT_MOST: u64 = 256 << 10;
const XFS_LOG_UNIT: u64 = 32 << 10;
/// `blockdev` and `cryptsetup` count in these.
const UNIT_BYTES: u64 = 512;

/// What to type, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// The version of this description.
    pub schema: u32,
    /// Where the partition lies on each drive.
    pub partition: Option<PartitionJson>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What to know, a line each.
    pub notes: Vec<String>,
    /// What mke2fs is to read as bad blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<ListFile>,
}

/// A partition, in LBNs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionJson {
    /// The first.
    pub start_lbn: u64,
    /// The one behind the last.
    pub end_lbn: u64,
    /// Whether it begins where a track does.
    pub on_track: bool,
    /// Why there.
    pub why: String,
}

/// One step: what for, and the commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it is for.
    pub what: String,
    /// The program that does it.
    pub program: &'static str,
    /// What to type, a command a text; a command may have several lines.
    pub commands: Vec<String>,
}

/// A list of bad blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListFile {
    /// Its name, as the commands say it.
    pub file: String,
    /// How many blocks it has.
    pub blocks: u64,
    /// How many blocks of the partition lie on two tracks.
    pub excluded: u64,
    /// Of those, how many stay out of the list.
    pub left_in: u64,
    /// The blocks.
    #[serde(skip)]
    pub list: BadBlocks,
}

/// Why there is no such stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A block smaller than a physical sector.
    #[error(
        "blocks of {block_bytes} bytes on physical sectors of {physical_bytes}: each small write would be a read, a turn and a write; say block={physical_bytes}"
    )]
    BlockBelowSector {
        /// Of the file system, or of LUKS.
        block_bytes: u32,
        /// Of the drive.
        physical_bytes: u32,
    },
    /// A file-system block smaller than a sector of LUKS.
    #[error(
        "blocks of {block_bytes} bytes on encrypted sectors of {sector_bytes}: say luks={block_bytes}"
    )]
    BlockBelowLuks {
        /// Of the file system.
        block_bytes: u32,
        /// Of LUKS.
        sector_bytes: u32,
    },
    /// An MBR cannot name that many sectors.
    #[error("an MBR names sectors below {}, the partition ends at LBN {end}: say table=gpt", 1_u64 << 32)]
    MbrTooShort {
        /// Behind the partition.
        end: u64,
    },
    /// No room for a partition.
    #[error("{name} has {lbns} sectors, too few for a partition of 1 MiB")]
    TooSmall {
        /// The drive.
        name: String,
        /// Its size.
        lbns: u64,
    },
    /// Not as many names as drives.
    #[error("{disks} disks are wanted and {named} devices named")]
    Devices {
        /// Wanted.
        disks: u32,
        /// Named.
        named: usize,
    },
    /// The map does not fit the drive.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Plans a stack. `devices` are the drives as they are to be typed, `list` the file for bad blocks.
///
/// # Errors
/// Why there is no such stack on such drives.
pub fn plan(
    ground: &Ground,
    want: &Want,
    devices: &[String],
    list: &str,
) -> Result<Recipe, PlanError> {
    if devices.len() != want.disks as usize {
        return Err(PlanError::Devices {
            disks: want.disks,
            named: devices.len(),
        });
    }
    let mut making = Making::new(ground, want);
    making.partitions(devices)?;
    making.array();
    making.volume_group();
    making.encryption()?;
    making.file_system(list)?;
    making.read_ahead();
    making.look_again(devices);
    Ok(making.recipe)
}

/// A recipe while it is written.
struct Making<'a> {
    ground: &'a Ground,
    want: &'a Want,
    recipe: Recipe,
    /// The block devices that the next layer lies on.
    below: Vec<String>,
    /// The LBN of each drive on which the next layer's address 0 lies; none where chunks of several drives alternate.
    base: Option<u64>,
    /// The LBN behind the last that the next layer may use.
    end: u64,
    /// Bytes of a chunk and of a full stripe of data.
    stripes: Option<(u64, u64)>,
}

impl<'a> Making<'a> {
    fn new(ground: &'a Ground, want: &'a Want) -> Making<'a> {
        Making {
            ground,
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
            end: ground.lbns,
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

    fn partitions(&mut self, devices: &[String]) -> Result<(), PlanError> {
        self.note(format!("Everything on {} is lost.", devices.join(", ")));
        if self.want.table == Table::None {
            self.below = devices.to_vec();
            if self.ground.lowest_aligned.0 > 0 {
                self.note(format!(
                    "The first physical sector begins at LBN {}, so without a partition nothing is aligned.",
                    self.ground.lowest_aligned.0
                ));
            }
            return Ok(());
        }
        // Layers between move the file system by whole blocks.
        let blocks =
            self.want.fs.is_ext() && self.want.raid.is_none_or(|raid| raid.chunk_bytes.is_none());
        let block =
            u64::from(self.want.block_bytes / self.ground.logical_bytes.min(self.want.block_bytes));
        let site = self.ground.site(self.want.tracks, blocks.then_some(block));
        let site = site.ok_or_else(|| PlanError::TooSmall {
            name: self.ground.name.clone(),
            lbns: self.ground.lbns,
        })?;
        if self.want.table == Table::Mbr && site.lbns.end.0 > 1 << 32 {
            return Err(PlanError::MbrTooShort {
                end: site.lbns.end.0,
            });
        }
        let program = match self.want.with {
            Partitioner::Sfdisk => "sfdisk",
            Partitioner::Parted => "parted",
            Partitioner::Sgdisk => "sgdisk",
        };
        let commands = devices.iter().map(|device| self.partition(device, &site));
        let commands = commands.collect();
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
        self.recipe.partition = Some(PartitionJson {
            start_lbn: site.lbns.start.0,
            end_lbn: site.lbns.end.0,
            on_track: site.on_track,
            why: site.why,
        });
        Ok(())
    }

    fn partition(&self, device: &str, site: &Site) -> String {
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
                // What sfdisk would keep free before the first partition is 1 MiB, which a shifted drive does not want.
                let first = if gpt {
                    format!(
                        "first-lba: {}\n",
                        start.min(GRAIN_BYTES / u64::from(self.ground.logical_bytes))
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

    fn array(&mut self) {
        let Some(raid) = self.want.raid else {
            return;
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
            "mdadm --create /dev/md0 --run --metadata=1.2 --level={} --raid-devices={}{chunk}{bitmap} --data-offset={}M {}",
            raid.level,
            self.want.disks,
            MD_DATA_BYTES >> 20,
            self.below.join(" ")
        );
        self.step(
            "The array; its data begin on a multiple of its chunk",
            "mdadm",
            vec![command],
        );
        self.below = vec!["/dev/md0".to_owned()];
        self.stripes = raid
            .chunk_bytes
            .map(|chunk| (chunk, chunk * u64::from(raid.data_chunks(self.want.disks))));
        self.push_base(MD_DATA_BYTES, GRAIN_BYTES);
        if self.stripes.is_some() {
            self.base = None;
        }
    }

    /// Data of the next layer begin so many bytes behind those of the layer below, and have a multiple of `grain`, which
    /// is what the layer rounds to or more.
    fn push_base(&mut self, bytes: u64, grain: u64) {
        let logical = u64::from(self.ground.logical_bytes);
        self.base = self.base.map(|base| base + bytes / logical);
        if let Some(base) = self.base {
            let grain = grain / logical;
            self.end = base + self.end.saturating_sub(base) / grain * grain;
        }
    }

    /// The least multiple of a full stripe that is not below `bytes`.
    fn whole_stripes(&self, bytes: u64) -> u64 {
        self.stripes
            .map_or(bytes, |(_, stripe)| bytes.next_multiple_of(stripe))
    }

    fn device(&self) -> String {
        self.below[0].clone()
    }

    fn volume_group(&mut self) {
        if !self.want.lvm {
            return;
        }
        let (device, data) = (self.device(), self.whole_stripes(GRAIN_BYTES));
        // Later volumes begin at multiples of an extent, so that is whole stripes too.
        let extent = match self.stripes {
            Some((_, stripe)) if !EXTENT_BYTES.is_multiple_of(stripe) => {
                let step = lcm(stripe, EXTENT_STEP_BYTES);
                EXTENT_BYTES.next_multiple_of(step)
            }
            _ => EXTENT_BYTES,
        };
        self.step(
            "A volume group and one volume; data and extents are whole stripes",
            "lvm",
            vec![
                format!("pvcreate --dataalignment {}k {device}", data >> 10),
                format!(
                    "vgcreate --physicalextentsize {}k vg0 {device}",
                    extent >> 10
                ),
                "lvcreate --extents 100%FREE --name data vg0".to_owned(),
            ],
        );
        self.below = vec!["/dev/vg0/data".to_owned()];
        self.push_base(data, extent);
    }

    fn encryption(&mut self) -> Result<(), PlanError> {
        let Some(asked) = self.want.luks_sector else {
            return Ok(());
        };
        let physical = self.ground.physical_bytes;
        let sector = if asked == 0 {
            physical.clamp(512, 4096)
        } else {
            asked
        };
        if sector < physical.min(4096) {
            return Err(PlanError::BlockBelowSector {
                block_bytes: sector,
                physical_bytes: physical,
            });
        }
        if self.want.block_bytes < sector {
            return Err(PlanError::BlockBelowLuks {
                block_bytes: self.want.block_bytes,
                sector_bytes: sector,
            });
        }
        let (device, data) = (self.device(), self.whole_stripes(LUKS_DATA_BYTES));
        self.step(
            &format!("Encryption in sectors of {sector} bytes; data begin {} KiB behind the header's start", data >> 10),
            "cryptsetup",
            vec![
                format!(
                    "cryptsetup luksFormat --type luks2 --sector-size {sector} --offset {} {device}",
                    data / UNIT_BYTES
                ),
                format!("cryptsetup open {device} data"),
            ],
        );
        self.below = vec!["/dev/mapper/data".to_owned()];
        self.push_base(data, u64::from(sector));
        Ok(())
    }

    fn file_system(&mut self, list: &str) -> Result<(), PlanError> {
        let (device, block) = (self.device(), self.want.block_bytes);
        if block < self.ground.physical_bytes {
            return Err(PlanError::BlockBelowSector {
                block_bytes: block,
                physical_bytes: self.ground.physical_bytes,
            });
        }
        let what = format!("{} in blocks of {block} bytes", self.want.fs);
        match self.want.fs {
            FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => return self.ext(list),
            FileSystem::Xfs => {
                let sector = self.ground.physical_bytes.max(512);
                let stripes = self.stripes.map_or(String::new(), |(chunk, stripe)| {
                    let log = if chunk <= XFS_LOG_UNIT_MOST {
                        chunk
                    } else {
                        XFS_LOG_UNIT
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

    fn ext(&mut self, list: &str) -> Result<(), PlanError> {
        let (device, block, fs) = (self.device(), self.want.block_bytes, self.want.fs);
        let what = format!("{fs} in blocks of {block} bytes");
        match self.bad_blocks()? {
            Some(Ok(plan)) => {
                let mut words = vec!["mke2fs".to_owned(), "-t".to_owned(), fs.to_string()];
                words.extend(plan.arguments(list));
                words.extend([device.clone(), plan.blocks.to_string()]);
                let what = format!("{what}, without those that span two tracks");
                self.step(&what, "mke2fs", vec![words.join(" ")]);
                self.step(
                    "Nothing to complain about?",
                    "e2fsck",
                    vec![format!("e2fsck -fn {device}")],
                );
                self.tell_of_list(&plan);
                self.recipe.bad_blocks = Some(ListFile {
                    file: list.to_owned(),
                    blocks: plan.list.len() as u64,
                    excluded: plan.excluded,
                    left_in: plan.under_tables + plan.too_many,
                    list: plan,
                });
                return Ok(());
            }
            Some(Err(why)) => self.note(format!("mke2fs gets no list of bad blocks: {why}.")),
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

    /// The list of bad blocks, or why there is none; nothing where tracks do not count.
    fn bad_blocks(&mut self) -> Result<Option<Result<BadBlocks, WithoutList>>, PlanError> {
        let Some(map) = self.ground.tracks.as_ref().filter(|_| self.want.tracks) else {
            return Ok(None);
        };
        let Some(base) = self.base else {
            self.note(
                "The blocks of the array lie on several drives in turn, so tracks are not looked at above it.".to_owned(),
            );
            return Ok(None);
        };
        let sectors = layout::sectors_of_block(self.want.block_bytes, self.ground.logical_bytes)?;
        let end = Lbn(self.end.min(map.end().0));
        let partition = Partition::new(std::sync::Arc::clone(map), Lbn(base)..end, sectors)?;
        let ask = Ask {
            block_bytes: self.want.block_bytes,
            inode_ratio: self.want.inode_ratio,
        };
        Ok(Some(BadBlocks::plan(&partition, ask)))
    }

    fn tell_of_list(&mut self, plan: &BadBlocks) {
        let percent = 100.0 * plan.excluded as f64 / plan.blocks as f64;
        self.note(format!(
            "{} of {} blocks ({percent:.2} %) span two tracks; {} are given up.",
            plan.excluded,
            plan.blocks,
            plan.list.len()
        ));
        if plan.under_tables > 0 {
            self.note(format!(
                "{} stay in use, because mke2fs may need them for superblocks and descriptors.",
                plan.under_tables
            ));
        }
        if let (1.., Some(last)) = (plan.too_many, plan.list.last()) {
            self.note(format!(
                "{} stay in use, all behind block {last}, because the inode of bad blocks must be shorter than 2 GiB; two partitions{} would take all.",
                plan.too_many,
                if self.want.block_bytes > 1024 { " or smaller blocks" } else { "" }
            ));
        }
        if plan.inode_ratio() > 2 * self.want.inode_ratio {
            self.note(format!(
                "There is an inode for each {} bytes, not for each {}: the inode table of a group fits between two such blocks.",
                plan.inode_ratio(),
                self.want.inode_ratio
            ));
        }
    }

    fn read_ahead(&mut self) {
        if self.want.fs == FileSystem::Swap {
            return;
        }
        let logical = u64::from(self.ground.logical_bytes);
        let tracks = self.ground.tracks.as_ref().filter(|_| self.want.tracks);
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
        // Of the block device on top, in whole pages.
        let units = bytes.next_multiple_of(4096) / UNIT_BYTES;
        let command = format!("blockdev --setra {units} {}", self.device());
        self.step(what, "blockdev", vec![command]);
    }

    fn look_again(&mut self, devices: &[String]) {
        let mut command = format!("traxtent check {}", devices.join(" "));
        if self.ground.physical_bytes != self.ground.logical_bytes {
            command += &format!(" --physical-sector {}", self.ground.physical_bytes);
        }
        self.step("Is every layer aligned?", "traxtent", vec![command]);
    }
}

/// What a partition is for.
#[derive(Clone, Copy)]
enum Content {
    Linux,
    Raid,
    Lvm,
    Swap,
}

impl Content {
    /// As sfdisk has it, for GPT and MBR alike.
    fn shortcut(self) -> &'static str {
        match self {
            Content::Linux => "L",
            Content::Raid => "R",
            Content::Lvm => "V",
            Content::Swap => "S",
        }
    }

    /// As sgdisk has it.
    fn typecode(self) -> &'static str {
        match self {
            Content::Linux => "8300",
            Content::Raid => "FD00",
            Content::Lvm => "8E00",
            Content::Swap => "8200",
        }
    }
}

/// The node of the first partition: a device whose name ends in a digit gets a `p` first. A shell variable in quotes
/// is a loop device.
fn first_partition(device: &str) -> String {
    if let Some(variable) = device
        .strip_prefix("\"$")
        .and_then(|rest| rest.strip_suffix('"'))
    {
        return format!("\"${{{variable}}}p1\"");
    }
    let p = if device.ends_with(|c: char| c.is_ascii_digit()) {
        "p"
    } else {
        ""
    };
    format!("{device}{p}1")
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
