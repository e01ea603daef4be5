//! What the allocator (jemalloc) says of the memory of this process. Tells nothing of a program that uses another one.

use tikv_jemalloc_ctl::{epoch, stats};

use super::{Page, Source};

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

type Read = fn() -> Result<usize, tikv_jemalloc_ctl::Error>;

impl Source for Allocator {
    fn encode(&self, page: &mut Page) {
        // Its figures stand still until they are asked to move on.
        if epoch::advance().is_err() {
            return;
        }
        let figures: [(&'static str, &'static str, Read); 3] = [
            (
                "rollcall_allocator_allocated_bytes",
                "Memory that the program uses, as the allocator counts it.",
                stats::allocated::read,
            ),
            (
                "rollcall_allocator_resident_bytes",
                "Memory that the allocator holds for the program, used or not.",
                stats::resident::read,
            ),
            (
                "rollcall_allocator_mapped_bytes",
                "Address space that the allocator has for the program.",
                stats::mapped::read,
            ),
        ];
        for (name, help, read) in figures {
            if let Ok(bytes) = read() {
                page.gauge(name, help).is(bytes);
            }
        }
    }
}
