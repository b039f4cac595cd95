//! The structures and numbers of the kernel's ublk driver that this front end uses.
//!
//! The source is `<linux/ublk_cmd.h>` (Linux 6.12). A test compares the layout with the machine's
//! header, if it is installed. Zero copy, zoned devices and recovery are left out.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct ublksrv_ctrl_cmd`: a command for a device, sent to `/dev/ublk-control`.
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub(super) dev_id: u32,
    pub(super) queue_id: u16,
    pub(super) len: u16,
    pub(super) addr: u64,
    pub(super) data: u64,
    /// Since Linux 6.3.
    pub(super) dev_path_len: u16,
    pub(super) pad: u16,
    pub(super) reserved: u32,
}

/// The device number of commands that do not concern a device.
pub(super) const NO_DEVICE: u32 = u32::MAX;
/// The queue number of commands that do not concern a queue.
pub(super) const NO_QUEUE: u16 = u16::MAX;

/// `struct ublksrv_ctrl_dev_info`: the description of a device.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct DeviceInfo {
    pub(super) nr_hw_queues: u16,
    pub(super) queue_depth: u16,
    pub(super) state: u16,
    pub(super) pad0: u16,
    pub(super) max_io_buf_bytes: u32,
    pub(super) dev_id: u32,
    pub(super) ublksrv_pid: i32,
    pub(super) pad1: u32,
    pub(super) flags: u64,
    /// Stored by the driver without interpretation.
    pub(super) ublksrv_flags: u64,
    /// Since Linux 6.3.
    pub(super) owner_uid: u32,
    /// Since Linux 6.3.
    pub(super) owner_gid: u32,
    pub(super) reserved1: u64,
    pub(super) reserved2: u64,
}

/// `UBLK_F_UNPRIVILEGED_DEV`: the device belongs to an unprivileged user (Linux 6.3). The driver
/// clears the flag for privileged users.
pub(super) const UNPRIVILEGED: u64 = 1 << 5;

/// `struct ublk_params` up to the discard parameters. Later parameters are not set.
#[derive(
    Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout, PartialEq, Eq,
)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) len: u32,
    pub(super) types: u32,
    pub(super) basic: BasicParameters,
    pub(super) discard: DiscardParameters,
    /// Padding, so that the structure has no implicit padding.
    pub(super) rest: u32,
}

/// `UBLK_PARAM_TYPE_BASIC` and `UBLK_PARAM_TYPE_DISCARD`.
pub(super) const TYPES: u32 = 0b11;

/// `struct ublk_param_basic`. The shifts are the binary logarithms of sizes in bytes. A sector has
/// 512 bytes.
#[derive(
    Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout, PartialEq, Eq,
)]
#[repr(C)]
pub(super) struct BasicParameters {
    pub(super) attrs: u32,
    pub(super) logical_bs_shift: u8,
    pub(super) physical_bs_shift: u8,
    pub(super) io_opt_shift: u8,
    pub(super) io_min_shift: u8,
    pub(super) max_sectors: u32,
    pub(super) chunk_sectors: u32,
    pub(super) dev_sectors: u64,
    pub(super) virt_boundary_mask: u64,
}

/// `UBLK_ATTR_READ_ONLY`.
pub(super) const READ_ONLY: u32 = 1 << 0;
/// `UBLK_ATTR_ROTATIONAL`.
pub(super) const ROTATIONAL: u32 = 1 << 1;
/// `UBLK_ATTR_VOLATILE_CACHE`.
pub(super) const VOLATILE_CACHE: u32 = 1 << 2;
/// `UBLK_ATTR_FUA`.
pub(super) const FUA: u32 = 1 << 3;

/// `struct ublk_param_discard`. A sector has 512 bytes.
#[derive(
    Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout, PartialEq, Eq,
)]
#[repr(C)]
pub(super) struct DiscardParameters {
    pub(super) discard_alignment: u32,
    pub(super) discard_granularity: u32,
    pub(super) max_discard_sectors: u32,
    pub(super) max_write_zeroes_sectors: u32,
    pub(super) max_discard_segments: u16,
    pub(super) reserved0: u16,
}

/// `struct ublksrv_io_desc`: a request, in memory that the driver shares.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct IoDescriptor {
    /// The operation in bits 0 to 7, and flags in the bits above.
    pub(super) op_flags: u32,
    pub(super) nr_sectors: u32,
    pub(super) start_sector: u64,
    pub(super) addr: u64,
}

/// `UBLK_IO_OP_READ`.
pub(super) const OP_READ: u32 = 0;
/// `UBLK_IO_OP_WRITE`.
pub(super) const OP_WRITE: u32 = 1;
/// `UBLK_IO_OP_FLUSH`.
pub(super) const OP_FLUSH: u32 = 2;
/// `UBLK_IO_OP_DISCARD`.
pub(super) const OP_DISCARD: u32 = 3;
/// `UBLK_IO_OP_WRITE_ZEROES`.
pub(super) const OP_WRITE_ZEROES: u32 = 5;
/// `UBLK_IO_F_FUA`.
pub(super) const IO_FUA: u32 = 1 << 13;

/// `struct ublksrv_io_cmd`: returns the result of a tag's request, and takes the tag's next one.
/// Sent to `/dev/ublkcN`.
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct IoCommand {
    pub(super) q_id: u16,
    pub(super) tag: u16,
    pub(super) result: i32,
    pub(super) addr: u64,
}

/// `UBLK_IO_RES_ABORT` (`-ENODEV`): the device has stopped, and the tag gets no more requests.
pub(super) const ABORTED: i32 = -19;

/// A command's number, encoded as for `ioctl` (since Linux 6.4).
pub(super) type Op = u32;

/// `_IOC_READ`.
const READ: u32 = 2;
/// `_IOC_READ | _IOC_WRITE`.
const READ_WRITE: u32 = 3;

/// `_IOC(direction, 'u', number, size)` of `<asm-generic/ioctl.h>`.
const fn encode(direction: u32, number: u32, size: usize) -> Op {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

const fn control(direction: u32, number: u32) -> Op {
    encode(direction, number, size_of::<ControlCommand>())
}

/// `UBLK_U_CMD_ADD_DEV`.
pub(super) const ADD_DEV: Op = control(READ_WRITE, 0x04);
/// `UBLK_U_CMD_DEL_DEV`.
pub(super) const DEL_DEV: Op = control(READ_WRITE, 0x05);
/// `UBLK_U_CMD_START_DEV`.
pub(super) const START_DEV: Op = control(READ_WRITE, 0x06);
/// `UBLK_U_CMD_STOP_DEV`.
pub(super) const STOP_DEV: Op = control(READ_WRITE, 0x07);
/// `UBLK_U_CMD_SET_PARAMS`.
pub(super) const SET_PARAMS: Op = control(READ_WRITE, 0x08);
/// `UBLK_U_CMD_GET_DEV_INFO2`, which needs the path of the device's node.
pub(super) const GET_DEV_INFO2: Op = control(READ, 0x12);
/// `UBLK_U_CMD_GET_FEATURES` (Linux 6.5).
pub(super) const GET_FEATURES: Op = control(READ, 0x13);
/// `UBLK_U_CMD_DEL_DEV_ASYNC`: does not wait for the device's last user (Linux 6.9).
pub(super) const DEL_DEV_ASYNC: Op = control(READ, 0x14);
/// `UBLK_U_IO_FETCH_REQ`.
pub(super) const FETCH_REQ: Op = encode(READ_WRITE, 0x20, size_of::<IoCommand>());
/// `UBLK_U_IO_COMMIT_AND_FETCH_REQ`.
pub(super) const COMMIT_AND_FETCH_REQ: Op = encode(READ_WRITE, 0x21, size_of::<IoCommand>());

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// Lists the structure's name in C, the field's name and its offset for each given field.
    macro_rules! fields {
        ($ours:ident, $c:literal, $($field:ident),+) => {
            [$(($c, stringify!($field), offset_of!($ours, $field))),+]
        };
    }

    /// Do the structures have the same sizes and field offsets as in the kernel's header, and the
    /// constants the same values? Fields and constants that older headers lack are left out, and so
    /// is the size of `ublk_params`, whose later parameters are not set.
    #[test]
    fn the_layout_matches_the_header() {
        let cc = testkit::tool!("cc");
        if !Path::new("/usr/include/linux/ublk_cmd.h").exists() {
            testkit::skip!("linux/ublk_cmd.h is not installed (linux-libc-dev)");
        }
        let mut ours = Vec::new();
        ours.extend(fields!(
            ControlCommand,
            "ublksrv_ctrl_cmd",
            dev_id,
            queue_id,
            len,
            addr,
            data
        ));
        ours.extend(fields!(
            DeviceInfo,
            "ublksrv_ctrl_dev_info",
            nr_hw_queues,
            queue_depth,
            state,
            max_io_buf_bytes,
            dev_id,
            ublksrv_pid,
            flags,
            ublksrv_flags,
            reserved1,
            reserved2
        ));
        ours.extend(fields!(
            Parameters,
            "ublk_params",
            len,
            types,
            basic,
            discard
        ));
        ours.extend(fields!(
            BasicParameters,
            "ublk_param_basic",
            attrs,
            logical_bs_shift,
            physical_bs_shift,
            io_opt_shift,
            io_min_shift,
            max_sectors,
            chunk_sectors,
            dev_sectors,
            virt_boundary_mask
        ));
        ours.extend(fields!(
            DiscardParameters,
            "ublk_param_discard",
            discard_alignment,
            discard_granularity,
            max_discard_sectors,
            max_write_zeroes_sectors,
            max_discard_segments
        ));
        ours.extend(fields!(
            IoDescriptor,
            "ublksrv_io_desc",
            op_flags,
            nr_sectors,
            start_sector,
            addr
        ));
        ours.extend(fields!(
            IoCommand,
            "ublksrv_io_cmd",
            q_id,
            tag,
            result,
            addr
        ));
        let sizes = [
            ("ublksrv_ctrl_cmd", size_of::<ControlCommand>()),
            ("ublksrv_ctrl_dev_info", size_of::<DeviceInfo>()),
            ("ublk_param_basic", size_of::<BasicParameters>()),
            ("ublk_param_discard", size_of::<DiscardParameters>()),
            ("ublksrv_io_desc", size_of::<IoDescriptor>()),
            ("ublksrv_io_cmd", size_of::<IoCommand>()),
        ];
        let numbers = [
            ("UBLK_CMD_ADD_DEV", number_of(ADD_DEV)),
            ("UBLK_CMD_DEL_DEV", number_of(DEL_DEV)),
            ("UBLK_CMD_START_DEV", number_of(START_DEV)),
            ("UBLK_CMD_STOP_DEV", number_of(STOP_DEV)),
            ("UBLK_CMD_SET_PARAMS", number_of(SET_PARAMS)),
            ("UBLK_IO_FETCH_REQ", number_of(FETCH_REQ)),
            (
                "UBLK_IO_COMMIT_AND_FETCH_REQ",
                number_of(COMMIT_AND_FETCH_REQ),
            ),
            ("UBLK_ATTR_READ_ONLY", READ_ONLY),
            ("UBLK_ATTR_ROTATIONAL", ROTATIONAL),
            ("UBLK_ATTR_VOLATILE_CACHE", VOLATILE_CACHE),
            ("UBLK_ATTR_FUA", FUA),
            ("UBLK_IO_OP_READ", OP_READ),
            ("UBLK_IO_OP_WRITE", OP_WRITE),
            ("UBLK_IO_OP_FLUSH", OP_FLUSH),
            ("UBLK_IO_OP_DISCARD", OP_DISCARD),
            ("UBLK_IO_OP_WRITE_ZEROES", OP_WRITE_ZEROES),
            ("UBLK_IO_F_FUA", IO_FUA),
            ("UBLK_IO_RES_ABORT", ABORTED as u32),
            ("UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD", TYPES),
        ];
        let mut statements = String::new();
        let mut expected = String::new();
        for (kind, field, offset) in ours {
            statements += &format!("P(\"{kind}.{field}\", offsetof(struct {kind}, {field}))\n");
            expected += &format!("{kind}.{field} {offset}\n");
        }
        for (kind, size) in sizes {
            statements += &format!("P(\"{kind}\", sizeof(struct {kind}))\n");
            expected += &format!("{kind} {size}\n");
        }
        for (name, number) in numbers {
            statements += &format!("P(\"{name}\", {name})\n");
            expected += &format!("{name} {number}\n");
        }
        assert_eq!(compiled(&cc, &statements), expected);
    }

    /// Returns a command's number without the encoding, which headers before Linux 6.4 lack.
    fn number_of(op: Op) -> u32 {
        op & 0xff
    }

    /// Returns the output of a C program that prints names and numbers.
    fn compiled(cc: &Path, statements: &str) -> String {
        let folder = TempDir::new().unwrap();
        let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
        let text = format!(
            "#include <linux/ublk_cmd.h>\n#include <errno.h>\n#include <stddef.h>\n\
             #include <stdio.h>\n\
             #define P(name, number) printf(\"%s %u\\n\", name, (unsigned)(number));\n\
             int main(void) {{\n{statements}return 0;\n}}\n"
        );
        fs::write(&source, text).unwrap();
        let built = Command::new(cc)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap()
    }

    /// Are commands encoded like `_IOR` and `_IOWR`?
    #[test]
    fn commands_are_encoded_as_ioctls() {
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(ADD_DEV, 0xc020_7504);
        assert_eq!(COMMIT_AND_FETCH_REQ, 0xc010_7521);
    }
}
