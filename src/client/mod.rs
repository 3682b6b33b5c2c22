//! The SDK client as a state machine: calls with deadlines, subscriptions, runs, the teardown ladder.
//!
//! Nothing here reads, writes or knows the time: bytes go in and out as with a [`Peer`], and where time matters it is
//! an argument, a [`Duration`] since an origin of the caller's.
//!
//! - **Bytes**: [`push`](Client::push), [`end_input`](Client::end_input), [`outgoing`](Client::outgoing),
//!   [`end_output`](Client::end_output).
//! - **Calls**: [`call`](Client::call) and [`start`](Client::start) make one, [`take`](Client::take) gives its end.
//! - **What comes**: [`next_event`](Client::next_event) lends each thing once, and sorts notifications into the
//!   queues of those who [`subscribe`](Client::subscribe)d.
//! - **Time**: [`expire`](Client::expire), [`next_deadline`](Client::next_deadline).
//!
//! ```
//! use core::time::Duration;
//! use dsh_wire::client::{Client, Limits};
//! use dsh_wire::peer::{Event, Peer};
//! use dsh_wire::wire::{Initialize, InitializeParams};
//!
//! let mut client = Client::with_seed(1);
//! let params = InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash");
//! let call = client.call::<Initialize>(&params, &Limits::until(Duration::from_secs(10)))?;
//!
//! // A runtime of one line.
//! let mut runtime: Peer<()> = Peer::with_seed(2);
//! runtime.push(client.outgoing().bytes());
//! let Some(Event::Request { reply, .. }) = runtime.next_event() else { panic!() };
//! runtime.answer(reply, &serde_json::json!({"serverInfo": {"name": "tiny"}}))?;
//!
//! client.push(runtime.outgoing().bytes());
//! while client.next_event().is_some() {}
//! let result = client.take(&call).expect("the answer has come")?;
//! assert_eq!(result.server_info.unwrap().name.unwrap().to_string(), "tiny");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod event;
mod failure;
#[cfg(feature = "std")]
mod guard;
#[cfg(not(feature = "std"))]
#[path = "guard_no_std.rs"]
mod guard;
mod requests;
mod run;
mod session_tree;
mod subscription;
mod teardown;
#[cfg(test)]
mod tests;

use alloc::string::String;
use core::marker::PhantomData;
use core::time::Duration;

use serde::Serialize;

use calls::Ends;
pub use calls::{Call, Limits};
use event::LastDropped;
pub use event::{Counters, Event};
pub use failure::Failure;
use requests::Requests;
pub use requests::RuntimeRequest;
pub use run::{Observed, Run, text_delta};
pub use session_tree::SessionTree;
pub use subscription::{Delivery, Filter, Policy, SubscriptionId};
pub use teardown::{Graces, Rung, RungEnd, RungReport, Step, Teardown};

use crate::json::{Json, JsonStr, JsonString};
use crate::peer::{self, AnswerError, CallId, Dropped, Mark, Output, Peer, Reply, SendError};
use crate::wire::{Decode, Method, Notification};
use subscription::Subscriptions;

/// The client's end of one connection.
#[derive(Debug)]
pub struct Client {
    /// The tag of a call is its deadline.
    peer: Peer<Option<Duration>>,
    ends: Ends,
    subscriptions: Subscriptions,
    tree: SessionTree,
    requests: Requests,
    reports_status: bool,
    counters: Counters,
    last_dropped: LastDropped,
}

impl Client {
    /// A client whose ids start from random bits that std provides.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn new() -> Self {
        Self::with_peer_of(Peer::new())
    }

    /// As [`new`](Self::new), with another limit on the length of a line, in bytes.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn with_limit(line_limit: usize) -> Self {
        Self::with_peer_of(Peer::with_limit(line_limit))
    }

    /// A client whose ids are chosen by `seed`. Two clients of one seed take each other's calls and subscriptions for
    /// their own.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_peer_of(Peer::with_seed(seed))
    }

    /// As [`with_seed`](Self::with_seed), with another limit on the length of a line, in bytes.
    #[must_use]
    pub fn with_seed_and_limit(seed: u64, line_limit: usize) -> Self {
        Self::with_peer_of(Peer::with_seed_and_limit(seed, line_limit))
    }

    fn with_peer_of(peer: Peer<Option<Duration>>) -> Self {
        Self {
            ends: Ends::default(),
            subscriptions: Subscriptions::new(peer.connection()),
            peer,
            tree: SessionTree::new(),
            requests: Requests::default(),
            reports_status: false,
            counters: Counters::default(),
            last_dropped: LastDropped::default(),
        }
    }

    /// Takes bytes of the runtime.
    pub fn push(&mut self, bytes: &[u8]) {
        self.peer.push(bytes);
    }

    /// Declares that no more bytes will come. Calls that wait end once the lines received before have been taken.
    pub fn end_input(&mut self) {
        self.peer.end_input();
    }

    /// The bytes that wait to go out.
    pub fn outgoing(&mut self) -> Output<'_> {
        self.peer.outgoing()
    }

    /// Declares that no more bytes can go out.
    pub fn end_output(&mut self) {
        self.peer.end_output();
    }

    /// The connection below, for a pump.
    #[cfg(feature = "stdio")]
    pub(crate) fn peer_mut(&mut self) -> &mut Peer<Option<Duration>> {
        &mut self.peer
    }

    /// Makes a call of a known method.
    ///
    /// # Errors
    /// As [`Peer::request`].
    pub fn call<M: Method>(&mut self, params: &M::Params, limits: &Limits<'_>) -> Result<Call<M::Result>, SendError> {
        self.start(M::NAME, params, limits)
    }

    /// Makes a call of any method. `R` is what the result is read as.
    ///
    /// # Errors
    /// As [`Peer::request`].
    pub fn start<R: for<'a> Decode<'a>>(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        limits: &Limits<'_>,
    ) -> Result<Call<R>, SendError> {
        let id = self.peer.request(method, params, limits.deadline, limits.token)?;
        self.ends.expect(id, limits.deadline);
        self.counters.most_pending = self.counters.most_pending.max(self.peer.pending());
        Ok(Call { id, result: PhantomData })
    }

    /// The end of a call, once; `None` while it waits. [`Failure::OtherClient`] at once for the call of another client.
    pub fn take<R: for<'a> Decode<'a>>(&mut self, call: &Call<R>) -> Option<Result<R, Failure>> {
        if call.id.connection() != self.peer.connection() {
            return Some(Err(Failure::OtherClient));
        }
        let end = self.ends.take(call.id)?;
        Some(end.and_then(|result| {
            R::decode(result.as_json()).map_err(|error| Failure::Unexpected { error, came: result })
        }))
    }

    /// Whether the end of a call waits to be taken. Never that of another client's.
    #[must_use]
    pub fn has_ended(&self, call: CallId) -> bool {
        self.ends.has(call)
    }

    /// Gives up a call, whether or not it has ended. Nothing of it is kept; an answer that comes all the same is
    /// [`Event::Unmatched`]. The call of another client is left alone.
    pub fn abandon(&mut self, call: CallId) {
        if let Some(deadline) = self.peer.abort(call) {
            self.ends.forget_deadline(call, deadline);
        }
        self.ends.take(call);
    }

    /// Tells something.
    ///
    /// # Errors
    /// As [`Peer::notify`].
    pub fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), SendError> {
        self.peer.notify(method, params)
    }

    /// The point in the output after everything that has been sent so far.
    #[must_use]
    pub fn sent_mark(&self) -> Mark {
        self.peer.sent_mark()
    }

    /// Whether everything before the mark has left.
    #[must_use]
    pub fn is_flushed(&self, mark: Mark) -> bool {
        self.peer.is_flushed(mark)
    }

    /// Ends the calls whose deadline has come, as [`Failure::TimedOut`], which [`next_event`](Self::next_event) then
    /// tells.
    pub fn expire(&mut self, now: Duration) {
        while let Some((deadline, call)) = self.ends.first_due().filter(|(deadline, _)| *deadline <= now) {
            match self.peer.abort(call) {
                Some(_) => self.ends.give_up(call, Some(deadline), Failure::TimedOut),
                // Its token came first.
                None => self.ends.forget_deadline(call, Some(deadline)),
            }
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.ends.first_due().map(|(deadline, _)| deadline)
    }

    /// Looks at the tokens of the calls that wait; those that are set end their calls as [`Failure::Aborted`], which
    /// [`next_event`](Self::next_event) then tells.
    pub fn poll_aborts(&mut self) {
        self.peer.poll_aborts();
        while let Some((call, deadline, reason)) = self.peer.next_aborted() {
            self.ends.give_up(call, deadline, Failure::Aborted(reason));
        }
    }

    /// Whether a call waits that has a token.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.peer.has_tokens()
    }

    /// The next thing that came. It has had its effect on the client already; to look at it is all that is left.
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        if let Some(call) = self.ends.next_given_up() {
            return Some(Event::Ended(call));
        }
        let (incoming, mut outgoing) = self.peer.split();
        let counters = &mut self.counters;
        Some(match incoming.into_next_event()? {
            peer::Event::Notification { method, params } => {
                counters.notifications += 1;
                let notification = Notification::read(method, params, || counters.malformed += 1);
                self.reports_status |= notification.status().is_some();
                self.tree.note(&notification);
                if !self.subscriptions.is_empty() {
                    // A copy, so that what is lent has no address yet and is built in its last place.
                    let seen = notification;
                    self.subscriptions.offer(&seen, &self.tree);
                }
                Event::Notification { notification, tree: &self.tree }
            }
            peer::Event::Response { call, tag, outcome } => {
                counters.responses += 1;
                self.ends.answer(call, tag, outcome);
                Event::Ended(call)
            }
            peer::Event::Aborted { call, tag, reason } => {
                self.ends.fail(call, tag, Failure::Aborted(reason));
                Event::Ended(call)
            }
            peer::Event::Lost { call, tag, why } => {
                self.ends.fail(call, tag, Failure::Lost(why));
                Event::Ended(call)
            }
            peer::Event::Request { method, params, reply } if self.requests.wanted => {
                counters.requests += 1;
                self.requests.keep(method, params, reply);
                Event::Request
            }
            peer::Event::Request { method, reply, .. } => {
                counters.requests += 1;
                counters.refused += 1;
                // It fails only where the output has ended, and then nobody waits for the answer.
                let _ = outgoing.refuse_method(reply, method);
                Event::Refused { method }
            }
            peer::Event::RequestTooLong { method, reply, limit } => {
                counters.requests += 1;
                counters.refused += 1;
                let _ = outgoing.refuse_too_long(reply, limit);
                Event::Refused { method }
            }
            peer::Event::Unmatched { id, outcome } => {
                counters.unmatched += 1;
                Event::Unmatched { id, outcome }
            }
            peer::Event::Dropped(dropped) => {
                counters.count_dropped(dropped.why);
                self.last_dropped.keep(&dropped);
                Event::Dropped(dropped)
            }
        })
    }

    /// Whether requests of the runtime are kept for [`next_request`](Self::next_request). Otherwise, and at first,
    /// they are refused with -32601.
    pub fn take_requests(&mut self, take: bool) {
        self.requests.wanted = take;
    }

    /// The oldest request of the runtime that has not been taken.
    pub fn next_request(&mut self) -> Option<RuntimeRequest> {
        self.requests.next()
    }

    /// Whether a request of the runtime waits to be taken.
    #[must_use]
    pub fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Answers a request of the runtime with a result.
    ///
    /// # Errors
    /// As [`Peer::answer`].
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.peer.answer(reply, result)
    }

    /// Answers a request of the runtime with an error.
    ///
    /// # Errors
    /// As [`Peer::refuse`].
    pub fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), AnswerError> {
        self.peer.refuse(reply, code, message, data)
    }

    /// Queues every notification from now on that passes the filter. `name` is for error texts.
    pub fn subscribe(&mut self, name: impl Into<String>, filter: Filter, policy: Policy) -> SubscriptionId {
        self.subscriptions.insert(name.into(), filter, policy)
    }

    /// Ends a subscription and drops what it holds; says whether there was one.
    pub fn unsubscribe(&mut self, subscription: SubscriptionId) -> bool {
        self.subscriptions.remove(subscription)
    }

    /// Ends all subscriptions.
    pub fn unsubscribe_all(&mut self) {
        self.subscriptions.clear();
    }

    /// How many subscriptions there are.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }

    /// The next delivery to a subscription that waits in its queue.
    pub fn next_delivery(&mut self, subscription: SubscriptionId) -> Option<Delivery> {
        self.subscriptions.pop(subscription)
    }

    /// Whether a delivery to a subscription waits in its queue.
    #[must_use]
    pub fn has_delivery(&self, subscription: SubscriptionId) -> bool {
        self.subscriptions.has_delivery(subscription)
    }

    /// Whether the subscription was made here.
    #[cfg(feature = "stdio")]
    pub(crate) fn has_made(&self, subscription: SubscriptionId) -> bool {
        subscription.connection() == self.peer.connection()
    }

    /// Whether a subscription gets nothing more though the connection lives: it was ended, its predicate panicked, or
    /// it is of another client.
    #[must_use]
    pub fn is_deaf(&self, subscription: SubscriptionId) -> bool {
        self.subscriptions.has_failed(subscription)
    }

    /// The most notifications that ever waited in the queue of a subscription.
    #[must_use]
    pub fn high_water(&self, subscription: SubscriptionId) -> Option<usize> {
        self.subscriptions.high_water(subscription)
    }

    /// A queue that nothing may be dropped from and that holds more than `limit` bytes, if there is one: a name and how
    /// much it holds. The requests of the runtime come first, then our answers to them, which wait while the runtime
    /// does not read, then the fullest subscription.
    #[must_use]
    pub fn backlog_over(&self, limit: usize) -> Option<(&str, usize)> {
        let of_requests = [
            ("requests of the runtime", self.requests.bytes()),
            ("answers to the runtime", self.peer.answers_waiting()),
        ];
        let over = of_requests.into_iter().find(|(_, bytes)| *bytes > limit);
        over.or_else(|| self.subscriptions.fullest_over(limit))
    }

    /// The lineage of all sessions so far.
    #[must_use]
    pub fn session_tree(&self) -> &SessionTree {
        &self.tree
    }

    /// A run on a session, to be made before its prompt is sent.
    #[must_use]
    pub fn run(&self, session: impl Into<JsonString>) -> Run {
        Run::new(session, self.reports_status)
    }

    /// Calls that wait for their end.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.peer.pending()
    }

    /// What has come so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            calls_failed: self.ends.failed(),
            most_queued: self.subscriptions.most_held(),
            most_requested: self.requests.most(),
            ..self.counters
        }
    }

    /// The last line that was no frame, for the report of a runtime that writes such.
    #[must_use]
    pub fn last_dropped(&self) -> Option<Dropped<'_>> {
        self.last_dropped.lend()
    }
}

#[cfg(feature = "std")]
impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads a notification, whatever its params are: if not as they must be, as one of an unknown method.
pub(crate) fn read<'a>(method: JsonStr<'a>, params: Json<'a>) -> Notification<'a> {
    Notification::read(method, params, || {})
}
