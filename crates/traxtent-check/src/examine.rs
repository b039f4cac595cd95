//! Builds a [`Stack`] from bytes: the layers on each drive, and the devices that several drives
//! form together.
//!
//! Drives are examined first, then arrays, then volume groups. The last two steps repeat until
//! nothing new appears. Devices that the kernel has opened, such as encrypted and thin volumes, are
//! read from their block devices on the machine.

mod groups;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use traxtent_units::system_message;

use crate::layers::lvm::Group;
use crate::layers::md::{data_bytes, data_members};
use crate::layers::{
    Array, Content, Disk, MappedDevice, Mapper, MdMember, Partition, RaidLevel, SizeSource, Table,
    Unknown, lost_header, recognize, remnants,
};
use crate::source::{FileSource, JoinedSource, Source};
use crate::stack::{ByteRange, Kind, Layer, LayerId, Limits, Spread, Stack};
use crate::stripes::{Raid0Member, Stripes, raid_0};
use crate::sysfs::Machine;

/// The maximum depth of nested layers.
const DEPTH_MAX: usize = 24;

/// Once a stack has more layers than this, no more content is examined.
const LAYERS_MAX: usize = 8192;

/// A drive or an image to start from.
pub struct StackRoot {
    /// The name for the user.
    pub name: String,
    /// The path of the block device, if there is one.
    pub node: Option<String>,
    /// The facts about the drive.
    pub disk: Disk,
    /// Whether the size of its logical sector is stated, so that a table of an image does not
    /// replace it.
    pub is_sector_stated: bool,
    /// The kernel's limits for it.
    pub limits: Option<Limits>,
    /// The length in bytes.
    pub bytes: u64,
    /// The bytes, or the reason why they cannot be read.
    pub source: Result<Rc<dyn Source>, String>,
}

/// The machine on which block devices are looked up.
pub struct DeviceNodes<'a> {
    /// The kernel's list of devices.
    pub machine: &'a Machine,
    /// The directory of block devices, `/dev`.
    pub folder: PathBuf,
}

impl DeviceNodes<'_> {
    /// Returns the path of a device. The kernel writes `/` as `!`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name.replace('!', "/"))
    }

    fn open(&self, name: &str) -> Bytes {
        let source = FileSource::open(&self.path(name))
            .map_err(|error| Unknown::Unreadable(system_message(&error)))?;
        Ok(Rc::new(source))
    }
}

/// Finds the layers on drives and images.
pub fn examine(roots: Vec<StackRoot>, nodes: Option<&DeviceNodes<'_>>) -> Stack {
    let mut examiner = Examiner {
        nodes,
        stack: Stack::default(),
        is_sector_stated: false,
        members: BTreeMap::new(),
        groups: BTreeMap::new(),
        physical: Vec::new(),
        opened: Vec::new(),
    };
    for root in roots {
        examiner.root(root);
    }
    examiner.assemble_all();
    examiner.stack
}

/// A source, or the reason why there is none.
type Bytes = Result<Rc<dyn Source>, Unknown>;

struct Examiner<'a> {
    nodes: Option<&'a DeviceNodes<'a>>,
    stack: Stack,
    /// Whether the logical sector size of the current root is stated.
    is_sector_stated: bool,
    /// Members of arrays that have not been assembled, by the array's UUID.
    members: BTreeMap<String, Vec<Member>>,
    /// Volume groups that have not been assembled, by UUID: the latest metadata of each, and the
    /// depth of the volume that holds it.
    groups: BTreeMap<String, (Group, usize)>,
    /// The physical volumes that were found.
    physical: Vec<FoundVolume>,
    /// Block devices that were opened through the kernel, with their layers.
    opened: Vec<(String, LayerId)>,
}

struct Member {
    layer: LayerId,
    depth: usize,
    superblock: MdMember,
    source: Rc<dyn Source>,
}

/// A physical volume of LVM.
struct FoundVolume {
    uuid: String,
    /// The UUID of the group that its own metadata describes, if it has any.
    group: Option<String>,
    /// The version of that metadata, or 0.
    sequence: u64,
    layer: LayerId,
    source: Rc<dyn Source>,
}

struct GroupParts {
    group: Group,
    depth: usize,
    /// The layers of its physical volumes by UUID, with their bytes.
    volumes: BTreeMap<String, (LayerId, Rc<dyn Source>)>,
}

impl Examiner<'_> {
    fn root(&mut self, root: StackRoot) {
        self.is_sector_stated = root.is_sector_stated;
        let id = self.push(Layer {
            name: root.name,
            node: root.node,
            bytes: root.bytes,
            on: Vec::new(),
            spread: Spread::Joined,
            limits: root.limits,
            kind: Kind::Disk(root.disk),
        });
        self.examine_layer(id, root.source.map_err(Unknown::Unreadable), 0);
    }

    fn push(&mut self, layer: Layer) -> LayerId {
        self.stack.layers.push(layer);
        LayerId(self.stack.layers.len() - 1)
    }

    /// Adds a layer that covers all of another.
    fn cover(&mut self, below: LayerId, name: &str, kind: Kind) -> LayerId {
        let bytes = self.stack.layer(below).bytes;
        self.push(Layer {
            name: name.to_owned(),
            node: None,
            bytes,
            on: vec![ByteRange {
                layer: below,
                start: 0,
                bytes,
            }],
            spread: Spread::Joined,
            limits: None,
            kind,
        })
    }

    /// Returns the logical sector size of a layer in bytes: the largest one of the drives below it,
    /// as in the kernel, or 512 if they are unknown.
    fn sector_bytes(&self, id: LayerId) -> u64 {
        let mut largest = None;
        // A layer lies only on layers before it.
        let mut left = BTreeSet::from([id]);
        while let Some(id) = left.pop_last() {
            let layer = self.stack.layer(id);
            if let Kind::Disk(disk) = &layer.kind {
                largest = largest.max(Some(disk.logical_bytes));
            }
            left.extend(layer.on.iter().map(|place| place.layer));
        }
        largest.unwrap_or(512)
    }

    /// Returns the kernel's name of a layer's block device, if it has one. This is the reverse of
    /// [`DeviceNodes::path`].
    fn node_name(&self, id: LayerId) -> Option<String> {
        let node = self.stack.layer(id).node.as_deref()?;
        let folder = &self.nodes?.folder;
        let name = node.strip_prefix(folder.to_str()?)?.strip_prefix('/')?;
        Some(name.replace('/', "!"))
    }

    fn node(&self, name: &str) -> Option<String> {
        let path = self.nodes?.path(name);
        Some(path.to_string_lossy().into_owned())
    }

    /// Adds the content of a layer, and recursively the layers in it.
    fn examine_layer(&mut self, id: LayerId, source: Bytes, depth: usize) {
        if self.open_multipath(id, depth) {
            return;
        }
        let content = match &source {
            Err(why) => Content::Unknown(why.clone()),
            Ok(_) if depth > DEPTH_MAX => {
                let problem = format!("layers are nested more than {DEPTH_MAX} deep");
                Content::Unknown(Unknown::Damaged(problem))
            }
            Ok(_) if self.stack.layers.len() > LAYERS_MAX => {
                let problem = format!("there are more than {LAYERS_MAX} layers");
                Content::Unknown(Unknown::Damaged(problem))
            }
            Ok(source) => recognize(&**source, self.sector_bytes(id)),
        };
        let content = match content {
            // The kernel does not read tables in partitions, so they are only named.
            Content::Table(_) if matches!(self.stack.layer(id).kind, Kind::Partition(_)) => {
                Content::Unknown(Unknown::Named(
                    "a partition table in a partition".to_owned(),
                ))
            }
            Content::Unknown(Unknown::Nameless | Unknown::Headless { .. }) => {
                let lost = source.as_ref().ok().map(|source| lost_header(&**source));
                match lost {
                    Some(Ok(Some(problem))) => Content::Unknown(Unknown::Damaged(problem)),
                    _ => content,
                }
            }
            content => content,
        };
        // Remnants are looked for only on whole drives.
        let remnants = match (&source, &self.stack.layer(id).kind) {
            (Ok(source), Kind::Disk(_)) => remnants(&**source, self.sector_bytes(id), &content),
            _ => Vec::new(),
        };
        self.add_content(id, source, content, depth);
        for what in remnants {
            self.cover(id, "unknown", Kind::Unknown(what));
        }
    }

    fn add_content(&mut self, id: LayerId, source: Bytes, content: Content, depth: usize) {
        let source = source.unwrap_or_else(|_| Rc::new(Vec::new()));
        match content {
            Content::Table((table, partitions)) => {
                self.table(id, table, partitions, &source, depth)
            }
            Content::MdMember(found) => {
                let layer = self.cover(id, "md member", Kind::MdMember(found.clone()));
                self.members
                    .entry(found.array.clone())
                    .or_default()
                    .push(Member {
                        layer,
                        depth,
                        superblock: found,
                        source,
                    });
            }
            Content::PhysicalVolume(volume, group) => {
                let (uuid, sequence) = (volume.uuid.clone(), volume.sequence);
                let layer = self.cover(id, "physical volume", Kind::PhysicalVolume(volume));
                self.physical.push(FoundVolume {
                    uuid,
                    group: group.as_ref().map(|group| group.uuid.clone()),
                    sequence,
                    layer,
                    source,
                });
                if let Some(group) = group {
                    let known = self.groups.get(&group.uuid);
                    if known.is_none_or(|(known, _)| known.sequence < group.sequence) {
                        self.groups.insert(group.uuid.clone(), (group, depth));
                    }
                }
            }
            Content::Luks(luks) => {
                let start = luks.data_start;
                let layer = self.cover(id, &format!("LUKS{}", luks.version), Kind::Luks(luks));
                self.open_above(id, layer, start, depth);
            }
            Content::Zfs(zfs) => drop(self.cover(id, "ZFS", Kind::Zfs(zfs))),
            Content::Xfs(xfs) => drop(self.cover(id, "XFS", Kind::Xfs(xfs))),
            Content::Btrfs(btrfs) => drop(self.cover(id, "Btrfs", Kind::Btrfs(btrfs))),
            Content::Ext(ext) => drop(self.cover(id, &ext.version.clone(), Kind::Ext(ext))),
            Content::Swap(swap) => drop(self.cover(id, "swap", Kind::Swap(swap))),
            Content::Unknown(what) => {
                let layer = self.cover(id, "unknown", Kind::Unknown(what));
                self.open_above(id, layer, 0, depth);
            }
        }
    }

    fn table(
        &mut self,
        on: LayerId,
        table: Table,
        partitions: Vec<Partition>,
        source: &Rc<dyn Source>,
        depth: usize,
    ) {
        let sector_bytes = table.sector_bytes;
        if let Kind::Disk(disk) = &mut self.stack.layers[on.0].kind
            && disk.image
            && !self.is_sector_stated
            && (disk.physical_by == SizeSource::Assumed || sector_bytes <= disk.physical_bytes)
        {
            // If no logical sector size is stated, that of an image is taken from its table. It is
            // not larger than a stated physical sector.
            disk.logical_bytes = sector_bytes;
            disk.physical_bytes = disk.physical_bytes.max(sector_bytes);
        }
        let name = table.scheme.name();
        let id = self.cover(on, name, Kind::Table(table));
        let drive = self.node_name(on);
        for partition in partitions {
            let start = partition.first_sector.saturating_mul(sector_bytes);
            let bytes = partition.sectors.saturating_mul(sector_bytes);
            let is_container = partition.role == crate::layers::PartitionRole::Extended;
            let device = self.nodes.zip(drive.as_deref()).and_then(|(nodes, drive)| {
                let machine = nodes.machine;
                machine
                    .devices
                    .get_key_value(machine.partition_at(drive, start)?)
            });
            let name = format!("partition {}", partition.number);
            let layer = Layer {
                name: device.map_or(name, |(name, _)| name.clone()),
                node: device.and_then(|(name, _)| self.node(name)),
                bytes,
                on: vec![ByteRange {
                    layer: id,
                    start,
                    bytes,
                }],
                spread: Spread::Joined,
                limits: device.map(|(_, device)| device.limits.clone()),
                kind: Kind::Partition(partition),
            };
            let layer = self.push(layer);
            if is_container {
                continue;
            }
            let part: Bytes = if start
                .checked_add(bytes)
                .is_some_and(|end| end <= source.bytes())
            {
                Ok(Rc::new(JoinedSource::part(Rc::clone(source), start, bytes)))
            } else {
                let end = start.saturating_add(bytes);
                let problem = format!(
                    "it ends at byte {end}, but the drive ends at {}",
                    source.bytes()
                );
                // The partition table is wrong, not the content.
                Err(Unknown::Elsewhere(problem))
            };
            self.examine_layer(layer, part, depth + 1);
        }
    }

    /// Opens the multipath device above a layer if there is one, and returns whether there is. The
    /// content is examined once, through the device that joins all paths.
    fn open_multipath(&mut self, id: LayerId, depth: usize) -> bool {
        let Some((name, title)) = self.holders(id).into_iter().find_map(|(name, mapper)| {
            let (title, uuid) = mapper?;
            uuid.starts_with("mpath-").then_some((name, title))
        }) else {
            return false;
        };
        let bytes = self.stack.layer(id).bytes;
        let place = ByteRange {
            layer: id,
            start: 0,
            bytes,
        };
        if let Some((_, opened)) = self.opened.iter().find(|(seen, _)| *seen == name) {
            // A layer lies only on earlier ones, and the multipath device is already in the stack.
            // The path's name states the relation instead.
            let opened = *opened;
            self.stack.layers[id.0].name.push_str(" (another path)");
            let title = self.stack.layer(opened).name.clone();
            self.cover(
                id,
                "unknown",
                Kind::Unknown(Unknown::Named(format!("another path to {title}"))),
            );
            return true;
        }
        let kind = Kind::Opened(MappedDevice {
            by: Mapper::Multipath,
            title,
        });
        self.open(&name, vec![place], Spread::Mirrored, kind, depth);
        true
    }

    /// Returns the devices that the kernel has made from a layer's device: their names, and their
    /// names and UUIDs in device mapper.
    fn holders(&self, id: LayerId) -> Vec<(String, Option<(String, String)>)> {
        let Some((nodes, name)) = self.nodes.zip(self.node_name(id)) else {
            return Vec::new();
        };
        let holders = nodes.machine.holders(&name);
        holders
            .map(|(name, device)| (name.to_owned(), device.mapper.clone()))
            .collect()
    }

    /// Opens the devices of device mapper that the kernel has made from the device of layer `id`.
    /// They become layers on `layer`, from its byte `start`.
    fn open_above(&mut self, id: LayerId, layer: LayerId, start: u64, depth: usize) {
        for (name, mapper) in self.holders(id) {
            let Some((title, uuid)) = mapper else {
                continue;
            };
            if self.opened.iter().any(|(seen, _)| *seen == name) {
                continue;
            }
            let is_crypt = uuid.starts_with("CRYPT-");
            let by = if is_crypt {
                Mapper::Crypt
            } else {
                Mapper::Mapper
            };
            let bytes = self.stack.layer(layer).bytes.saturating_sub(start);
            let place = ByteRange {
                layer,
                start,
                bytes,
            };
            let spread = if is_crypt {
                Spread::Joined
            } else {
                Spread::Scattered
            };
            self.open(
                &name,
                vec![place],
                spread,
                Kind::Opened(MappedDevice { by, title }),
                depth,
            );
        }
    }

    /// Adds a block device that the kernel has made, and examines its content.
    fn open(&mut self, name: &str, on: Vec<ByteRange>, spread: Spread, kind: Kind, depth: usize) {
        let Some(nodes) = self.nodes else { return };
        let source = nodes.open(name);
        let device = nodes.machine.devices.get(name);
        let layer = Layer {
            name: name.to_owned(),
            node: self.node(name),
            bytes: device.map_or(0, |device| device.bytes),
            on,
            spread,
            limits: device.map(|device| device.limits.clone()),
            kind,
        };
        let layer = self.push(layer);
        self.opened.push((name.to_owned(), layer));
        self.examine_layer(layer, source, depth + 1);
    }

    /// Assembles arrays and volume groups until none are left. An array may lie on volumes, and
    /// volumes on an array.
    fn assemble_all(&mut self) {
        loop {
            if let Some((uuid, members)) = self.members.pop_first() {
                self.array(uuid, members);
            } else if let Some((_, (group, depth))) = self.groups.pop_first() {
                let parts = self.group_parts(group, depth);
                self.volumes(parts);
            } else {
                return;
            }
        }
    }

    fn array(&mut self, uuid: String, mut members: Vec<Member>) {
        let device = self.array_device(&members);
        self.remove_older(&mut members, device.as_ref().map(|(name, _)| name.as_str()));
        let found = members[0].superblock.clone();
        let data_chunks = data_members(found.level, found.layout, found.members);
        let places = members.iter().map(|member| ByteRange {
            layer: member.layer,
            start: member.superblock.data_start,
            bytes: data_bytes(&member.superblock),
        });
        let places: Vec<ByteRange> = places.collect();
        // A member of these levels may have any length, so only all of them together determine
        // the length of the array and the places of its bytes.
        let sums_lengths = matches!(found.level, RaidLevel::Linear | RaidLevel::Raid0);
        let is_cut = sums_lengths && members.len() < found.members as usize;
        let spread = match found.level {
            _ if is_cut => Spread::Scattered,
            RaidLevel::Linear => Spread::Joined,
            RaidLevel::Raid1 | RaidLevel::Other => Spread::Mirrored,
            _ => Spread::Striped {
                chunk_bytes: found.chunk_bytes,
                data_chunks,
            },
        };
        let depth = members.iter().map(|member| member.depth).max().unwrap_or(0);
        let is_reshaping = members.iter().any(|member| member.superblock.is_reshaping);
        let (bytes, source) = match &device {
            Some((name, device)) => {
                let nodes = self.nodes.expect("the device was found on the machine");
                (device.bytes, nodes.open(name))
            }
            None => {
                let source = assembled(&found, members);
                let bytes = match sums_lengths {
                    true => source.bytes(),
                    false => found.array_bytes,
                };
                (bytes, Ok(source))
            }
        };
        let source = if is_reshaping {
            Err(Unknown::Elsewhere(
                "it is being reshaped, so its data lies in two layouts; check it again once the reshape has ended".to_owned(),
            ))
        } else if is_cut && device.is_none() {
            Err(Unknown::Elsewhere(
                "the length of a linear array or a RAID 0 is known only if all members are given"
                    .to_owned(),
            ))
        } else {
            source
        };
        let layer = Layer {
            name: device.as_ref().map_or_else(
                || format!("array {}", uuid.get(..8).unwrap_or(&uuid)),
                |(name, _)| name.clone(),
            ),
            node: device.as_ref().and_then(|(name, _)| self.node(name)),
            bytes,
            on: places,
            spread,
            limits: device.map(|(_, device)| device.limits),
            kind: Kind::Array(Array {
                level: found.level,
                layout: found.layout,
                chunk_bytes: found.chunk_bytes,
                stripe_bytes: found.chunk_bytes.saturating_mul(u64::from(data_chunks)),
                members: found.members,
                uuid,
            }),
        };
        let layer = self.push(layer);
        self.examine_layer(layer, source, depth + 1);
    }

    /// Sorts the members of an array by role, and removes those that are no longer part of it: a
    /// member that missed more than one update of the superblocks, as in the kernel, and every
    /// member but the newest in the same role.
    ///
    /// The superblocks of a running array, which is the device `running`, may be updated while they
    /// are read. The kernel's list of its members takes precedence.
    fn remove_older(&self, members: &mut Vec<Member>, running: Option<&str>) {
        members.sort_by_key(|member| (member.superblock.role, Reverse(member.superblock.events)));
        let events = members.iter().map(|member| member.superblock.events);
        let newest = events.max().unwrap_or(0);
        let is_running = |member: &Member| {
            let below = self.stack.layer(member.layer).on.first();
            let name = below.and_then(|place| self.node_name(place.layer));
            self.nodes.zip(name).is_some_and(|(nodes, name)| {
                let mut holders = nodes.machine.holders(&name);
                holders.any(|(holder, _)| Some(holder) == running)
            })
        };
        let mut taken = None;
        members.retain(|member| {
            let MdMember { role, events, .. } = member.superblock;
            let is_first = role.is_none() || role != taken;
            let is_used = is_first && (events.saturating_add(1) >= newest || is_running(member));
            if is_used {
                taken = role;
            }
            is_used
        });
    }

    /// Returns the array's block device: the md array that the kernel has made from the device of a
    /// member.
    fn array_device(&self, members: &[Member]) -> Option<(String, crate::sysfs::Device)> {
        let machine = self.nodes?.machine;
        members.iter().find_map(|member| {
            let below = self.stack.layer(member.layer).on.first()?.layer;
            let name = self.node_name(below)?;
            let mut holders = machine.holders(&name);
            holders
                .find(|(_, device)| device.is_array)
                .map(|(name, device)| (name.to_owned(), device.clone()))
        })
    }
}

/// Returns the bytes of an array, assembled from the available members.
fn assembled(found: &MdMember, members: Vec<Member>) -> Rc<dyn Source> {
    if found.level == RaidLevel::Raid0 {
        let in_role = |role| {
            members
                .iter()
                .find(|member| member.superblock.role == Some(role))
        };
        let members = (0..found.members).map(in_role).map(|member| {
            let superblock = member.map_or(found, |member| &member.superblock);
            Raid0Member {
                source: member.map(|member| Rc::clone(&member.source)),
                start: superblock.data_start,
                bytes: data_bytes(superblock),
            }
        });
        let members: Vec<Raid0Member> = members.collect();
        return Rc::new(raid_0(&members, found.chunk_bytes, found.layout));
    }
    if found.level.is_striped() {
        let mut by_role: Vec<Option<(Rc<dyn Source>, u64)>> =
            (0..found.members).map(|_| None).collect();
        for member in members {
            if let Some(place) = member
                .superblock
                .role
                .and_then(|role| by_role.get_mut(role as usize))
            {
                *place = Some((member.source, member.superblock.data_start));
            }
        }
        return Rc::new(Stripes {
            level: found.level,
            layout: found.layout,
            chunk_bytes: found.chunk_bytes,
            bytes: found.array_bytes,
            members: by_role,
        });
    }
    let mut pieces = JoinedSource::new();
    if found.level == RaidLevel::Linear {
        for role in 0..found.members {
            let member = members
                .iter()
                .find(|member| member.superblock.role == Some(role));
            let bytes = data_bytes(member.map_or(found, |member| &member.superblock));
            let start = member.map_or(0, |member| member.superblock.data_start);
            pieces = pieces.with(member.map(|member| Rc::clone(&member.source)), start, bytes);
        }
    } else if let Some(member) = members
        .iter()
        .find(|member| member.superblock.role.is_some())
    {
        pieces = JoinedSource::part(
            Rc::clone(&member.source),
            member.superblock.data_start,
            found.array_bytes,
        );
    }
    Rc::new(pieces)
}
