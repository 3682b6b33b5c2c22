//! Tests through the public interface. Run with `cargo test --features cli` to have those of the command too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod bounds;
#[cfg(feature = "stdio")]
mod client;
#[cfg(feature = "stdio")]
mod client_faults;
#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "serve")]
mod connection;
#[cfg(feature = "cli")]
mod embedded;
#[cfg(feature = "cli")]
mod examples;
#[cfg(feature = "stdio")]
mod faulty;
mod frame;
#[cfg(feature = "stdio")]
mod heavy;
#[cfg(feature = "serve")]
mod host;
#[cfg(all(feature = "stdio", feature = "log"))]
mod journal;
mod json;
#[cfg(feature = "stdio")]
mod launch;
mod peer;
mod proof;
#[path = "../properties/mod.rs"]
mod properties;
mod readme;
#[allow(dead_code, reason = "shared; not every module uses all of it")]
mod recording;
mod replay;
#[cfg(feature = "cli")]
mod runtime;
#[cfg(feature = "cli")]
mod serve;
mod server;
#[cfg(feature = "cli")]
mod server_ends;
#[cfg(feature = "cli")]
mod server_faults;
#[cfg(feature = "cli")]
mod server_lines;
#[cfg(feature = "stdio")]
mod shared;
#[cfg(feature = "cli")]
mod subagents;
#[cfg(feature = "serve")]
mod turns;
mod wire;
