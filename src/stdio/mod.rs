//! The protocol on file descriptors: pipes, child processes and the blocking ends, without a thread of its own.
//!
//! [`Pump`] is the one loop that both ends share.

mod pump;

pub use pump::{Moved, Pump, Waker};
