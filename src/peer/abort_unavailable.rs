//! What stands for [`AbortToken`] on targets without compare-and-swap: a type without values, so that the signatures
//! stay and the code behind them goes. Calls are given up with [`Peer::abort`](super::Peer::abort) there.

use core::fmt;

/// No such token can be made on this target.
#[derive(Debug, Clone)]
pub enum AbortToken {}

impl AbortToken {
    /// Never called.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn reason(&self) -> AbortReason {
        match *self {}
    }
}

/// No such reason exists on this target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbortReason {}

impl AbortReason {
    /// Never called.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match *self {}
    }
}

impl fmt::Display for AbortReason {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
