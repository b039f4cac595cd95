//! The memory in which the driver describes requests.

use std::fs::File;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use super::abi::IoDescriptor;

/// The descriptors of a queue by tag, shared by the driver and read-only.
#[derive(Debug)]
pub(super) struct Descriptors {
    first: NonNull<IoDescriptor>,
    depth: u16,
}

// SAFETY: the memory belongs to no thread.
#[allow(unsafe_code)]
unsafe impl Send for Descriptors {}

impl Descriptors {
    /// Maps the descriptors of the first queue of a device.
    #[allow(unsafe_code)]
    pub(super) fn map(node: &File, depth: u16) -> rustix::io::Result<Descriptors> {
        // SAFETY: a new mapping, at an address that the kernel chooses, affects no other memory.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                length(depth),
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                node,
                0,
            )?
        };
        Ok(Descriptors {
            first: NonNull::new(memory.cast()).expect("the kernel maps nothing at 0"),
            depth,
        })
    }

    /// Returns the descriptor of a tag. It is that of the tag's request from the completion of the
    /// operation that brought it until the request is returned.
    ///
    /// # Panics
    /// Panics if the queue has no such tag.
    #[allow(unsafe_code)]
    pub(super) fn get(&self, tag: u16) -> IoDescriptor {
        assert!(tag < self.depth, "tag {tag} of {}", self.depth);
        // SAFETY: the mapping holds `depth` descriptors. Every bit pattern is one. The read is
        // volatile because the driver changes them.
        unsafe { self.first.add(usize::from(tag)).read_volatile() }
    }
}

impl Drop for Descriptors {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: nothing else refers to the mapping, because `get` returns copies.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), length(self.depth)) };
    }
}

/// The length that the driver expects: whole pages.
fn length(depth: u16) -> usize {
    (usize::from(depth) * size_of::<IoDescriptor>()).next_multiple_of(page_size())
}
