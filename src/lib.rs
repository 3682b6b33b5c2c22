//! The DeepSeek Harness SDK wire protocol without async.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic"))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod frame;
pub mod json;
pub mod line;
pub mod peer;
pub mod wire;
