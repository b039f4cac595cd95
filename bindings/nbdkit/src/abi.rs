//! nbdkit's plugin interface, API version 2 (`nbdkit-plugin.h`, nbdkit-plugin(3)).
//!
//! The crate `nbdkit` 0.3.0 (2023) has neither `block_size` nor `cleanup`, which are needed here.
//! The structure is therefore declared here, up to `block_size`, the last field added, in nbdkit
//! 1.30. nbdkit accepts older and newer structures according to their size. A test compares the
//! offsets of the fields with those in the header.

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface.
pub const API_VERSION: c_int = 2;
/// The thread model in which nbdkit may issue any call from any thread at any time.
pub const THREAD_MODEL_PARALLEL: c_int = 3;
/// The flag of a request with force unit access.
pub const FLAG_FUA: u32 = 1 << 1;
/// The result of `can_fua` if the plugin implements force unit access itself.
pub const FUA_NATIVE: c_int = 2;

/// The connection argument of a call: the value that `open` returned.
pub type Handle = *mut c_void;
/// A query about a connection: 1 for yes, 0 for no, -1 for an error.
pub type Query = Option<extern "C" fn(Handle) -> c_int>;
/// A startup callback: returns 0, or -1 for an error.
pub type Step = Option<extern "C" fn() -> c_int>;
/// A callback without arguments or result.
pub type Callback = Option<extern "C" fn()>;
/// A field that this plugin leaves empty.
pub type Unused = Option<extern "C" fn()>;
/// A request for a range that transfers no data: trim or zero.
pub type Range = Option<extern "C" fn(Handle, u32, u64, u32) -> c_int>;

/// `struct nbdkit_plugin`. The field names are those of the header.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "nbdkit-plugin(3) describes them")]
pub struct Plugin {
    pub _struct_size: u64,
    pub _api_version: c_int,
    pub _thread_model: c_int,
    pub name: *const c_char,
    pub longname: *const c_char,
    pub version: *const c_char,
    pub description: *const c_char,
    pub load: Callback,
    pub unload: Callback,
    pub config: Option<extern "C" fn(*const c_char, *const c_char) -> c_int>,
    pub config_complete: Step,
    pub config_help: *const c_char,
    pub open: Option<extern "C" fn(c_int) -> Handle>,
    pub close: Option<extern "C" fn(Handle)>,
    pub get_size: Option<extern "C" fn(Handle) -> i64>,
    pub can_write: Query,
    pub can_flush: Query,
    pub is_rotational: Query,
    pub can_trim: Query,
    pub _pread_v1: Unused,
    pub _pwrite_v1: Unused,
    pub _flush_v1: Unused,
    pub _trim_v1: Unused,
    pub _zero_v1: Unused,
    pub errno_is_preserved: c_int,
    pub dump_plugin: Callback,
    pub can_zero: Query,
    pub can_fua: Query,
    pub pread: Option<unsafe extern "C" fn(Handle, *mut c_void, u32, u64, u32) -> c_int>,
    pub pwrite: Option<unsafe extern "C" fn(Handle, *const c_void, u32, u64, u32) -> c_int>,
    pub flush: Option<extern "C" fn(Handle, u32) -> c_int>,
    pub trim: Range,
    pub zero: Range,
    pub magic_config_key: *const c_char,
    pub can_multi_conn: Query,
    pub can_extents: Query,
    pub extents: Unused,
    pub can_cache: Query,
    pub cache: Unused,
    pub thread_model: Step,
    pub can_fast_zero: Query,
    pub preconnect: Option<extern "C" fn(c_int) -> c_int>,
    pub get_ready: Step,
    pub after_fork: Step,
    pub list_exports: Unused,
    pub default_export: Unused,
    pub export_description: Unused,
    pub cleanup: Callback,
    pub block_size: Option<unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut u32) -> c_int>,
}

#[allow(unsafe_code)]
unsafe extern "C" {
    /// Reports an error to the user of nbdkit, with a printf format.
    pub fn nbdkit_error(format: *const c_char, ...);
    /// Writes a line to nbdkit's debug log, with a printf format.
    pub fn nbdkit_debug(format: *const c_char, ...);
    /// Sets the error number for the client of the current call.
    pub fn nbdkit_set_error(errno: c_int);
}
