//! [`AbortToken`], for targets that have atomics.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// Gives up calls from anywhere: clone it, hand it to any number of calls, set it from any thread.
///
/// A token is a flag and a reason; nothing is registered with it, so nothing has to be taken back. The peer looks at
/// it when a request is made and at each [`Peer::poll_aborts`](super::Peer::poll_aborts).
///
/// ```
/// use dsh_wire::peer::AbortToken;
///
/// let token = AbortToken::new("the user pressed escape");
/// let same = token.clone();
/// same.abort();
/// assert!(token.is_aborted());
/// assert_eq!(token.reason().to_string(), "the user pressed escape");
/// ```
#[derive(Clone)]
pub struct AbortToken(Arc<Shared>);

struct Shared {
    aborted: AtomicBool,
    reason: AbortReason,
    /// Called once, by the first `abort`.
    wake: Option<Box<dyn Fn() + Send + Sync>>,
}

impl AbortToken {
    /// A token that is not set, with the reason that its calls will end with.
    #[must_use]
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self::with(reason.into(), None)
    }

    /// As [`new`](Self::new); `wake` is called once, on the thread that sets it, after it is set. For whoever waits
    /// and would not look otherwise.
    #[must_use]
    pub fn waking(reason: impl Into<Arc<str>>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self::with(reason.into(), Some(Box::new(wake)))
    }

    fn with(reason: Arc<str>, wake: Option<Box<dyn Fn() + Send + Sync>>) -> Self {
        Self(Arc::new(Shared { aborted: AtomicBool::new(false), reason: AbortReason(reason), wake }))
    }

    /// Sets the token, for good.
    pub fn abort(&self) {
        if !self.0.aborted.swap(true, Ordering::AcqRel)
            && let Some(wake) = &self.0.wake
        {
            wake();
        }
    }

    /// Whether it has been set.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// Why, whether or not it has been set.
    #[must_use]
    pub fn reason(&self) -> AbortReason {
        self.0.reason.clone()
    }
}

impl fmt::Debug for AbortToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortToken").field("aborted", &self.is_aborted()).field("reason", &self.0.reason).finish()
    }
}

/// The reason that an [`AbortToken`] was made with.
#[derive(Clone, PartialEq, Eq)]
pub struct AbortReason(Arc<str>);

impl AbortReason {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AbortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AbortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
