//! The structures of the Arrow C data interface and C stream interface, as specified at
//! <https://arrow.apache.org/docs/format/CDataInterface.html>.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// A type, with its name.
#[repr(C)]
pub(crate) struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

/// The buffers of values of a type.
#[repr(C)]
pub(crate) struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

/// A sequence of arrays of one type.
#[repr(C)]
pub(crate) struct ArrowArrayStream {
    pub(crate) get_schema:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(crate) get_next:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

/// The flag of a field whose values can be null.
pub(crate) const FLAG_NULLABLE: i64 = 2;

/// The name of Python capsules that hold an [`ArrowSchema`].
pub(crate) const SCHEMA_CAPSULE: &std::ffi::CStr = c"arrow_schema";
/// The name of Python capsules that hold an [`ArrowArray`].
pub(crate) const ARRAY_CAPSULE: &std::ffi::CStr = c"arrow_array";
/// The name of Python capsules that hold an [`ArrowArrayStream`].
pub(crate) const STREAM_CAPSULE: &std::ffi::CStr = c"arrow_array_stream";

macro_rules! owned {
    ($structure:ident { $($field:ident: $empty:expr),* $(,)? }) => {
        impl $structure {
            /// Returns a released structure, into which a producer can move its own.
            pub(crate) const fn released() -> $structure {
                $structure { $($field: $empty),*, release: None, private_data: ptr::null_mut() }
            }
        }

        impl Drop for $structure {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the interface requires that the owner of a structure that is not
                    // released calls its `release` once, which then clears the member.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: the interface allows a structure to be used and released in another thread.
        unsafe impl Send for $structure {}
    };
}

owned!(ArrowSchema {
    format: ptr::null(),
    name: ptr::null(),
    metadata: ptr::null(),
    flags: 0,
    n_children: 0,
    children: ptr::null_mut(),
    dictionary: ptr::null_mut(),
});
owned!(ArrowArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: ptr::null_mut(),
    children: ptr::null_mut(),
    dictionary: ptr::null_mut(),
});
owned!(ArrowArrayStream {
    get_schema: None,
    get_next: None,
    get_last_error: None,
});
