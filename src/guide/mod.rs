//! Guides, one for each thing that this crate is taken for. Their code is compiled and run with the tests, offline.
//!
//! - [`drive_a_runtime`]: start a runtime, run prompts, end it (needs `serve`).
//! - [`write_a_runtime`]: be what the official clients drive (needs `serve`).
//! - [`embed_the_core`]: both ends of the protocol in a loop of your own.
//! - `fuzz_your_endpoint`: structured input for what handles frames (needs `arbitrary`).
//! - [`port_to_bare_metal`]: without std, without a system.

#[cfg(feature = "serve")]
#[doc = include_str!("drive_a_runtime.md")]
pub mod drive_a_runtime {}

#[cfg(feature = "serve")]
#[doc = include_str!("write_a_runtime.md")]
pub mod write_a_runtime {}

#[doc = include_str!("embed_the_core.md")]
pub mod embed_the_core {}

#[cfg(feature = "arbitrary")]
#[doc = include_str!("fuzz_your_endpoint.md")]
pub mod fuzz_your_endpoint {}

#[doc = include_str!("port_to_bare_metal.md")]
pub mod port_to_bare_metal {}
