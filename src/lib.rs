//! The DeepSeek Harness SDK wire protocol without async.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod json;
pub mod wire;
