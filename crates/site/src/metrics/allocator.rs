//! Memory of this process by jemalloc. Empty in a program with another allocator.

use tikv_jemalloc_ctl::{epoch, stats};

use super::{Page, Source};

#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

type Read = fn() -> Result<usize, tikv_jemalloc_ctl::Error>;

impl Source for Allocator {
    fn encode(&self, page: &mut Page) {
        // Statistics are cached until the epoch advances.
        if epoch::advance().is_err() {
            return;
        }
        let figures: [(&'static str, &'static str, Read); 3] = [
            (
                "rollcall_allocator_allocated_bytes",
                "Memory allocated by the program.",
                stats::allocated::read,
            ),
            ("rollcall_allocator_resident_bytes", "Resident memory of the allocator.", stats::resident::read),
            (
                "rollcall_allocator_mapped_bytes",
                "Address space mapped by the allocator.",
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
