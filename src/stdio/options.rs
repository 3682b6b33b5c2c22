//! How a client and its calls are set up.

use std::time::Duration;

use crate::client::Graces;
use crate::line::DEFAULT_LIMIT;
use crate::peer::AbortToken;

/// What a [`HarnessClient`](super::HarnessClient) is set up with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The time that a call may take, where the call says nothing else; `None`, the default, is no limit: a call of
    /// a runtime that lives and does not answer then lasts until its token is set. Some calls last as long as a turn does. It
    /// holds for the handshake too, and not for the turn of a run behind the answer to its prompt, which has
    /// [`RunOptions::timeout`](super::RunOptions::timeout).
    pub timeout: Option<Duration>,
    /// The longest line that is read, in bytes; 64 MiB.
    pub line_limit: usize,
    /// How many bytes a lossless subscription, the queue of the runtime's requests, or the answers to them that wait to
    /// be written may hold before the connection fails; 64 MiB. A subscription only comes to that while a call waits,
    /// since otherwise the runtime is held up; answers only where the runtime asks and does not read.
    pub max_backlog: usize,
    /// How long each rung of the ladder may take in [`HarnessClient::close`](super::HarnessClient::close).
    pub graces: Graces,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { timeout: None, line_limit: DEFAULT_LIMIT, max_backlog: 64 << 20, graces: Graces::default() }
    }
}

/// What one call is made with.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    timeout: Timeout,
    token: Option<AbortToken>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Timeout {
    #[default]
    OfTheClient,
    Never,
    After(Duration),
}

impl CallOptions {
    /// The time that the call may take: to be written, and to be answered. Where neither this nor
    /// [`no_timeout`](Self::no_timeout) is called, that of the client holds ([`ClientOptions::timeout`]).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Timeout::After(timeout);
        self
    }

    /// No limit, whatever that of the client is.
    #[must_use]
    pub fn no_timeout(mut self) -> Self {
        self.timeout = Timeout::Never;
        self
    }

    /// Gives the call up once the token is set. A call that waits sees that within 20 ms, or at once where
    /// [`HarnessClient::waker`](super::HarnessClient::waker) is used as well.
    #[must_use]
    pub fn token(mut self, token: &AbortToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    pub(super) fn timeout_within(&self, client: &ClientOptions) -> Option<Duration> {
        match self.timeout {
            Timeout::OfTheClient => client.timeout,
            Timeout::Never => None,
            Timeout::After(timeout) => Some(timeout),
        }
    }

    pub(super) fn abort_token(&self) -> Option<&AbortToken> {
        self.token.as_ref()
    }
}
