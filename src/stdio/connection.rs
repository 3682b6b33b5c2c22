//! [`Connection`]: a client machine, the pump that feeds it, and the process at the other end.

use std::borrow::ToOwned;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::Vec;

use super::child::Child;
use super::close::{CloseReport, Closing};
use super::error::{Cause, Closed, Error, ErrorKind};
use super::journal;
use super::pump::{Aim, Moved, Next, Pump};
use super::tail::Tail;
use crate::client::{Client, Event, SessionTree};
use crate::peer::CallId;
use crate::wire::Notification;

/// After an exit, the output counts as ended when nothing came for this long.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// After an exit, or the end of our output, the input is ended after this long, whatever comes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the exit that goes with the end of the output is waited for, so that an error can name it.
const EXIT_WITH_OUTPUT: Duration = Duration::from_millis(250);

/// How often tokens are looked at, since setting one wakes nobody.
pub(super) const TOKENS: Duration = Duration::from_millis(20);

/// A lossless queue that holds more than this holds up the runtime, while nothing else needs its output.
const HOLD_UP: usize = 1 << 20;

/// Sees every notification as it comes.
pub(super) type Observer<'o> = &'o mut dyn FnMut(&Notification<'_>, &SessionTree);

/// How long there is to wait; `None` is for ever.
pub(super) type Patience = Option<Duration>;

/// Everything behind a blocking client, driven by [`turn`](Self::turn).
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) pump: Pump,
    pub(super) child: Option<Child>,
    origin: Instant,
    max_backlog: usize,
    /// Since when the runtime cannot answer any more, although its output is open: it has exited, or does not read.
    lingering_since: Option<Instant>,
    /// The input was ended by us although the output of the runtime was still open.
    cut_off: bool,
    /// When something last came.
    last_input: Instant,
    /// Calls that have ended since their handles were last looked at.
    pub(super) ended_calls: Vec<CallId>,
    /// Why the connection has ended, once somebody has asked.
    closed: Option<Arc<Closed>>,
    /// Whether the exit has been waited for already, as it is where the runtime has closed its stdin, and may live on.
    awaited: bool,
    /// The ladder, while it is walked.
    pub(super) closing: Option<Closing>,
    pub(super) report: Option<CloseReport>,
}

impl Connection {
    pub(super) fn new(client: Client, pump: Pump, mut child: Option<Child>, max_backlog: usize) -> io::Result<Self> {
        if let Some(child) = &mut child {
            child.register(pump.registry())?;
        }
        let origin = Instant::now();
        Ok(Self {
            client,
            pump,
            child,
            origin,
            max_backlog,
            lingering_since: None,
            cut_off: false,
            last_input: origin,
            ended_calls: Vec::new(),
            closed: None,
            awaited: false,
            closing: None,
            report: None,
        })
    }

    pub(super) fn pump(&self) -> &Pump {
        &self.pump
    }

    pub(super) fn child(&self) -> Option<&Child> {
        self.child.as_ref()
    }

    /// The time as the client machine counts it.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Whether the end of the input has been reached; what came before it may still be in queues.
    pub(super) fn has_ended(&self) -> bool {
        !self.pump.input_open() || self.closed.is_some() || self.is_closing()
    }

    /// Gives up what is due by deadline or token; says whether that has ended a call.
    pub(super) fn expire(&mut self) -> bool {
        // Where nothing can be due, nobody asks for the time.
        let timed = self.client.next_deadline().is_some() || self.client.has_tokens();
        timed && self.expire_at(self.now(), &mut |_, _| {})
    }

    fn expire_at(&mut self, now: Duration, observe: Observer<'_>) -> bool {
        let due = self.client.next_deadline().is_some_and(|deadline| deadline <= now);
        if !due && !self.client.has_tokens() {
            return false;
        }
        self.client.expire(now);
        self.client.poll_aborts();
        // Every turn takes out all that came, so only these ends are left.
        let before = self.ended_calls.len();
        self.drain(observe);
        self.ended_calls.len() > before
    }

    /// Gives up what is due, moves bytes and handles all that came. If nothing can be moved, waits for something to
    /// happen: no longer than until `until`, and not at all where a call was given up. With an aim, input is read
    /// although a lossless queue holds much already.
    ///
    /// What lies between `now` and the wait takes no time that counts.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        until: Option<Duration>,
        aim: Aim,
        observe: Observer<'_>,
    ) -> Result<Moved, Error> {
        let until = if self.expire_at(now, observe) { Some(now) } else { until };
        let reading = self.choose_reading(aim != Aim::Anything);
        let wait = self.wait_from(now, until, reading);
        let moved = match self.pump.turn_for(aim, self.client.peer_mut(), wait) {
            Ok(moved) => moved,
            Err(error) => return Err(Error::new("wait for the runtime", ErrorKind::System(error))),
        };
        self.digest(moved, reading, observe);
        Ok(moved)
    }

    /// As [`turn`](Self::turn), but neither gives up calls nor waits; `wanted` is whether there is an aim. Says how long
    /// there is nothing to do but to wait for the descriptors, with the poller of the pump; `None` if there is more to do.
    pub(super) fn turn_at_once(&mut self, wanted: bool, observe: Observer<'_>) -> Option<Patience> {
        let reading = self.choose_reading(wanted);
        let moved = self.pump.turn_at_once(self.client.peer_mut());
        self.digest(moved, reading, observe);
        self.pump.forget_events();
        match self.pump.next(self.client.peer_mut()) {
            Next::Turn => None,
            Next::Glance => Some(Some(Duration::ZERO)),
            Next::Wait => Some(self.wait_from(self.now(), None, reading)),
        }
    }

    /// Decides whether input is read now, and says so.
    fn choose_reading(&mut self, wanted: bool) -> bool {
        let wanted = wanted || self.client.pending() > 0 || !self.client.outgoing().is_empty();
        let reading = wanted || !self.is_held_up();
        self.pump.set_reading(reading);
        reading
    }

    /// Whether a lossless queue holds so much that nothing more is read, unless it is wanted.
    pub(super) fn is_held_up(&self) -> bool {
        self.client.backlog_over(HOLD_UP).is_some()
    }

    /// Handles all that came with a turn.
    fn digest(&mut self, moved: Moved, reading: bool, observe: Observer<'_>) {
        // Before there is an exit to wait out, nobody asks for the time.
        if moved.read > 0 && self.lingering_since.is_some() {
            self.last_input = Instant::now();
        }
        if !reading && self.lingering_since.is_some() {
            // What waits in the pipe is read before the time for it runs.
            self.lingering_since = Some(Instant::now());
        }
        self.drain(observe);
        self.look_at_child();
        self.end_if_lingered(reading, observe);
        if let Some((name, held)) = self.client.backlog_over(self.max_backlog) {
            let name = name.to_owned();
            self.fail_over_backlog(&name, held);
            self.drain(observe);
        }
    }

    /// When something is to be done that no event tells; `until`, if nothing earlier.
    fn due(&self, until: Option<Duration>, reading: bool) -> Option<Duration> {
        let linger = self.lingering_since.filter(|_| reading && self.pump.input_open());
        let linger = linger.map(|since| self.end_of_linger(since).saturating_duration_since(self.origin));
        [until, self.client.next_deadline(), linger].into_iter().flatten().min()
    }

    /// How long a wait that begins now may last, so that nothing is missed that no event tells.
    fn wait_from(&self, now: Duration, until: Option<Duration>, reading: bool) -> Patience {
        let due = self.due(until, reading).map(|due| due.saturating_sub(now));
        let tokens = self.client.has_tokens().then_some(TOKENS);
        let child = self.child.as_ref().and_then(Child::longest_wait);
        [due, tokens, child].into_iter().flatten().min()
    }

    /// Takes out everything that came.
    pub(super) fn drain(&mut self, observe: Observer<'_>) {
        // By reference, so that it stays where it was made: to move it is a copy of some 180 bytes a frame.
        while let Some(event) = &self.client.next_event() {
            journal::event(event);
            match event {
                Event::Notification { notification, tree } => observe(notification, tree),
                Event::Ended(call) => self.ended_calls.push(*call),
                _ => {}
            }
        }
    }

    fn look_at_child(&mut self) {
        if let Some(child) = &mut self.child {
            self.pump.events().for_each(|event| child.note(event));
            child.read_stderr();
            if child.longest_wait().is_some() {
                child.look();
            }
        }
        let exited = self.child.as_ref().is_some_and(|child| child.exit().is_some());
        // A runtime that has closed its input may have said why before; it gets as long as one that has exited.
        let deaf = self.pump.output_error().is_some();
        if (exited || deaf) && self.lingering_since.is_none() {
            self.lingering_since = Some(Instant::now());
        }
    }

    /// When the input of a connection that lingers is ended.
    fn end_of_linger(&self, since: Instant) -> Instant {
        (self.last_input.max(since) + QUIET).min(since + LAST_WORDS)
    }

    fn end_if_lingered(&mut self, reading: bool, observe: Observer<'_>) {
        let Some(since) = self.lingering_since.filter(|_| reading && self.pump.input_open()) else { return };
        if Instant::now() >= self.end_of_linger(since) {
            self.cut_off = true;
            self.pump.close_input(self.client.peer_mut());
            self.drain(observe);
        }
    }

    /// Ends the connection where somebody holds more than may be held.
    pub(super) fn fail_over_backlog(&mut self, name: &str, held: usize) {
        if held > self.max_backlog {
            self.fail(Cause::Backlog { name: name.to_owned(), held });
        }
    }

    /// Ends the connection by our own decision.
    pub(super) fn fail(&mut self, cause: Cause) {
        self.pump.close_input(self.client.peer_mut());
        self.pump.close_output(self.client.peer_mut());
        if self.closed.is_none() {
            journal::failed(&cause);
            let exit = self.child.as_mut().and_then(Child::look);
            let stderr = self.child.as_ref().map(|child| child.tail().clone()).unwrap_or_default();
            self.closed = Some(Arc::new(Closed { cause, exit, stderr }));
        }
    }

    /// Why the connection has ended, or cannot be written to. Waits a moment for what goes with that, the exit and the
    /// last of stderr: once for each.
    pub(super) fn closed(&mut self) -> Arc<Closed> {
        if let Some(closed) = &self.closed {
            return Arc::clone(closed);
        }
        if self.is_closing() {
            return Arc::new(Closed { cause: Cause::ClosedHere, exit: None, stderr: Tail::default() });
        }
        let mut exit = None;
        let mut stderr = Tail::default();
        if let Some(child) = &mut self.child {
            let awaited = std::mem::replace(&mut self.awaited, true) && self.pump.input_open();
            if awaited {
                exit = child.look();
            } else {
                exit = child.wait(EXIT_WITH_OUTPUT);
                child.finish_stderr(QUIET);
            }
            stderr = child.tail().clone();
        }
        let broken = [self.pump.input_error(), self.pump.output_error()].into_iter().flatten().next();
        let cause = match broken {
            Some(error) => Cause::Broken(io::Error::new(error.kind(), std::string::ToString::to_string(error))),
            None if self.cut_off => Cause::Exited,
            None => Cause::OutputEnded,
        };
        let closed = Arc::new(Closed { cause, exit, stderr });
        if self.has_ended() {
            self.closed = Some(Arc::clone(&closed));
        }
        closed
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The child's own drop gives it a moment to see this.
        self.pump.close_output(self.client.peer_mut());
    }
}
