//! [`serve`]: a [`Server`] on two descriptors, with an [`AgentHost`] behind it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::vec::Vec;
use std::{fmt, format};

use signal_hook::consts::{SIGHUP, SIGINT};

use super::ask::Asked;
use super::host::{Agent, AgentHost, PromptResponder, Shared, Sink, WhenFull};
use super::lanes::Lanes;
use super::own::OwnStdio;
use super::panic;
use super::pump::{Loan, Pump, Waker};
use super::signals::Signals;
use crate::json::JsonString;
use crate::server::{Phase, Refusal, Server, Task};

/// Turns that find something to do before the signals are looked at.
const TURNS_WITHOUT_ASKING: u32 = 16;

/// How to serve. All of it has defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Once the input has ended: how long what was accepted may take to be answered. 5 s.
    pub finish_within: Duration,
    /// After that, or after a signal: how long the agents may take to be released and the output to be written. 5 s.
    pub release_within: Duration,
    /// Bytes of output that may wait before agents are pushed back. 1 MiB.
    pub max_backlog: usize,
    /// What pushing back means.
    pub when_full: WhenFull,
    /// Bytes of output that may wait before no more requests are read: answers are never pushed back, so a client that
    /// asks and does not read is not heard until it does. It is heard again once it has closed its end of the input,
    /// since what it can have sent by then is what a pipe holds. 64 MiB.
    pub max_unread: usize,
    /// Threads on which the methods of agents run at once; the others wait. 512; `None` is no limit.
    pub max_threads: Option<usize>,
    /// Counts times and ids instead of taking them from the clock and from chance: two runs that say the same send the
    /// same. An event of number n has the time of 2024-01-01 and n milliseconds. For tests of clients.
    pub deterministic: bool,
    /// As [`Server::max_tokens_as_success`].
    pub max_tokens_as_success: bool,
    /// Take SIGINT, SIGTERM and SIGHUP as requests to end, in order; a second one ends at once, without a word to the
    /// agents. SIGHUP stays ignored where it was (`nohup`). Off unless asked for; [`serve_stdio`] always does it.
    /// Afterwards the process ignores them, since what they did before cannot be brought back.
    pub signals: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            finish_within: Duration::from_secs(5),
            release_within: Duration::from_secs(5),
            max_backlog: 1 << 20,
            when_full: WhenFull::Block,
            max_unread: 64 << 20,
            max_threads: Some(512),
            deterministic: false,
            max_tokens_as_success: true,
            signals: false,
        }
    }
}

/// Why serving has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Served {
    /// The client asked for it, and was answered.
    Shutdown,
    /// The input ended.
    InputEnded,
    /// The input could not be read any more. Otherwise as if it had ended.
    InputFailed(io::Error),
    /// This signal came. What the client had not read by then is dropped.
    Signal(i32),
    /// The client has closed its end of the output.
    OutputClosed(io::Error),
    /// The input ended or the client asked for the end, but when the time for it was up something was still missing.
    CutShort {
        /// Requests that were not answered.
        unanswered: u64,
        /// Bytes of output that the client had not read.
        unread: usize,
    },
}

impl Served {
    /// The code that the official runtime exits with: 0, but 130 after SIGINT, and 1 where the output was closed or the
    /// input failed. It has none for an end that was cut short, which is 1 as well, and none for SIGHUP, which kills it:
    /// 129, as shells say.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Signal(SIGINT) => 130,
            Self::Signal(SIGHUP) => 129,
            Self::OutputClosed(_) | Self::InputFailed(_) | Self::CutShort { .. } => 1,
            Self::Shutdown | Self::InputEnded | Self::Signal(_) => 0,
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("the client has shut the runtime down"),
            Self::InputEnded => f.write_str("the input has ended"),
            Self::Signal(signal) => write!(f, "signal {signal} came"),
            Self::InputFailed(error) | Self::OutputClosed(error) => error.fmt(f),
            Self::CutShort { unanswered, unread } => {
                write!(f, "the time for the end was up: ")?;
                write!(f, "{unanswered} requests were not answered, {unread} bytes of output were not read")
            }
        }
    }
}

/// Serves on the process's own stdin and stdout, which belong to the protocol for that time ([`OwnStdio`]), and takes
/// SIGINT, SIGTERM and SIGHUP as requests to end. To leave the signals alone, use [`OwnStdio`] and [`serve`].
///
/// An agent that is left behind at the end may print to the real stdout, which is given back then.
///
/// # Errors
/// Stdin or stdout cannot be taken, or as [`serve`].
pub fn serve_stdio<H: AgentHost>(host: H, options: ServeOptions) -> io::Result<Served> {
    let stdio = OwnStdio::take()?;
    serve(host, stdio.reader()?, stdio.writer()?, ServeOptions { signals: true, ..options })
}

/// Serves one client, until it says `shutdown`, its input ends, or a signal comes. The calling thread moves the bytes;
/// agents run on threads that come and go as needed. An agent that is still at work when the bounds in time have
/// passed is left behind.
///
/// Most agents want [`Turns`](super::turns::Turns) as their host; the guide is the documentation of
/// [its module](super::turns). This is a host that says everything itself, and says too little for clients that wait for
/// the receipt of a prompt:
///
/// ```
/// use std::io::{self, Read, Write};
/// use dsh_wire::json::{Json, JsonString};
/// use dsh_wire::server::{NewEvent, Opening, Refusal};
/// use dsh_wire::stdio::{serve, Agent, AgentHost, PromptResponder, ServeOptions, Sink};
/// use dsh_wire::wire::InitializeParams;
///
/// struct Parrots;
/// struct Parrot(Sink);
///
/// impl AgentHost for Parrots {
///     type Agent = Parrot;
///     fn open(&self, _: Opening, _: &InitializeParams, sink: Sink) -> Result<Parrot, Refusal> {
///         Ok(Parrot(sink))
///     }
/// }
///
/// impl Agent for Parrot {
///     fn prompt(&mut self, content: Json<'_>, reply: PromptResponder) {
///         reply.accept("m1");
///         self.0.set_running(true);
///         self.0.session_event(&NewEvent::new("parrot/says", &content)).unwrap();
///         self.0.set_running(false);
///     }
///     fn working_directory(&mut self, _: Option<&JsonString>) -> Result<JsonString, Refusal> {
///         Err("parrots have no directory".into())
///     }
/// }
///
/// let (input, mut requests) = io::pipe()?;
/// let (mut answers, output) = io::pipe()?;
/// requests.write_all(b"{\"id\":1,\"method\":\"nope\"}\n")?;
/// drop(requests);
/// let served = serve(Parrots, input.into(), output.into(), ServeOptions::default())?;
/// assert_eq!(served.exit_code(), 0);
/// let mut text = String::new();
/// answers.read_to_string(&mut text)?;
/// assert!(text.contains("unknown DeepSeek Harness SDK runtime method: nope"));
/// # Ok::<(), io::Error>(())
/// ```
///
/// # Errors
/// What the system reports of the poll, of signals, or of a descriptor that cannot be used at all.
pub fn serve<H: AgentHost>(host: H, input: OwnedFd, output: OwnedFd, options: ServeOptions) -> io::Result<Served> {
    let pump = Pump::new(input, output)?;
    let waker = pump.waker();
    let mut serving = Serving::new(host, pump, waker, options)?;
    let served = serving.run();
    serving.close();
    served
}

/// One call of [`serve`].
struct Serving<H: AgentHost> {
    pump: Pump,
    signals: Option<Signals>,
    shared: Arc<Shared>,
    agents: Agents<H>,
    options: ServeOptions,
    /// Why serving ends. `None` while it goes on, and after a `shutdown` alone.
    end: Option<Served>,
    /// When it ends, whatever is still to do; `None` is no bound.
    until: Option<Instant>,
    /// A signal has come.
    signalled: bool,
    /// The time for the release has been given.
    releasing: bool,
    /// Turns since the system was last asked for events.
    unasked: u32,
    /// The writer, with what is written while the lock is free.
    loan: Option<Loan>,
}

/// What to do after a [look](Serving::look).
enum Next {
    /// Write what is on loan, and hand out these tasks.
    Work(Vec<Task>),
    /// Ask the system and wait: whoever does something from now on wakes the loop.
    Wait,
    /// Nothing any more.
    Over(Served),
}

impl<H: AgentHost> Serving<H> {
    /// `waker` is what agents wake the loop with: that of the pump.
    fn new(host: H, pump: Pump, waker: Waker, options: ServeOptions) -> io::Result<Self> {
        let signals = options.signals.then(|| Signals::register(pump.registry(), Pump::FREE_TOKEN)).transpose()?;
        let mut server = if options.deterministic { Server::with_seed(0) } else { Server::new() };
        server.max_tokens_as_success(options.max_tokens_as_success);
        let shared = Arc::new(Shared::new(server, waker, &options));
        let lanes = options.max_threads.map_or_else(Lanes::new, Lanes::with_limit);
        let agents =
            Agents { host: Arc::new(host), shared: shared.clone(), lanes, cells: BTreeMap::new(), look_at: 16 };
        Ok(Self {
            pump,
            signals,
            shared,
            agents,
            options,
            end: None,
            until: None,
            signalled: false,
            releasing: false,
            unasked: 0,
            loan: None,
        })
    }

    fn run(&mut self) -> io::Result<Served> {
        loop {
            match self.look() {
                Next::Work(tasks) => {
                    self.work(tasks);
                    if self.unasked >= TURNS_WITHOUT_ASKING {
                        self.ask(Some(Duration::ZERO))?;
                    }
                }
                Next::Wait => self.ask(self.until.map(|until| until.saturating_duration_since(Instant::now())))?,
                Next::Over(served) => return Ok(served),
            }
        }
    }

    /// All that is done under the lock.
    fn look(&mut self) -> Next {
        let shared = self.shared.clone();
        let mut hub = shared.lock();
        if let Some(loan) = self.loan.take() {
            self.pump.return_writer(hub.server.peer_mut(), loan);
        }
        let unread = hub.server.backlog();
        self.pump.set_reading(unread <= self.options.max_unread || self.pump.input_hung_up());
        let read = self.pump.read_once(hub.server.peer_mut());
        self.note_ends(&mut hub.server);
        let tasks: Vec<_> = std::iter::from_fn(|| hub.server.next_task()).collect();
        // What the requests have led to goes out at once.
        self.loan = self.pump.lend_writer(hub.server.peer_mut());
        shared.tell_room(&mut hub);
        if self.is_over(&mut hub.server) {
            return Next::Over(self.outcome(&mut hub.server));
        }
        hub.asleep = read == 0 && tasks.is_empty() && self.loan.is_none();
        if hub.asleep { Next::Wait } else { Next::Work(tasks) }
    }

    /// Agents go on telling while the system takes the bytes: the longer that takes, the more go out at once.
    fn work(&mut self, tasks: Vec<Task>) {
        self.loan.iter_mut().for_each(Loan::write);
        tasks.into_iter().for_each(|task| self.agents.dispatch(task));
        self.unasked += 1;
    }

    /// Agents that were left behind do not wait for a client that is not heard any more.
    fn close(self) {
        self.agents.lanes.close();
        let mut hub = self.shared.lock();
        hub.server.close();
        hub.asked = Asked::default();
        self.shared.tell_room(&mut hub);
    }

    /// Why it has ended, now that it has.
    fn outcome(&mut self, server: &mut Server) -> Served {
        let (unanswered, unread) = (server.replies_owed(), server.backlog());
        match self.end.take().unwrap_or(Served::Shutdown) {
            Served::Shutdown | Served::InputEnded if unanswered > 0 || unread > 0 => {
                Served::CutShort { unanswered, unread }
            }
            end => end,
        }
    }

    /// Waits for the system to say something, and hears the signals.
    fn ask(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.unasked = 0;
        self.pump.ask(wait)?;
        let Some(signals) = &self.signals else { return Ok(()) };
        for signal in self.pump.events().filter_map(|event| signals.caught(event)) {
            // The second one does not wait.
            let bound = if self.signalled { Duration::ZERO } else { self.options.release_within };
            self.signalled = true;
            self.until = after(bound);
            self.end = Some(Served::Signal(signal));
            self.shared.lock().server.close();
        }
        Ok(())
    }

    /// Sees that a direction has ended, once.
    fn note_ends(&mut self, server: &mut Server) {
        if let Some(error) = self.pump.output_error()
            && !matches!(self.end, Some(Served::OutputClosed(_) | Served::Signal(_)))
        {
            self.end = Some(Served::OutputClosed(attempted("write to the client", error)));
            self.until = after(self.options.release_within);
            server.close();
        }
        if !self.pump.input_open() && self.end.is_none() {
            let served = match self.pump.input_error() {
                Some(error) => Served::InputFailed(attempted("read from the client", error)),
                None if server.phase() == Phase::Serving => Served::InputEnded,
                None => Served::Shutdown,
            };
            self.end = Some(served);
            self.until = after(self.options.finish_within);
        }
        let natural = matches!(self.end, Some(Served::InputEnded | Served::InputFailed(_)));
        if natural && !self.releasing && server.phase() == Phase::Releasing {
            // The time for the release begins when the answers are out, however early that is.
            self.releasing = true;
            self.until = after(self.options.release_within);
        }
        if server.phase() == Phase::Draining && self.is_late() {
            // What is not answered by now is not waited for, and the agents are released.
            server.close();
            self.releasing = true;
            self.until = after(self.options.release_within);
        }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether nothing is left to do, or no time to do it in.
    fn is_over(&self, server: &mut Server) -> bool {
        let late = self.is_late();
        let flushed = server.backlog() == 0;
        match server.phase() {
            Phase::Released => late || flushed,
            // A client that has seen `shutdown` fail may go on until it ends the input.
            Phase::Failed => late || self.end.is_some() && flushed,
            // The next look closes it.
            Phase::Draining => false,
            Phase::Serving | Phase::Releasing => late,
        }
    }
}

/// The agents of one connection, each in a lane of its own.
struct Agents<H: AgentHost> {
    host: Arc<H>,
    shared: Arc<Shared>,
    /// `None` is the lane of the routes.
    lanes: Lanes<Option<JsonString>>,
    cells: BTreeMap<JsonString, Cell<H::Agent>>,
    /// With so many cells, those that are of no use are looked for.
    look_at: usize,
}

/// An agent from when it is open to when it is released. Only its lane locks it.
type Cell<A> = Arc<Mutex<Option<A>>>;

impl<H: AgentHost> Agents<H> {
    fn dispatch(&mut self, task: Task) {
        let shared = self.shared.clone();
        match task {
            Task::Route { route, reply } => {
                let host = self.host.clone();
                self.run(None, move || {
                    let outcome = guarded(|| host.route(&route));
                    shared.act(|server| server.routed(reply, outcome));
                });
            }
            Task::Open { session, how, route } => {
                self.forget_unopened();
                let (host, cell) = (self.host.clone(), Cell::default());
                self.cells.insert(session.clone(), Cell::clone(&cell));
                self.run(Some(session.clone()), move || {
                    let outcome = guarded(|| host.open(how, &route, Sink::new(&shared, &session)));
                    let outcome = outcome.map(|agent| *lock(&cell) = Some(agent));
                    shared.act(|server| server.opened(&session, outcome));
                });
            }
            Task::Prompt { session, content_blocks, reply } => {
                let cell = self.cells.get(&session).cloned().unwrap_or_default();
                let responder = PromptResponder::new(&shared, reply);
                self.run(Some(session), move || {
                    // Whatever comes of it, the responder answers.
                    let _ = guarded(|| {
                        if let Some(agent) = &mut *lock(&cell) {
                            agent.prompt(content_blocks.as_json(), responder);
                        }
                        Ok(())
                    });
                });
            }
            Task::WorkingDirectory { session, change, reply } => {
                let cell = self.cells.get(&session).cloned().unwrap_or_default();
                self.run(Some(session), move || {
                    let outcome = guarded(|| match &mut *lock(&cell) {
                        Some(agent) => agent.working_directory(change.as_ref()),
                        None => Err("the session has no agent".into()),
                    });
                    shared.act(|server| server.directory(reply, outcome));
                });
            }
            Task::Answered { call, outcome } => shared.lock().asked.answered(call, outcome),
            Task::Release { session } => {
                let cell = self.cells.remove(&session).unwrap_or_default();
                self.run(Some(session.clone()), move || {
                    let agent = lock(&cell).take();
                    let outcome = guarded(|| agent.map_or(Ok(()), Agent::release));
                    shared.act(|server| server.released(&session, outcome));
                });
            }
        }
    }

    /// Forgets cells whose session could not be opened, once there may be as many of them as of others.
    fn forget_unopened(&mut self) {
        if self.cells.len() >= self.look_at {
            self.cells.retain(|_, cell| Arc::strong_count(cell) > 1 || lock(cell).is_some());
            self.look_at = self.cells.len() * 2 + 16;
        }
    }

    /// Without a thread to be had, the loop does it: late is better than never.
    fn run(&self, lane: Option<JsonString>, job: impl FnOnce() + Send + 'static) {
        if let Err(job) = self.lanes.run(lane, job) {
            job();
        }
    }
}

/// The time after so long; none where it cannot be told.
fn after(duration: Duration) -> Option<Instant> {
    Instant::now().checked_add(duration)
}

/// The same error, with a text that says what failed.
fn attempted(attempt: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {attempt}: {error}"))
}

fn lock<A>(cell: &Mutex<Option<A>>) -> MutexGuard<'_, Option<A>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the author's code; a panic, which the panic hook has told on stderr, becomes a refusal.
fn guarded<T>(call: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        Err(Refusal::new(format!("the agent panicked: {}", panic::text(&*panic).unwrap_or("no message"))))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
