//! The SDK server as a state machine: the rules of the protocol, without the agents.
//!
//! Bytes go into a [`Server`], and what its host has to do comes out as [`Task`]s, in wire order: look at a route, open
//! a session, take a prompt, release a session, hand on the client's answer to a request of the host's own. The host does each when and where it likes and reports the outcome;
//! what happens in a session goes the same way ([`session_event`](Server::session_event),
//! [`set_running`](Server::set_running), …). The server answers, notifies, and owns every rule in between:
//!
//! * Nothing but `initialize` before a good `initialize`; the last good one is in force for sessions opened after it.
//! * A session is created by the first request that names it, once, however many requests wait for it. A creation that
//!   fails fails them all, and the next request tries again.
//! * `session/wait` ends when the session is idle and its sub-agents have finished.
//! * `session.status` alternates; events are numbered without a gap, and their time never goes back.
//! * `shutdown` releases every session, then answers; once it has begun, no notification is sent.
//!
//! This is the layer for those who bring their own threads and descriptors. A runtime on stdin and stdout is less work
//! with `stdio::serve`, and least with `stdio::turns`, whose documentation is a guide to writing one.
//!
//! The texts of errors are those of the official runtime wherever it has one for a rule of the protocol. Where it only
//! stumbles in JavaScript, the text is ours. The code is always -32603.

mod refusal;
mod request;
mod session;
mod state;

use alloc::string::ToString;
use core::fmt;

use serde::Serialize;

pub use refusal::Refusal;
pub use session::{Finished, NewEvent, Stamp};
pub use state::{Counters, Phase};

use crate::frame::{INTERNAL_ERROR, RpcError};
use crate::json::{JsonBuf, JsonString};
use crate::peer::{CallId, LostReason, Outgoing, Output, Peer, Reply, SendError};
use crate::wire::{InitializeParams, WorkingDirectoryResult};
use state::State;

/// The serving end of one connection.
///
/// Three kinds of methods. *Bytes*: [`push`](Self::push), [`end_input`](Self::end_input),
/// [`outgoing`](Self::outgoing). *Work*: [`next_task`](Self::next_task) and the outcomes, [`routed`](Self::routed),
/// [`opened`](Self::opened), [`prompted`](Self::prompted), [`directory`](Self::directory),
/// [`released`](Self::released). *News* of a session: [`session_event`](Self::session_event) and its neighbours.
/// Any order is correct; after bytes and after outcomes there may be new tasks and new output.
///
/// ```
/// use dsh_wire::server::{NewEvent, Server, Task};
///
/// let mut server = Server::with_seed(7);
/// server.push(br#"{"id":1,"method":"initialize","params":{"cwd":"/","provider":"p","model":"m"}}"#);
/// server.push(b"\n");
/// let Some(Task::Route { reply, .. }) = server.next_task() else { panic!() };
/// server.routed(reply, Ok(()));
///
/// server.push(br#"{"id":2,"method":"session/prompt","params":{"sessionId":"s","contentBlocks":[]}}"#);
/// server.push(b"\n");
/// let Some(Task::Open { session, .. }) = server.next_task() else { panic!() };
/// server.opened(&session, Ok(()));
/// let Some(Task::Prompt { session, reply, .. }) = server.next_task() else { panic!() };
/// server.session_event(&session, &NewEvent::new("greeting", &"hello"), 1_700_000_000_000)?;
/// server.prompted(reply, Ok("message 1".into()));
///
/// let lines = String::from_utf8(server.outgoing().bytes().to_vec())?;
/// assert_eq!(lines.lines().last(), Some(r#"{"jsonrpc":"2.0","id":2,"result":{"messageId":"message 1"}}"#));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    peer: Peer<()>,
    state: State,
}

/// Something that the host has to do, or to have done. Each one waits for the method named in it.
#[derive(Debug)]
pub enum Task {
    /// Say whether sessions can be opened with these params: [`Server::routed`]. Provider and model may be anything;
    /// what is no string has been made one.
    Route {
        /// The params.
        route: InitializeParams,
        /// To be handed in with the answer.
        reply: RouteReply,
    },
    /// Open a session: [`Server::opened`].
    Open {
        /// Its id; any string.
        session: JsonString,
        /// Whether it has to be new, or stored.
        how: Opening,
        /// The route in force.
        route: InitializeParams,
    },
    /// Take a message into the inbox of an open session: [`Server::prompted`].
    Prompt {
        /// The session.
        session: JsonString,
        /// An array, without `null` in it; otherwise as it came.
        content_blocks: JsonBuf,
        /// To be handed in with the answer.
        reply: PromptReply,
    },
    /// Say where an open session works, after a change if there is one: [`Server::directory`].
    WorkingDirectory {
        /// The session.
        session: JsonString,
        /// Where to go; not empty; relative to where the session is.
        change: Option<JsonString>,
        /// To be handed in with the answer.
        reply: DirectoryReply,
    },
    /// End an open session, whatever it does: [`Server::released`].
    Release {
        /// The session.
        session: JsonString,
    },
    /// Hand the answer to whoever made a [request](Server::request). Nothing has to be reported.
    Answered {
        /// Which request.
        call: CallId,
        /// The result.
        outcome: Result<JsonBuf, Unanswered>,
    },
}

/// Why a request to the client has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unanswered {
    /// The client answered with an error. The official clients do so with code -32601 unless they were told otherwise.
    Refused(RpcError),
    /// No answer can come any more.
    Lost(LostReason),
    /// The sessions are being released, or nothing can be sent any more.
    Closing,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the client answered with an error"),
            Self::Lost(why) => why.fmt(f),
            Self::Closing => f.write_str("the connection is ending"),
        }
    }
}

impl core::error::Error for Unanswered {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Lost(_) | Self::Closing => None,
        }
    }
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// It must not exist yet ([`Refusal::session_exists`]).
    Create,
    /// It must be stored ([`Refusal::session_not_found`]); nothing is sent about it.
    Resume,
}

/// The right to answer one [`Task::Route`].
#[derive(Debug)]
#[must_use = "a request waits for its answer"]
pub struct RouteReply(Reply, InitializeParams);

/// The right to answer one [`Task::Prompt`].
#[derive(Debug)]
#[must_use = "a request waits for its answer"]
pub struct PromptReply(Reply, JsonString);

/// The right to answer one [`Task::WorkingDirectory`].
#[derive(Debug)]
#[must_use = "a request waits for its answer"]
pub struct DirectoryReply(Reply);

impl Server {
    /// A server whose own ids start from random bits that std provides.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn new() -> Self {
        Self::with_peer(Peer::new())
    }

    /// A server whose own ids are chosen by `seed`, as in [`Peer::with_seed`].
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_peer(Peer::with_seed(seed))
    }

    /// A server on a connection that has been made with settings of its own, and not been used.
    #[must_use]
    pub fn with_peer(peer: Peer<()>) -> Self {
        Self { peer, state: State::default() }
    }

    /// Whether a sub-agent that stopped for `max-tokens` counts as `ok`. It does unless this is set to `false`.
    pub fn max_tokens_as_success(&mut self, yes: bool) {
        self.state.max_tokens_as_success = yes;
    }

    /// Takes bytes that came from the client.
    pub fn push(&mut self, bytes: &[u8]) {
        self.peer.push(bytes);
    }

    /// Reads once from a stream, at most 64 KiB; returns how much came. 0 is its end, to be told by
    /// [`end_input`](Self::end_input).
    ///
    /// # Errors
    /// Those of the read.
    #[cfg(feature = "std")]
    pub fn read_from(&mut self, source: &mut impl std::io::Read) -> std::io::Result<usize> {
        self.peer.read_from(source)
    }

    /// The connection, for the loop that moves bytes between it and descriptors.
    #[cfg(feature = "serve")]
    pub(crate) fn peer_mut(&mut self) -> &mut Peer<()> {
        &mut self.peer
    }

    /// Declares that no more bytes will come. What was accepted before is finished: when the last answer that is owed
    /// has been given, the sessions are released.
    pub fn end_input(&mut self) {
        self.peer.end_input();
        self.read();
    }

    /// Declares that no more bytes can go out. Drops those that wait; everything goes on without being heard. Requests
    /// to the client end.
    pub fn end_output(&mut self) {
        self.peer.end_output();
        self.end_calls();
    }

    /// Releases the sessions now, as `shutdown` does, though nobody has asked for it. Has no effect once they are
    /// being released.
    pub fn close(&mut self) {
        self.state.close(&mut self.peer.split().1);
        self.end_calls();
        self.settle();
    }

    /// The bytes that wait to go out.
    pub fn outgoing(&mut self) -> Output<'_> {
        self.peer.outgoing()
    }

    /// How many bytes wait to go out.
    #[must_use]
    pub fn backlog(&mut self) -> usize {
        self.peer.outgoing().len()
    }

    /// How far the connection is on its way to its end.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// Requests that have not been answered.
    #[must_use]
    pub fn replies_owed(&self) -> u64 {
        self.peer.replies_owed()
    }

    /// What came that is not answered.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.state.counters
    }

    /// The next thing to do. Lines received are all read first, so that each request is judged by what the requests
    /// before it have set off, not by how fast the host is.
    pub fn next_task(&mut self) -> Option<Task> {
        self.read();
        self.state.tasks.pop_front()
    }

    /// The outcome of [`Task::Route`]. The route comes into force.
    pub fn routed(&mut self, reply: RouteReply, outcome: Result<(), Refusal>) {
        let RouteReply(reply, route) = reply;
        self.state.routed(&mut self.peer.split().1, reply, route, outcome);
        self.settle();
    }

    /// The outcome of [`Task::Open`]. The requests that waited for it become tasks, or fail with it. Has no effect
    /// for a session that is not being opened.
    pub fn opened(&mut self, session: &JsonString, outcome: Result<(), Refusal>) {
        self.state.opened(&mut self.peer.split().1, session, outcome);
        self.settle();
    }

    /// The outcome of [`Task::Prompt`]: the id of the message. Events that the prompt has caused so far have been told
    /// before; the session's next ones come after the answer.
    pub fn prompted(&mut self, reply: PromptReply, outcome: Result<JsonString, Refusal>) {
        let PromptReply(reply, session) = reply;
        self.state.prompted(&mut self.peer.split().1, reply, &session, outcome);
        self.settle();
    }

    /// The outcome of [`Task::WorkingDirectory`]: the absolute path where the session works now.
    pub fn directory(&mut self, reply: DirectoryReply, outcome: Result<JsonString, Refusal>) {
        answer(&mut self.peer.split().1, reply.0, outcome.map(|cwd| WorkingDirectoryResult { cwd }));
        self.settle();
    }

    /// The outcome of [`Task::Release`]. After the last one `shutdown` is answered. Has no effect for a session that
    /// is not being released.
    pub fn released(&mut self, session: &JsonString, outcome: Result<(), Refusal>) {
        self.state.released(&mut self.peer.split().1, session, outcome);
    }

    /// Tells an event of a session: numbers it, stamps it with `time` (Unix time in milliseconds), and sends it unless
    /// shutdown has begun. Sessions that nobody opened, such as those of sub-agents, may have events too.
    ///
    /// # Errors
    /// [`SendError::Encode`] where the data has no JSON form; the number is not used up then.
    pub fn session_event<D: Serialize + ?Sized>(
        &mut self,
        session: &JsonString,
        event: &NewEvent<'_, D>,
        time: u64,
    ) -> Result<Stamp, SendError> {
        self.state.session_event(&mut self.peer.split().1, session, event, time, |line| line.value(event.data))
    }

    /// The same with data that has been written as JSON.
    #[cfg(feature = "serve")]
    pub(crate) fn written_event(
        &mut self,
        session: &JsonString,
        event: &NewEvent<'_, [u8]>,
        time: u64,
    ) -> Result<Stamp, SendError> {
        self.state.session_event(&mut self.peer.split().1, session, event, time, |line| {
            line.raw(event.data);
            Ok(())
        })
    }

    /// The next event of the session gets this number, unless it has had higher ones: for stored sessions, and for
    /// events of which the client is not told.
    pub fn number_from(&mut self, session: &JsonString, seq: u64) {
        self.state.session(session).number_from(seq);
    }

    /// Tells that a session has begun or ceased to run. To say the same twice does nothing.
    pub fn set_running(&mut self, session: &JsonString, running: bool) {
        self.state.set_running(&mut self.peer.split().1, session, running);
    }

    /// Tells that a session has a new sub-agent with a session of its own.
    pub fn subagent_started(&mut self, parent: &JsonString, child: &JsonString) {
        self.state.subagent_started(&mut self.peer.split().1, parent, child);
    }

    /// Tells that a sub-agent has ended. Only local ones are reported: it must have been started here.
    pub fn subagent_finished(&mut self, parent: &JsonString, child: &JsonString, end: &Finished<'_>) {
        self.state.subagent_finished(&mut self.peer.split().1, parent, child, end);
    }

    /// The number that the next event of the session will have.
    #[must_use]
    pub fn next_seq(&self, session: &JsonString) -> u64 {
        self.state.next_seq(session)
    }

    /// Makes a request to the client, such as to approve what an agent is about to do; the protocol reserves this
    /// direction, and knows no method in it yet. [`Task::Answered`] brings its end, once, unless it is
    /// [given up](Self::give_up) before.
    ///
    /// ```
    /// use dsh_wire::server::{Server, Task};
    ///
    /// let mut server = Server::with_seed(7);
    /// let call = server.request("approval/ask", &["rm -r build"])?;
    /// let sent = String::from_utf8(server.outgoing().bytes().to_vec())?;
    /// let id = sent.split('"').nth(7).unwrap();
    /// server.push(format!("{{\"id\":\"{id}\",\"result\":\"once\"}}\n").as_bytes());
    /// let Some(Task::Answered { call: answered, outcome: Ok(result) }) = server.next_task() else { panic!() };
    /// assert_eq!(call, answered);
    /// assert_eq!(result.as_json().get(), "\"once\"");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError::Closed`] once the input or the output has ended or the sessions are being released,
    /// [`SendError::Encode`].
    pub fn request(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<CallId, SendError> {
        if self.state.is_closing() {
            return Err(SendError::Closed);
        }
        let call = self.peer.request(method, params, (), None)?;
        self.state.calls.insert(call);
        Ok(call)
    }

    /// Gives up a request to the client, because its time is up or nobody wants the answer any more. An answer that
    /// comes all the same is counted and dropped. Says whether the request was still waiting.
    pub fn give_up(&mut self, call: CallId) -> bool {
        self.peer.abort(call);
        self.state.calls.remove(&call)
    }

    fn read(&mut self) {
        let (mut incoming, mut outgoing) = self.peer.split();
        while let Some(event) = incoming.next_event() {
            self.state.event(&mut outgoing, event);
        }
        if self.peer.input_ended() {
            self.state.input_ended(&mut self.peer.split().1);
            self.settle();
        }
        if self.state.is_closing() {
            self.end_calls();
        }
    }

    /// Ends all requests to the client without an answer.
    fn end_calls(&mut self) {
        for call in core::mem::take(&mut self.state.calls) {
            self.peer.abort(call);
            self.state.tasks.push_back(Task::Answered { call, outcome: Err(Unanswered::Closing) });
        }
    }

    /// Goes on to the release where that has only waited for the last answer.
    fn settle(&mut self) {
        if self.state.is_draining() && self.peer.replies_owed() == 0 {
            self.close();
        }
    }
}

#[cfg(feature = "std")]
impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

/// Answers a request, one way or the other.
fn answer(out: &mut Outgoing<'_>, reply: Reply, outcome: Result<impl Serialize, Refusal>) {
    let sent = match outcome {
        Ok(result) => out.answer(reply, &result),
        Err(refusal) => return refuse(out, reply, &refusal),
    };
    // Where the output has ended there is nobody to answer.
    if let Err(error) = sent
        && let SendError::Encode(why) = error.why
    {
        refuse(out, error.reply, &Refusal::new(why.to_string()));
    }
}

fn refuse(out: &mut Outgoing<'_>, reply: Reply, refusal: &Refusal) {
    // A message always has a JSON form, and where the output has ended there is nobody to answer.
    let _ = out.refuse(reply, INTERNAL_ERROR, refusal.message(), None::<&()>);
}
