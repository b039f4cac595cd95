//! The plugin: passes nbdkit's calls on to a [`BlockService`]. It contains no logic.
//!
//! ```text
//! nbdkit ./libtraxtent_nbdkit.so drive=atlas10k2 file=disk.img
//! ```
//!
//! docs/serve.md describes the parameters. There is one drive or volume, whatever the number of
//! connections: a flush on one applies to the writes of all. Files are opened and the drive's
//! profile is read before nbdkit goes into the background. Threads are started and the drive's time
//! begins after that.

#![allow(unsafe_code, reason = "nbdkit calls a C interface")]

pub mod abi;
mod logging;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use traxtent_server::export;
use traxtent_server::service::{BlockService, ServiceError};

use abi::{Handle, Plugin};

/// The parameters received so far.
static PARAMETERS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
/// The drive or the volume.
static SERVER: OnceLock<Box<dyn BlockService>> = OnceLock::new();

/// Returns the plugin table to nbdkit, which calls this function once, after loading the library.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_init() -> *mut Plugin {
    logging::start();
    let table = Plugin {
        _struct_size: size_of::<Plugin>() as u64,
        _api_version: abi::API_VERSION,
        _thread_model: abi::THREAD_MODEL_PARALLEL,
        name: c"traxtent".as_ptr(),
        longname: c"traxtent: a modelled disk".as_ptr(),
        version: concat_version().as_ptr(),
        description: c"a disk with the response times of a model".as_ptr(),
        load: None,
        unload: None,
        config: Some(config),
        config_complete: Some(config_complete),
        config_help: HELP.as_ptr(),
        open: Some(open),
        close: None,
        get_size: Some(get_size),
        can_write: Some(yes),
        can_flush: Some(yes),
        is_rotational: Some(yes),
        can_trim: Some(can_trim),
        _pread_v1: None,
        _pwrite_v1: None,
        _flush_v1: None,
        _trim_v1: None,
        _zero_v1: None,
        errno_is_preserved: 0,
        dump_plugin: None,
        can_zero: Some(yes),
        can_fua: Some(can_fua),
        pread: Some(pread),
        pwrite: Some(pwrite),
        flush: Some(flush),
        trim: Some(trim),
        zero: Some(zero),
        magic_config_key: c"drive".as_ptr(),
        can_multi_conn: Some(yes),
        can_extents: Some(no),
        extents: None,
        can_cache: None,
        cache: None,
        thread_model: None,
        can_fast_zero: Some(no),
        preconnect: None,
        get_ready: None,
        after_fork: Some(after_fork),
        list_exports: None,
        default_export: None,
        export_description: None,
        cleanup: Some(cleanup),
        block_size: Some(block_size),
    };
    // nbdkit keeps it until it exits.
    Box::leak(Box::new(table))
}

const HELP: &CStr = c"\
[drive=]<DRIVE>   name of a built-in drive, or profile file (required unless volume= is given)
file=<FILE>       file for the drive's data; by default they are in memory
speed=<FACTOR>    speed as a multiple of real time
seed=<N>          seed for random choices in faults
scenario=<FILE>   faults and their times
log=<FILE>        log with one row per request
receipt=<FILE>    report of the timing accuracy of the run
control=<SOCKET>  socket for orders: faults of a drive, maintenance of a volume
volume=<FILE>     member of a volume, instead of a drive; once per member
member-timeout=<SECONDS>  time without a response after which a member fails (30)
sync-rate=<BYTES> rate of the initial sync per second and member, or off";

/// Returns the version with the zero byte that terminates C strings.
fn concat_version() -> &'static CStr {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    CStr::from_bytes_with_nul(VERSION.as_bytes()).expect("a version has no other")
}

extern "C" fn config(key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: nbdkit passes two strings that live during the call.
    let [key, value] = [key, value].map(|text| unsafe { CStr::from_ptr(text) });
    match (key.to_str(), value.to_str()) {
        (Ok(key), Ok(value)) => {
            let mut keys = PARAMETERS.lock();
            keys.push((key.to_owned(), value.to_owned()));
            0
        }
        _ => fail("a key or its value is not UTF-8", None),
    }
}

extern "C" fn config_complete() -> c_int {
    let keys = PARAMETERS.lock();
    let pairs = keys
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    match export::open(pairs) {
        Ok(server) => {
            SERVER.get_or_init(|| server);
            0
        }
        Err(error) => fail(&error.to_string(), None),
    }
}

extern "C" fn after_fork() -> c_int {
    step(|server| {
        server.start()?;
        // The handlers by which nbdkit itself ends are still called.
        let signals = [SIGUSR1, SIGTERM, SIGINT, SIGQUIT];
        let mut signals = Signals::new(signals).map_err(ServiceError::Thread)?;
        let heed = move || {
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    write_receipt();
                    continue;
                }
                let thread = std::thread::Builder::new().name("end".to_owned());
                let _ = thread.spawn(|| SERVER.get().map(|server| server.limit_shutdown()));
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(heed)
            .map_err(ServiceError::Thread)?;
        Ok(())
    })
}

fn write_receipt() {
    if let Some(Err(error)) = SERVER.get().map(|server| server.write_receipt()) {
        report_error(&error.to_string());
    }
}

extern "C" fn cleanup() {
    if let Some(Err(error)) = SERVER.get().map(|server| server.stop()) {
        report_error(&error.to_string());
    }
}

extern "C" fn open(_readonly: c_int) -> Handle {
    // Connections have no state of their own; only null is an error.
    ptr::dangling_mut::<c_void>()
}

extern "C" fn get_size(_: Handle) -> i64 {
    SERVER
        .get()
        .map_or(-1, |server| i64::try_from(server.bytes()).unwrap_or(-1))
}

extern "C" fn yes(_: Handle) -> c_int {
    1
}

extern "C" fn no(_: Handle) -> c_int {
    0
}

extern "C" fn can_trim(_: Handle) -> c_int {
    SERVER
        .get()
        .map_or(-1, |server| c_int::from(server.can_trim()))
}

extern "C" fn can_fua(_: Handle) -> c_int {
    abi::FUA_NATIVE
}

unsafe extern "C" fn block_size(
    _: Handle,
    minimum: *mut u32,
    preferred: *mut u32,
    maximum: *mut u32,
) -> c_int {
    step(|server| {
        let sizes = server.block_sizes();
        // SAFETY: nbdkit passes three valid pointers for the result.
        unsafe {
            minimum.write(sizes.minimum);
            preferred.write(sizes.preferred);
            maximum.write(sizes.maximum);
        }
        Ok(())
    })
}

unsafe extern "C" fn pread(
    _: Handle,
    buffer: *mut c_void,
    count: u32,
    offset: u64,
    _: u32,
) -> c_int {
    // SAFETY: nbdkit passes a cleared buffer of `count` bytes for the exclusive use of this call.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count as usize) };
    step(|server| server.read(buffer, offset))
}

unsafe extern "C" fn pwrite(
    _: Handle,
    buffer: *const c_void,
    count: u32,
    offset: u64,
    flags: u32,
) -> c_int {
    // SAFETY: nbdkit passes `count` bytes that do not change during the call.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count as usize) };
    step(|server| server.write(bytes, offset, flags & abi::FLAG_FUA != 0))
}

extern "C" fn flush(_: Handle, _: u32) -> c_int {
    step(|server| server.flush())
}

extern "C" fn trim(_: Handle, count: u32, offset: u64, flags: u32) -> c_int {
    step(|server| server.trim(offset, u64::from(count), flags & abi::FLAG_FUA != 0))
}

extern "C" fn zero(_: Handle, count: u32, offset: u64, flags: u32) -> c_int {
    step(|server| server.zero(offset, u64::from(count), flags & abi::FLAG_FUA != 0))
}

/// Calls the server. An error goes to nbdkit's log and, as a number, to the client.
fn step(call: impl FnOnce(&dyn BlockService) -> Result<(), ServiceError>) -> c_int {
    match SERVER.get().map(|server| call(&**server)) {
        Some(Ok(())) => 0,
        Some(Err(error)) => fail(&error.to_string(), Some(error.errno())),
        None => fail("there is no drive yet", None),
    }
}

fn fail(what: &str, errno: Option<c_int>) -> c_int {
    report_error(what);
    if let Some(errno) = errno {
        // SAFETY: it sets a number for the current thread's request.
        unsafe { abi::nbdkit_set_error(errno) };
    }
    -1
}

fn report_error(what: &str) {
    let line = CString::new(what.replace('\0', " ")).expect("it has no zero byte");
    // SAFETY: the format takes one string, which lives during the call.
    unsafe { abi::nbdkit_error(c"%s".as_ptr(), line.as_ptr()) };
}
