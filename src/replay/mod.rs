//! A recording as a runtime: [`Script`] answers a client with what was recorded.
//!
//! So a program that drives a runtime is tested without one: record it once (`dsh-wire tap`), and let it talk to the
//! script from then on, in the same process or through `dsh-wire replay FILE` as its child. Like the rest of the core,
//! a script moves no bytes and keeps no time.

mod departure;
mod expected;
mod rewrite;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::frame::{INTERNAL_ERROR, encode_error};
use crate::json::JsonString;
use crate::line::{Line, LineBuffer};
use crate::recording::{Direction, Entry, Pieces, What, redact};

pub use departure::{Departure, Place};
use expected::{Asked, Expected};

/// How a line of the client finds its like in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// By method and order, whatever the params hold. One that comes too early is a departure.
    #[default]
    Strict,
    /// By method and params, in any order. Sessions may have other ids, each its own. In a redacted recording, blanked
    /// texts count as the same if they have the same length, and the directory to work in has any.
    Loose,
}

/// When the runtime's lines go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// At once.
    #[default]
    Dropped,
    /// As long after the client's line before them as in the recording.
    Kept,
}

/// A recording that answers.
///
/// An answer waits for its request. Each other line of the runtime waits for the client's line that it followed in the
/// recording, and goes out when that has come: with [`Matching::Strict`] the last one before it, with
/// [`Matching::Loose`] the last one before it that was about the same session. Ids of requests and of sessions are those
/// of this client. A request that the recording does not have is refused, and that is a [`Departure`].
///
/// - **Input**: [`push`](Self::push), [`end_input`](Self::end_input).
/// - **Output**: [`next_line`](Self::next_line); changes its answer after input, and at [`next_at`](Self::next_at).
/// - **Verdict**: [`departures`](Self::departures), after [`end_input`](Self::end_input).
///
/// ```
/// use core::time::Duration;
/// use dsh_wire::peer::{Event, Peer};
/// use dsh_wire::recording::Reader;
/// use dsh_wire::replay::{Matching, Script, Timing};
///
/// let recording = &br#"{"t":0.1,"dir":"c2s","frame":"{\"id\":\"a\",\"method\":\"initialize\"}"}
/// {"t":0.9,"dir":"s2c","frame":"{\"id\":\"a\",\"result\":{\"ready\":true}}"}
/// "#[..];
/// let entries = Reader::new(recording).collect::<Result<Vec<_>, _>>()?;
/// let mut script = Script::new(entries, Matching::Strict, Timing::Dropped);
///
/// let mut client: Peer<()> = Peer::new();
/// client.request("initialize", &(), (), None)?;
/// script.push(client.outgoing().bytes(), Duration::ZERO);
/// while let Some(line) = script.next_line(Duration::ZERO) {
///     client.push(&line.bytes);
/// }
/// let Some(Event::Response { outcome: Ok(result), .. }) = client.next_event() else { panic!() };
/// assert_eq!(result.get(), r#"{"ready":true}"#);
/// script.end_input();
/// assert!(script.departures().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Script {
    matching: Matching,
    timing: Timing,
    input: LineBuffer,
    asked: Vec<Asked>,
    /// All before this have been met.
    met: usize,
    /// `None` once it has gone out.
    said: Vec<Option<Said>>,
    /// Which of them may go out, with the times from which they may.
    ready: BTreeSet<(Duration, usize)>,
    /// What is said to requests that the recording does not have.
    refusals: VecDeque<Vec<u8>>,
    /// Session ids as recorded, and as they are now.
    sessions: BTreeMap<JsonString, JsonString>,
    departures: Vec<Departure>,
    lost: u64,
    ended: bool,
}

/// A line of the runtime.
#[derive(Debug)]
struct Said {
    at: Duration,
    direction: Direction,
    /// As on the wire, with its `\n`.
    bytes: Vec<u8>,
    /// The request that it answers.
    answers: Option<usize>,
}

/// A line for the client: to be written to its end of stdout, or of stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Never [`Direction::ClientToServer`].
    pub direction: Direction,
    /// With its `\n`, where it had one.
    pub bytes: Vec<u8>,
}

impl Script {
    /// Takes a recording, as [`Entry`]s in order. What is missing of one is missing here, too.
    pub fn new(entries: impl IntoIterator<Item = Entry>, matching: Matching, timing: Timing) -> Self {
        let mut script = Self {
            matching,
            timing,
            input: LineBuffer::new(),
            asked: Vec::new(),
            met: 0,
            said: Vec::new(),
            ready: BTreeSet::new(),
            refusals: VecDeque::new(),
            sessions: BTreeMap::new(),
            departures: Vec::new(),
            lost: 0,
            ended: false,
        };
        let mut expected = Expected::default();
        for (number, entry) in lines(entries) {
            match (entry.what, entry.direction) {
                (What::Lost(lost), _) => script.lost = script.lost.saturating_add(lost),
                // Without its end it is no line; blank ones are none, either.
                (What::Line { eol: false, .. }, Direction::ClientToServer) => {}
                (What::Line { bytes, .. }, Direction::ClientToServer) => {
                    script.asked.extend(expected.asked(&bytes, entry.at, number));
                }
                (What::Line { mut bytes, eol }, direction) => {
                    bytes.extend(eol.then_some(b'\n'));
                    let (after, answers) = expected.said(&bytes, direction, matching);
                    let index = script.said.len();
                    script.said.push(Some(Said { at: entry.at, direction, bytes, answers }));
                    match after.and_then(|after| script.asked.get_mut(after)) {
                        Some(asked) => asked.followed_by.push(index),
                        None => {
                            let due = script.due(entry.at);
                            script.ready.insert((due, index));
                        }
                    }
                    if let Some(asked) = answers.and_then(|answers| script.asked.get_mut(answers)) {
                        asked.answered = true;
                    }
                }
            }
        }
        script
    }

    /// Takes bytes of the client, however they are cut. The time counts from an origin of the caller's, the start of the
    /// script.
    pub fn push(&mut self, bytes: &[u8], now: Duration) {
        let mut input = core::mem::take(&mut self.input);
        input.push(bytes);
        while let Some(line) = input.next_line() {
            match line {
                Line::Whole { bytes, .. } => self.hear(bytes, now),
                Line::TooLong { prefix, .. } => self.hear(prefix, now),
                Line::Overflowing { .. } | Line::Unterminated { .. } => {}
            }
        }
        self.input = input;
    }

    /// The client has ended its stream. What it has left out is a departure.
    pub fn end_input(&mut self) {
        if !core::mem::replace(&mut self.ended, true) {
            let missing = self.asked.iter().filter(|asked| asked.met.is_none());
            self.departures.extend(missing.map(|asked| Departure::Missing(asked.place())));
        }
    }

    /// The next line that may go out now.
    pub fn next_line(&mut self, now: Duration) -> Option<Spoken> {
        if let Some(bytes) = self.refusals.pop_front() {
            return Some(Spoken { direction: Direction::ServerToClient, bytes });
        }
        let first = self.ready.first().copied().filter(|(due, _)| *due <= now)?;
        self.ready.remove(&first);
        let said = self.said.get_mut(first.1)?.take()?;
        let id = said.answers.and_then(|answers| self.asked.get(answers)?.met.as_ref()?.as_deref());
        let bytes = match said.direction {
            Direction::Stderr => said.bytes,
            _ => rewrite::for_client(said.bytes, id, &self.sessions),
        };
        Some(Spoken { direction: said.direction, bytes })
    }

    /// When [`next_line`](Self::next_line) has one, without further input.
    #[must_use]
    pub fn next_at(&self) -> Option<Duration> {
        if self.refusals.is_empty() { self.ready.first().map(|(due, _)| *due) } else { Some(Duration::ZERO) }
    }

    /// Where the client has departed from the recording so far.
    #[must_use]
    pub fn departures(&self) -> &[Departure] {
        &self.departures
    }

    /// How many bytes the recording misses.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the recorded runtime was at its end here: all has been said, and the last request told it to shut down or
    /// was left without an answer. An older one without was given up by the client, since the runtime went on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let all = self.ready.is_empty() && self.refusals.is_empty() && self.met == self.asked.len();
        let last = self.asked.iter().rev().find(|asked| asked.is_request());
        all && last.is_some_and(|last| last.method == "shutdown" || !last.answered)
    }

    /// One line of the client.
    fn hear(&mut self, line: &[u8], now: Duration) {
        let Some(heard) = Asked::read(line, now, 0) else { return };
        let mut open = self.asked.iter().enumerate().skip(self.met).filter(|(_, asked)| asked.met.is_none());
        let next = open.clone().next().map(|(_, asked)| asked.place());
        let found = open.clone().find(|(_, asked)| self.matches(asked, &heard, &heard)).or_else(|| {
            // As a recording has it that was redacted.
            let mut line = line.to_vec();
            redact(Direction::ClientToServer, &mut line);
            let redacted = Asked::read(&line, now, 0)?;
            open.find(|(_, asked)| self.matches(asked, &heard, &redacted))
        });
        let Some((index, asked)) = found else {
            self.refuse(&heard);
            self.departures.push(Departure::Unknown { came: heard.what(), next });
            return;
        };
        let came = asked.place();
        if let Some(next) = next.filter(|next| self.matching == Matching::Strict && *next != came) {
            self.departures.push(Departure::Early { came, next });
        }
        self.meet(index, heard, now);
    }

    /// Whether a recorded line is what was heard, which a recorder would have written like this.
    fn matches(&self, asked: &Asked, heard: &Asked, written: &Asked) -> bool {
        asked.is_like(written)
            && match self.matching {
                Matching::Strict => true,
                Matching::Loose => rewrite::same(&asked.params, &heard.params, &written.params, &self.sessions),
            }
    }

    fn refuse(&mut self, heard: &Asked) {
        if let Some(id) = heard.id.as_deref().filter(|_| heard.is_request()).and_then(expected::id) {
            let mut bytes = Vec::new();
            let message = "this request is not in the recording";
            encode_error(&mut bytes, id, INTERNAL_ERROR, message, None::<&()>).expect("there is no data to refuse");
            self.refusals.push_back(bytes);
        }
    }

    /// A recorded line has come: what waited for it may go out.
    fn meet(&mut self, index: usize, heard: Asked, now: Duration) {
        let Some(asked) = self.asked.get_mut(index) else { return };
        if let (Some(recorded), Some(session)) = (asked.session(), heard.session()) {
            self.sessions.insert(recorded, session);
        }
        let (origin, followed_by) = (asked.at, core::mem::take(&mut asked.followed_by));
        // The runtime's spelling of the same id stays.
        let renamed = heard.key() != asked.key();
        asked.met = Some(heard.id.filter(|_| renamed));
        for index in followed_by {
            let Some(Some(said)) = self.said.get(index) else { continue };
            let mut due = self.due(now.saturating_add(said.at.saturating_sub(origin)));
            // Not before what was said before it, however fast the client goes on.
            let before = self.ready.iter().rev().find(|(_, before)| *before < index);
            if let Some((before, _)) = before.filter(|_| self.matching == Matching::Strict) {
                due = due.max(*before);
            }
            self.ready.insert((due, index));
        }
        while self.asked.get(self.met).is_some_and(|asked| asked.met.is_some()) {
            self.met += 1;
        }
    }

    fn due(&self, at: Duration) -> Duration {
        match self.timing {
            Timing::Dropped => Duration::ZERO,
            Timing::Kept => at,
        }
    }
}

/// Whole lines, with the numbers of their entries. What never came to its end stands where it was.
fn lines(entries: impl IntoIterator<Item = Entry>) -> Vec<(u64, Entry)> {
    let mut pieces = Pieces::default();
    let mut lines: Vec<_> =
        entries.into_iter().zip(1..).flat_map(|(entry, number)| pieces.join(number, entry)).collect();
    lines.extend(pieces.finish());
    lines.sort_by_key(|(number, _)| *number);
    lines
}

#[cfg(test)]
mod tests;
