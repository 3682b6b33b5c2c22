//! The protocol on file descriptors: pipes, child processes and the blocking ends, without a thread of its own.
//!
//! [`Pump`] is the one loop that both ends share. [`HarnessClient`] is the protocol over it, method by method;
//! [`DeepSeekHarness`] and [`Session`] run prompts on top of that.

mod child;
mod connection;
mod error;
mod harness;
mod harness_client;
mod launch;
mod options;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(not(target_os = "linux"))]
#[path = "pidfd_unavailable.rs"]
mod pidfd;
mod pump;
mod subscription;
mod tail;

pub use child::Exit;
pub use connection::CloseReport;
pub use error::{Cause, Closed, Error, ErrorKind};
pub use harness::{DeepSeekHarness, HarnessOptions, Input, RunOptions, RunResult, Session};
pub use harness_client::{HarnessClient, PendingCall};
pub use launch::{Environment, Launch, RUNTIME_VARIABLE, SpawnError, SpawnFault, Stderr, StderrCallback};
pub use options::{CallOptions, ClientOptions};
pub use pump::{Moved, Pump, Waker};
pub use subscription::{Deliveries, Subscription};
pub use tail::Tail;
