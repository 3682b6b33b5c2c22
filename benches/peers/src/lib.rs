//! What dsh-wire is measured against, and how.

pub mod corpus;
pub mod decode;
pub mod encode;
pub mod lines;
pub mod measure;
#[cfg(feature = "readers")]
pub mod readers;
#[cfg(not(feature = "readers"))]
#[path = "readers_unavailable.rs"]
pub mod readers;
pub mod round_trip;
pub mod serve;
pub mod typed;
