//! Runtimes that take turns: what a small agent writes is an answer; the events around it, in the order in which
//! clients of the protocol expect them, are told for it.
//!
//! # Write a runtime
//!
//! From the least to write to the most:
//!
//! 1. [`Turns::from_fn`]: a closure that answers. It is called once a step and returns an [`Answer`]: a text, thinking,
//!    tool calls, or an error.
//! 2. [`TurnAgent`]: a type that answers, with a state of its own for each session, and runs the tools that its answers
//!    ask for. [`Turns::each`] makes one a session.
//! 3. [`TurnHost`]: makes the agents, refuses routes and prompts, resumes stored sessions, keeps logs.
//! 4. [`AgentHost`]: everything by hand, event by event.
//!
//! Each of them goes to [`serve_stdio`](super::serve_stdio), or to [`serve`](super::serve()) with descriptors of your own.
//!
//! ```no_run
//! use dsh_wire::stdio::turns::Turns;
//! use dsh_wire::stdio::{ServeOptions, serve_stdio};
//!
//! let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
//! let served = serve_stdio(parrot, ServeOptions::default())?;
//! std::process::exit(served.exit_code().into());
//! # #[allow(unreachable_code)]
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Try it
//!
//! Any client of the SDK starts it like the official runtime, as `PATH --profile NAME`; arguments are yours to read or to
//! ignore. With the command of this crate:
//!
//! ```console
//! $ dsh-wire run "hello" -- target/debug/my-runtime
//! You said: hello
//! ```
//!
//! stdout is the protocol's while it serves: what `println!` or a child writes there goes to stderr, and stderr is free
//! for what people should read. In a test of your own the two ends of two pipes do:
//!
//! ```
//! use std::io::{Read, Write, pipe};
//! use dsh_wire::stdio::turns::Turns;
//! use dsh_wire::stdio::{ServeOptions, serve};
//!
//! let (input, mut requests) = pipe()?;
//! let (mut answers, output) = pipe()?;
//! let mut options = ServeOptions::default();
//! options.deterministic = true; // ids and times are counted
//! let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
//! let server = std::thread::spawn(move || serve(parrot, input.into(), output.into(), options));
//!
//! writeln!(requests, r#"{{"id":1,"method":"initialize","params":{{"cwd":"/","provider":"p","model":"m"}}}}"#)?;
//! let mut first = [0; 9];
//! answers.read_exact(&mut first)?; // a prompt before the answer would be refused
//! let hello = r#"{"sessionId":"s","contentBlocks":[{"type":"text","text":"hello"}]}"#;
//! writeln!(requests, r#"{{"id":2,"method":"session/prompt","params":{hello}}}"#)?;
//! writeln!(requests, r#"{{"id":3,"method":"session/working-directory/get","params":{{"sessionId":"s"}}}}"#)?;
//! drop(requests);
//! let mut text = String::new();
//! answers.read_to_string(&mut text)?;
//! assert!(text.contains(r#""id":3,"result":{"cwd":"/"}"#));
//! assert_eq!(server.join().unwrap()?.exit_code(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A client that is gone, SIGTERM, `shutdown`: `serve` returns, and says why ([`Served`](super::Served)); the process ends
//! when `main` does. After the end of its input a runtime answers what was asked and ends: a turn that still runs is not
//! waited for, so a client says `session/wait` first and closes the input when that is answered.
//!
//! # What is told
//!
//! A prompt goes into the inbox of its session and is answered at once, with the id of its message; it becomes a turn
//! when the turns before it are over. Clients rely on this order:
//!
//! ```text
//! agent/inbox/spliced   the receipt: the message, with its id
//! session.status        running, unless it runs already
//! turn/start
//! agent/inbox/spliced   the message leaves the inbox
//!                       (the prompt is answered)
//! step/start
//! user/message          the prompt, and notes
//! assistant/message     what the agent answers; assistant/attempt if it fails
//! tool/call, tool/result
//! step/end              and the next step, while there are tools or notes
//! turn/end
//! session.status        idle, unless another prompt waits
//! ```
//!
//! Turns run on threads of their own, those of different sessions at the same time. An agent that waits should wait with
//! [`Step::pause`], which ends when the session is released; one that computes for long should ask
//! [`Step::is_released`] now and then. A panic ends the turn with an error, and nothing else.
//!
//! # An agent with tools
//!
//! ```
//! use dsh_wire::stdio::turns::{Answer, Step, ToolError, ToolOutput, ToolUse, TurnAgent, TurnError, Turns};
//!
//! #[derive(Default)]
//! struct Adder(u64);
//!
//! impl TurnAgent for Adder {
//!     fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
//!         if step.number() > 1 {
//!             return Ok(format!("The sum is {}.", self.0).into());
//!         }
//!         let numbers = step.prompt_text().to_string();
//!         let calls = numbers.split_whitespace().map(|n| ToolUse::new("add", format!("{{\"n\":{n}}}")));
//!         Ok(calls.fold(Answer::new().thinking("One by one."), Answer::tool))
//!     }
//!
//!     fn use_tool(&mut self, _: &mut Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
//!         let n = call.argument("n").and_then(|n| n.as_json().as_u64()).ok_or_else(ToolError::bad_arguments)?;
//!         self.0 += n;
//!         Ok(format!("{}", self.0).into())
//!     }
//! }
//!
//! let host = Turns::each(Adder::default);
//! # let _ = host;
//! ```

mod answer;
mod directory;
mod event;
mod ids;
mod message;
mod run;
mod session;
mod step;
mod subagent;
mod tool;

use std::boxed::Box;
use std::fmt;
use std::format;
use std::sync::Arc;

pub use answer::{Answer, Failure, TurnError};
pub use message::Message;
pub use session::TurnSession;
pub use step::Step;
pub use subagent::SubAgent;
pub use tool::{ToolError, ToolOutput, ToolUse};

use super::host::{AgentHost, Sink};
use super::lanes::Lanes;
use crate::json::{Json, JsonBuf, JsonString};
use crate::server::{Opening, Refusal};
use crate::wire::InitializeParams;
use session::Pool;

/// Answers the prompts of one session.
pub trait TurnAgent: Send + 'static {
    /// Called when a step has begun, before its messages are told: may tell events of its own, and
    /// [add messages](Step::add_message).
    fn begin_step(&mut self, step: &mut Step<'_>) {
        let _ = step;
    }

    /// What the agent answers in this step. May tell events of its own before it returns.
    ///
    /// # Errors
    /// [`TurnError::Failed`] ends the turn with an error; the session goes on. [`TurnError::Released`] where a wait ended
    /// because the session is being released.
    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError>;

    /// Runs a tool that the last answer asked for. There is none, unless it is written.
    ///
    /// # Errors
    /// What the agent gets to read instead of a result.
    fn use_tool(&mut self, step: &mut Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        let _ = step;
        Err(ToolError::unknown(call))
    }
}

/// Makes the agents of a runtime that takes turns.
pub trait TurnHost: Send + Sync + 'static {
    /// As [`AgentHost::route`].
    ///
    /// # Errors
    /// As there.
    fn route(&self, route: &InitializeParams) -> Result<(), Refusal> {
        let _ = route;
        Ok(())
    }

    /// Opens a session. The sink names it.
    ///
    /// # Errors
    /// As [`AgentHost::open`].
    fn open(&self, how: Opening, route: &InitializeParams, sink: &Sink) -> Result<NewSession, Refusal>;

    /// Looks at the content blocks of a prompt before the session takes it: what is to be taken instead, such as a
    /// reference to an image that has been stored, or `None` for the blocks as they are. Takes everything, unless it is
    /// written.
    ///
    /// # Errors
    /// What the client is told; the session does not see the prompt.
    fn take_in(&self, content_blocks: Json<'_>) -> Result<Option<JsonBuf>, Refusal> {
        let _ = content_blocks;
        Ok(None)
    }
}

/// `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Where the events of a session are kept, each one as its JSON text. If it panics, it is not called again, and the turn
/// that runs ends with an error; the session goes on.
pub type Keep = Box<dyn FnMut(&str) + Send>;

/// A session that a [`TurnHost`] has opened.
#[non_exhaustive]
pub struct NewSession {
    /// Who answers.
    pub agent: Box<dyn TurnAgent>,
    /// Turns that it had before, where it goes on. Above 2^53 − 1, more than clients can count, the session is refused.
    pub turns: u64,
    /// Where it works; where the route says, if `None`.
    pub cwd: Option<JsonString>,
    /// Where its events are kept; nowhere, if `None`.
    pub keep: Option<Keep>,
}

impl NewSession {
    /// A session without a past.
    #[must_use]
    pub fn new(agent: impl TurnAgent) -> Self {
        Self { agent: Box::new(agent), turns: 0, cwd: None, keep: None }
    }
}

impl fmt::Debug for NewSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSession").field("turns", &self.turns).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// The [`AgentHost`] that takes turns: see the [module](self).
pub struct Turns {
    host: Arc<dyn TurnHost>,
    pool: Pool,
}

impl Turns {
    /// The sessions of this host.
    #[must_use]
    pub fn new(host: impl TurnHost) -> Self {
        Self { host: Arc::new(host), pool: Arc::new(Lanes::new()) }
    }

    /// All sessions answer with this function. Nothing is stored: a session cannot be resumed.
    ///
    /// ```
    /// use dsh_wire::stdio::turns::Turns;
    ///
    /// let host = Turns::from_fn(|step| match step.prompt_text().to_string().parse::<i64>() {
    ///     Ok(number) => Ok((number * 2).to_string().into()),
    ///     Err(_) => Err("that is no number".into()),
    /// });
    /// # let _ = host;
    /// ```
    #[must_use]
    pub fn from_fn(answer: impl Fn(&mut Step<'_>) -> Result<Answer, TurnError> + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::each(move || FromFn(answer.clone()))
    }

    /// Each session gets an agent of its own. Nothing is stored: a session cannot be resumed.
    #[must_use]
    pub fn each<A: TurnAgent>(make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self::new(Each(make))
    }

    /// Lets no more than this many turns run at once; the others wait. There is no such limit unless it is set.
    #[must_use]
    pub fn at_once(mut self, turns: usize) -> Self {
        self.pool = Arc::new(Lanes::with_limit(turns));
        self
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.pool.close();
    }
}

impl AgentHost for Turns {
    type Agent = TurnSession;

    fn route(&self, route: &InitializeParams) -> Result<(), Refusal> {
        self.host.route(route)
    }

    fn open(&self, how: Opening, route: &InitializeParams, sink: Sink) -> Result<TurnSession, Refusal> {
        let new = self.host.open(how, route, &sink)?;
        if new.turns > MAX_SAFE_INTEGER {
            let (session, turns) = (sink.session(), new.turns);
            return Err(Refusal::new(format!(
                "cannot open session \"{session}\": {turns} turns are too many to count"
            )));
        }
        Ok(TurnSession::new(&self.host, new, route, sink, &self.pool))
    }
}

struct FromFn<F>(Arc<F>);

impl<F: Fn(&mut Step<'_>) -> Result<Answer, TurnError> + Send + Sync + 'static> TurnAgent for FromFn<F> {
    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
        (self.0)(step)
    }
}

struct Each<F>(F);

impl<A: TurnAgent, F: Fn() -> A + Send + Sync + 'static> TurnHost for Each<F> {
    fn open(&self, how: Opening, _: &InitializeParams, sink: &Sink) -> Result<NewSession, Refusal> {
        match how {
            Opening::Create => Ok(NewSession::new((self.0)())),
            Opening::Resume => Err(Refusal::session_not_found(sink.session())),
        }
    }
}
