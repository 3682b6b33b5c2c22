//! Where the system does not tell who is in a process group.

use rustix::process::Pid;

/// Nobody that we know of; what is left is killed without a word.
pub(super) fn living(_: Pid) -> usize {
    0
}
