//! Without vector instructions nothing is faster than the plain path.

use super::scan;

/// Whether `text` is one object or array from `start` on, to its end.
pub(crate) fn is_container(text: &str, start: usize) -> bool {
    let rest = text.get(start..).unwrap_or_default();
    rest.starts_with(['{', '[']) && rest.ends_with(['}', ']']) && scan::validate(rest, |_, _| {}).is_ok()
}

/// Cannot be told faster.
pub(crate) fn is_compact(_: &str) -> bool {
    false
}

/// How many bytes [`utf8`] looks at at once, as far as it matters.
pub(crate) const UTF8_BLOCK: usize = 1;

/// As [`core::str::from_utf8`], without a reason.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}
