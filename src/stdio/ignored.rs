//! Which signals the process ignores, as `nohup` has it do. The command has this file too.

/// The signals that are ignored, as bits from 0: Linux has a mask of them, in hexadecimal. Where the system does not tell,
/// none is known to be.
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether this signal is among those.
pub(crate) fn is_ignored(ignored: u64, signal: i32) -> bool {
    ignored >> (signal - 1) & 1 == 1
}
