//! The protocol on file descriptors: pipes, child processes, and both ends, blocking. The thread that calls moves the
//! bytes; only the agents behind [`serve()`] have threads of their own.
//!
//! [`Pump`] is the one loop that both ends share. [`HarnessClient`] is the protocol over it, method by method;
//! [`DeepSeekHarness`] and [`Session`] run prompts on top of that. [`serve()`] is the other end.

#[cfg(feature = "serve")]
mod ask;
mod child;
mod close;
mod connection;
mod driven;
mod error;
#[cfg(target_os = "linux")]
mod group;
#[cfg(not(target_os = "linux"))]
#[path = "group_unavailable.rs"]
mod group;
mod harness;
mod harness_client;
#[cfg(feature = "serve")]
mod host;
mod hosted;
#[cfg(feature = "serve")]
mod ignored;
#[cfg(feature = "log")]
mod journal;
#[cfg(not(feature = "log"))]
#[path = "journal_silent.rs"]
mod journal;
#[cfg(feature = "serve")]
mod lanes;
mod launch;
mod methods;
mod options;
#[cfg(feature = "serve")]
mod own;
mod panic;
mod pending_run;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(not(target_os = "linux"))]
#[path = "pidfd_unavailable.rs"]
mod pidfd;
mod pump;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod shared;
mod signal;
#[cfg(feature = "serve")]
mod signals;
mod subscription;
mod tail;
#[cfg(feature = "serve")]
pub mod turns;

/// The version of mio whose `Poll` a [`HarnessClient`] or a [`Pump`] can be registered with.
pub use mio;

#[cfg(feature = "serve")]
pub use ask::RequestError;
pub use child::Exit;
pub use close::CloseReport;
pub use error::{Cause, Closed, Error, ErrorKind};
pub use harness::{DeepSeekHarness, HarnessOptions, Session};
pub use harness_client::{HarnessClient, PendingCall};
#[cfg(feature = "serve")]
pub use host::{Agent, AgentHost, PromptResponder, Sink, SinkError, WhenFull};
pub use launch::{Environment, Launch, RUNTIME_VARIABLE, SpawnError, SpawnFault, Stderr, StderrCallback};
pub use options::{CallOptions, ClientOptions};
#[cfg(feature = "serve")]
pub use own::OwnStdio;
pub use pending_run::PendingRun;
pub use pump::{Moved, Pump, Waker};
pub use run::{Input, RunOptions, RunResult};
#[cfg(feature = "serve")]
pub use serve::{ServeOptions, Served, serve, serve_stdio};
pub use shared::{SharedClient, SharedDeliveries, SharedSession, SharedSubscription};
pub use subscription::{Deliveries, Subscription};
pub use tail::Tail;
