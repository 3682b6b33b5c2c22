//! Why a call gave no result.

use core::fmt;

use crate::frame::RpcError;
use crate::json::JsonBuf;
use crate::peer::{AbortReason, LostReason};
use crate::wire::DecodeError;

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The runtime answered with an error.
    Rpc(RpcError),
    /// Its deadline came first. The runtime may still do what was asked; there is no cancel on the wire.
    TimedOut,
    /// Its token was set.
    Aborted(AbortReason),
    /// No answer can come any more.
    Lost(LostReason),
    /// It was made with another client, where it goes on. Said each time that the wrong one is asked.
    OtherClient,
    /// The result is not what the method's must be.
    Unexpected {
        /// What was expected where.
        error: DecodeError,
        /// The result.
        came: JsonBuf,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(_) => f.write_str("the runtime answered with an error"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Aborted(reason) => write!(f, "aborted: {reason}"),
            Self::Lost(why) => why.fmt(f),
            Self::OtherClient => f.write_str("it belongs to another client, and goes on there"),
            Self::Unexpected { .. } => f.write_str("the result is not what the protocol says"),
        }
    }
}

impl core::error::Error for Failure {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rpc(error) => Some(error),
            Self::Unexpected { error, .. } => Some(error),
            Self::TimedOut | Self::Aborted(_) | Self::Lost(_) | Self::OtherClient => None,
        }
    }
}
