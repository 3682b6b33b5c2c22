//! The interop suite: the official runtime, the official clients and our own ends in every pairing. It needs what
//! `tests/interop/setup` installs; `tests/interop/run` does both. `cargo test` alone leaves it out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod client;
mod clients;
mod comparison;
mod conversation;
mod doctor;
mod either;
mod environment;
mod inspect;
mod same_conversation;
mod tap;
