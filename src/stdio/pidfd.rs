//! A descriptor that becomes readable when a process exits.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};

/// `None` where the kernel is too old; the process is looked at from time to time then.
pub(super) fn open(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}
