//! Without vector instructions nothing is faster than the plain path.

use core::ops::Range;

/// Never knows.
pub(crate) fn compact_object(_: &str, _: &mut dyn FnMut(Range<usize>, Range<usize>)) -> Option<Range<usize>> {
    None
}

/// As [`core::str::from_utf8`], without a reason.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}
