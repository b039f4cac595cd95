//! The cases that can be created without a guest's kernel.

use super::{Case, Drive};

/// A present-day drive.
pub(super) const TODAY: Drive = physical(4096);
/// A drive from before 2010.
const OLD: Drive = physical(512);
/// A controller's array of three data disks with chunks of 64 KiB.
const STRIPES: Drive = Drive {
    chunk_bytes: 64 << 10,
    stripe_bytes: 192 << 10,
    ..TODAY
};
/// A solid-state drive with erase blocks of 4 MiB.
const FLASH: Drive = Drive {
    erase_bytes: 4 << 20,
    ..TODAY
};
/// A present-day drive whose logical sectors are stated too.
const LOGICAL_512: Drive = Drive {
    logical_bytes: 512,
    ..TODAY
};
/// A drive with the jumper for Windows XP, which shifts its LBNs by one.
const JUMPER: Drive = Drive {
    first_aligned_byte: 7 * 512,
    ..TODAY
};

const fn physical(physical_bytes: u64) -> Drive {
    Drive {
        logical_bytes: 0,
        physical_bytes,
        chunk_bytes: 0,
        stripe_bytes: 0,
        erase_bytes: 0,
        first_aligned_byte: 0,
    }
}

const fn case(
    name: &'static str,
    made_by: &'static str,
    drive: Drive,
    wrong: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        name,
        made_by,
        drive,
        findings: wrong,
    }
}

const P1: &str = "partition 1";

pub(crate) const CASES: &[Case] = &[
    // Tables made by the defaults of present-day tools.
    case(
        "GPT by sfdisk",
        "disk 64; script 'label: gpt' ','; content 100000; ext -b 4096; put 2048",
        TODAY,
        &[],
    ),
    case(
        "MBR by sfdisk",
        "disk 64; script 'label: dos' ',32M' ','; content 65536; ext -b 4096; put 2048",
        TODAY,
        &[],
    ),
    case(
        "GPT by fdisk",
        "disk 64; printf 'g\\nn\\n\\n\\n\\nw\\n' | fdisk disk.img >/dev/null; content 100000; ext -b 4096; put 2048",
        TODAY,
        &[],
    ),
    case(
        "MBR by fdisk",
        "disk 64; printf 'o\\nn\\n\\n\\n\\n\\nw\\n' | fdisk disk.img >/dev/null",
        TODAY,
        &[],
    ),
    case(
        "GPT by parted",
        "disk 64; parted -s disk.img mklabel gpt mkpart a 1MiB 50% mkpart b 50% 100%",
        TODAY,
        &[],
    ),
    case(
        "MBR by parted",
        "disk 64; parted -s disk.img mklabel msdos mkpart primary 1MiB 100%",
        TODAY,
        &[],
    ),
    case(
        "GPT by sgdisk",
        "disk 64; sgdisk -n 1:0:+16M -n 2:0:0 disk.img >/dev/null",
        TODAY,
        &[],
    ),
    case(
        "GPT by gdisk",
        "disk 64; printf 'o\\ny\\nn\\n\\n\\n\\n\\nw\\ny\\n' | gdisk disk.img >/dev/null",
        TODAY,
        &[],
    ),
    case(
        "logical partitions by sfdisk",
        "disk 64; script 'label: dos' '2048,16M' ',,E' ',16M' ','",
        TODAY,
        &[],
    ),
    // Misaligned results of the defaults of present-day tools.
    case(
        "GPT by parted from 0%",
        "disk 64; parted -s disk.img mklabel gpt mkpart a 0% 100%",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "ext2 with default options on a small partition",
        "disk 64; script 'label: gpt' ','; content 100000; ext; put 2048",
        TODAY,
        &[("fs-block", "ext2")],
    ),
    // The same tools with an explicit start.
    case(
        "GPT by sfdisk, sector 34",
        "disk 64; script 'label: gpt' 'first-lba: 34' 'start=34'; content 100000; ext -b 4096; put 34",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "GPT by sfdisk, sector 40",
        "disk 64; script 'label: gpt' 'first-lba: 34' 'start=40'; content 100000; ext -b 4096; put 40",
        TODAY,
        &[],
    ),
    case(
        "GPT by parted, sector 34",
        "disk 64; parted -s -a none disk.img mklabel gpt mkpart a 34s 100%",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "GPT by sgdisk, sector 34",
        "disk 64; sgdisk -a 1 -n 1:34:0 disk.img >/dev/null",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "GPT by sgdisk, sectors 34, 40001, 100001",
        "disk 64; sgdisk -a 1 -n 1:34:40000 -n 2:40001:100000 -n 3:100001:0 disk.img >/dev/null",
        TODAY,
        &[
            ("partition-start", P1),
            ("partition-start", "partition 2"),
            ("partition-start", "partition 3"),
        ],
    ),
    case(
        "GPT by fdisk, sector 2049",
        "disk 64; printf 'g\\nn\\n\\n2049\\n\\nw\\n' | fdisk disk.img >/dev/null",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "MBR from before 2010, sector 63",
        "disk 64; script 'label: dos' 'start=63'",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "MBR from before 2010, on a drive of that time",
        "disk 64; script 'label: dos' 'start=63'; content 100000; ext -b 1024; put 63",
        OLD,
        &[],
    ),
    case(
        "logical partition from before 2010",
        "disk 64; script 'label: dos' 'start=2048,size=32768' 'start=34879,type=E' 'start=34942'",
        TODAY,
        &[("partition-start", "partition 5")],
    ),
    case(
        "three partitions, the second misaligned",
        "disk 64; script 'label: gpt' 'start=2048,size=16384' 'start=18433,size=16384' 'start=40960'",
        TODAY,
        &[("partition-start", "partition 2")],
    ),
    // Drives with other sector sizes or offsets.
    case(
        "drive with an offset jumper, MBR partition at sector 63",
        "disk 64; script 'label: dos' 'start=63,size=102400'",
        JUMPER,
        &[("alignment-offset", "drive")],
    ),
    case(
        "drive with an offset jumper, MBR partition at sector 2048",
        "disk 64; script 'label: dos' 'start=2048'",
        JUMPER,
        &[("alignment-offset", "drive"), ("partition-start", P1)],
    ),
    case(
        "GPT for logical sectors of 4096, on a drive with logical sectors of 512",
        "disk 64; printf 'g\\nn\\n\\n\\n\\nw\\n' | fdisk -b 4096 disk.img >/dev/null",
        LOGICAL_512,
        &[("table-sector-size", "GPT")],
    ),
    case(
        "GPT with a wrong checksum",
        "disk 64; script 'label: gpt' ','; printf x | dd of=disk.img bs=1 seek=528 conv=notrunc status=none",
        TODAY,
        &[("table-damaged", "GPT")],
    ),
    // Arrays of a controller, and solid-state drives.
    case(
        "stripe of 192 KiB, sector 2304",
        "disk 64; script 'label: gpt' 'start=2304'",
        STRIPES,
        &[],
    ),
    case(
        "stripe of 192 KiB, sector 2048",
        "disk 64; script 'label: gpt' 'start=2048'",
        STRIPES,
        &[("partition-stripe", P1)],
    ),
    case(
        "stripe of 192 KiB, sector 2056",
        "disk 64; script 'label: gpt' 'start=2056'",
        STRIPES,
        &[("partition-chunk", P1)],
    ),
    case(
        "erase block of 4 MiB, sector 8192",
        "disk 64; script 'label: gpt' 'start=8192'",
        FLASH,
        &[],
    ),
    case(
        "erase block of 4 MiB, sector 2048",
        "disk 64; script 'label: gpt' 'start=2048'",
        FLASH,
        &[("partition-erase", P1)],
    ),
    case(
        "ext4 configured for the stripes of the drive",
        "disk 64; script 'label: gpt' 'start=2304'; content 100000; ext -t ext4 -b 4096 -E stride=16,stripe_width=48; put 2304",
        STRIPES,
        &[],
    ),
    case(
        "ext4 configured for other stripes",
        "disk 64; script 'label: gpt' 'start=2304'; content 100000; ext -t ext4 -b 4096 -E stride=9,stripe_width=128; put 2304",
        STRIPES,
        &[("ext-stride", "ext4")],
    ),
    case(
        "XFS configured for the stripes of the drive",
        "disk 1100; script 'label: gpt' 'start=2304'; content 2097152; xfs -s size=4096 -d su=64k,sw=3 -l su=64k; put 2304",
        STRIPES,
        &[],
    ),
    case(
        "XFS configured for other stripes",
        "disk 1100; script 'label: gpt' 'start=2304'; content 2097152; xfs -s size=4096 -d su=128k,sw=2; put 2304",
        STRIPES,
        &[("xfs-unit", "XFS")],
    ),
    // File systems.
    case(
        "ext4 on the whole drive",
        "disk 64; content 131072; ext -t ext4 -b 4096; put 0",
        TODAY,
        &[],
    ),
    case(
        "ext2 with blocks of 1024",
        "disk 64; content 131072; ext -t ext2 -b 1024; put 0",
        TODAY,
        &[("fs-block", "ext2")],
    ),
    case(
        "ext2 with blocks of 1024 on an old drive",
        "disk 64; content 131072; ext -t ext2 -b 1024; put 0",
        OLD,
        &[],
    ),
    case(
        "truncated ext3",
        "disk 64; content 131072; ext -t ext3 -b 4096; put 0; truncate -s 32M disk.img",
        TODAY,
        &[("beyond-end", "ext3")],
    ),
    case(
        "XFS with sectors of 4096",
        "disk 320; content 655360; xfs -s size=4096; put 0",
        TODAY,
        &[],
    ),
    case(
        "XFS with sectors of 512",
        "disk 320; content 655360; xfs -s size=512; put 0",
        TODAY,
        &[("xfs-sector", "XFS")],
    ),
    case(
        "XFS with sectors of 512 on an old drive",
        "disk 320; content 655360; xfs -s size=512; put 0",
        OLD,
        &[],
    ),
    case(
        "Btrfs",
        "disk 128; content 262144; btrfs; put 0",
        TODAY,
        &[],
    ),
    case(
        "swap",
        "disk 64; script 'label: gpt' 'start=2048,type=S'; content 100000; swap; put 2048",
        TODAY,
        &[],
    ),
    case(
        "Btrfs at sector 34",
        "disk 192; script 'label: gpt' 'first-lba: 34' 'start=34'; content 300000; btrfs; put 34",
        TODAY,
        &[("partition-start", P1)],
    ),
    // Encryption.
    case(
        "LUKS2 with sectors of 4096",
        "disk 64; script 'label: gpt' 'start=2048,size=122880'; content 122880; luks2 --sector-size 4096; put 2048",
        TODAY,
        &[],
    ),
    case(
        "LUKS2 with sectors of 512",
        "disk 64; script 'label: gpt' 'start=2048,size=122880'; content 122880; luks2 --sector-size 512; put 2048",
        TODAY,
        &[("luks-sector", "LUKS2")],
    ),
    case(
        "LUKS2 with a partial last sector",
        "disk 64; script 'label: gpt' 'start=2048,size=122880'; content 122880; luks2 --sector-size 4096; put 2048; sfdisk --quiet --delete disk.img; script 'label: gpt' 'start=2048,size=122881'",
        TODAY,
        &[("luks-end", "LUKS2")],
    ),
    case(
        "LUKS1",
        "disk 64; content 131072; luks --type luks1; put 0",
        OLD,
        &[],
    ),
    case(
        "LUKS1 with misaligned data",
        "disk 64; content 131072; luks --type luks1 --align-payload 63; put 0",
        TODAY,
        &[("data-start", "LUKS1"), ("luks-sector", "LUKS1")],
    ),
    // Volume groups.
    case(
        "LVM",
        "disk 64; script 'label: gpt' 'start=2048,size=122880,type=V'; content 122880; pv; put 2048",
        TODAY,
        &[],
    ),
    case(
        "LVM with misaligned data",
        "disk 64; script 'label: gpt' 'start=2048,size=122880,type=V'; content 122880; pv --dataalignment 64k --dataalignmentoffset 3584b; put 2048",
        TODAY,
        &[("data-start", "physical volume")],
    ),
    case(
        "LVM at sector 63",
        "disk 64; script 'label: dos' 'start=63,size=122880,type=V'; content 122880; pv; put 63",
        TODAY,
        &[("partition-start", P1)],
    ),
    case(
        "LVM on stripes",
        "disk 64; content 131072; pv --dataalignment 1152k; put 0",
        STRIPES,
        &[],
    ),
    case(
        "LVM on stripes, with default options",
        "disk 64; content 131072; pv; put 0",
        STRIPES,
        &[("data-stripe", "physical volume")],
    ),
];
