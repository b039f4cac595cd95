//! The memory that the driver shares, and the memory that it copies data to and from.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::io;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

use super::abi::IoDescriptor;

/// The descriptors of a queue by tag, in read-only memory shared with the driver.
#[derive(Debug)]
pub(super) struct Descriptors {
    mapping: Mapping,
    depth: u16,
}

impl Descriptors {
    /// Maps the descriptors of the first queue of a device.
    ///
    /// # Errors
    /// Returns an error if the driver has no queue of this depth.
    #[allow(unsafe_code)]
    pub(super) fn map(node: &File, depth: u16) -> io::Result<Descriptors> {
        // The driver expects whole pages.
        let bytes = (usize::from(depth) * size_of::<IoDescriptor>()).next_multiple_of(page_size());
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping, at an address that the kernel chooses, affects no other memory.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, flags, node, 0)? };
        Ok(Descriptors {
            mapping: Mapping::new(start, bytes),
            depth,
        })
    }

    /// Returns the descriptor of a tag. It describes the tag's current request, from the completion
    /// of the operation that fetched the request until the result is returned.
    ///
    /// # Panics
    /// Panics if the queue has no such tag.
    #[allow(unsafe_code)]
    pub(super) fn get(&self, tag: u16) -> IoDescriptor {
        assert!(
            tag < self.depth,
            "tag {tag}: the queue has {} tags",
            self.depth
        );
        let first = self.mapping.start.cast::<IoDescriptor>();
        // SAFETY: the mapping holds `depth` descriptors, and every bit pattern is valid. The read
        // is volatile because the driver changes the memory.
        unsafe { first.add(usize::from(tag)).read_volatile() }
    }
}

/// The memory of a tag, initially zero. The system allocates a page when it is first touched.
#[derive(Debug)]
pub(super) struct TagMemory(Mapping);

impl TagMemory {
    /// Maps memory of this size.
    ///
    /// # Errors
    /// Returns an error if the system refuses it.
    #[allow(unsafe_code)]
    pub(super) fn map(bytes: usize) -> io::Result<TagMemory> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses, affects no other memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, writable, flags)? };
        // With huge pages, a request of one sector would allocate 2 MiB. A kernel without huge
        // pages refuses the advice, which is then unnecessary. SAFETY: the advice changes no
        // content.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
        Ok(TagMemory(Mapping::new(start, bytes)))
    }

    /// Returns the address, which does not change.
    pub(super) fn address(&self) -> u64 {
        self.0.start.as_ptr() as u64
    }
}

impl Deref for TagMemory {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable and initialized, and nothing else owns it.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.bytes) }
    }
}

impl DerefMut for TagMemory {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable, writable and initialized, and nothing else owns it.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.bytes) }
    }
}

/// Pages that are unmapped when this is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: mapped memory is not tied to a thread.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(start: *mut std::ffi::c_void, bytes: usize) -> Mapping {
        Mapping {
            start: NonNull::new(start.cast()).expect("the kernel maps nothing at 0"),
            bytes,
        }
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: all references to the pages borrow this owner.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
