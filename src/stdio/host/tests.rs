//! Every order in which the loop, agents and a client can meet: nobody is left asleep.
//!
//! What is shared is shared under one lock, so a step is what happens under it once, or between two such times. The hub,
//! the sinks, the server and the waker are the real ones; the loop's steps are those of [`serve`](super::super::serve()),
//! with a count in place of the pipe.

use std::collections::HashSet;
use std::time::Duration;
use std::vec::Vec;

use super::*;
use crate::stdio::Pump;

/// Bytes that the pipe holds: less than two events, so that it is full in the middle of one.
const PIPE: usize = 150;

/// Bytes of output at which agents are pushed back: at the second event.
const LIMIT: usize = 60;

const EVENTS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Loop {
    Look,
    Write,
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Teller {
    /// Has told so many events.
    Told(usize),
    /// Waits for room, having told so many.
    PushedBack(usize),
}

/// What one step can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    Loop,
    Teller(usize),
    Client,
    Closer,
}

/// How the loop is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    AsItIs,
    /// It never says that it sleeps.
    NeverSaysSo,
    /// It forgets those who wait for room.
    NeverTellsRoom,
}

struct World {
    make: Make,
    shared: Arc<Shared>,
    /// Where the real waker arrives.
    pump: Pump,
    at: Loop,
    /// Taken from the server, not written.
    staged: usize,
    pipe: usize,
    /// Whether a write may get somewhere, as far as the loop knows; and whether the system has news of that.
    ready: bool,
    news: bool,
    woken: bool,
    tellers: [Teller; 2],
    closed: bool,
}

impl World {
    fn new(make: Make) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let pump = Pump::new(reader.into(), writer.into()).unwrap();
        let options = ServeOptions { max_backlog: LIMIT, when_full: WhenFull::Fail, ..ServeOptions::default() };
        let mut world = Self {
            make,
            shared: Arc::new(Shared::new(Server::with_seed(1), pump.waker(), &options)),
            pump,
            at: Loop::Look,
            staged: 0,
            pipe: 0,
            ready: true,
            news: false,
            woken: false,
            tellers: [Teller::Told(0); 2],
            closed: false,
        };
        world.hear();
        world.woken = false;
        world
    }

    /// Looks whether the waker has been used; the pipe of the pump has one event of its own at first.
    fn hear(&mut self) {
        let mut poller = self.pump.take_poller().unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        self.woken |= poller.has_events();
        self.pump.put_poller(poller);
        self.pump.forget_events();
    }

    fn can(&self, who: Who) -> bool {
        match who {
            Who::Loop => self.at != Loop::Ask || self.woken || self.news,
            Who::Teller(n) => matches!(self.tellers[n], Teller::Told(told) if told < EVENTS),
            Who::Client => self.pipe > 0,
            Who::Closer => !self.closed,
        }
    }

    fn step(&mut self, who: Who) {
        match (who, self.at) {
            (Who::Loop, Loop::Look) => self.look(),
            (Who::Loop, Loop::Write) => {
                let written = self.staged.min(PIPE - self.pipe);
                self.ready = written > 0;
                self.staged -= written;
                self.pipe += written;
                self.at = Loop::Look;
            }
            (Who::Loop, Loop::Ask) => {
                self.ready |= std::mem::take(&mut self.news);
                self.woken = false;
                self.at = Loop::Look;
            }
            (Who::Teller(n), _) => {
                let (Teller::Told(told) | Teller::PushedBack(told)) = self.tellers[n];
                let sink = Sink::new(&self.shared, &["a", "b"][n].into());
                self.tellers[n] = match sink.session_event(&NewEvent::new("e", &1)) {
                    Ok(_) => Teller::Told(told + 1),
                    // Where it would block, it waits from the same moment on.
                    Err(SinkError::Full) => Teller::PushedBack(told),
                    Err(error) => panic!("{error}"),
                };
                self.hear();
            }
            (Who::Client, _) => {
                self.pipe = 0;
                self.news = true;
            }
            (Who::Closer, _) => {
                self.shared.act(Server::close);
                self.closed = true;
                self.hear();
            }
        }
    }

    /// What the loop does under the lock.
    fn look(&mut self) {
        let shared = self.shared.clone();
        let mut hub = shared.lock();
        // No more than one write may move is taken, so that the rest counts as waiting.
        while self.staged < PIPE && hub.server.backlog() > 0 {
            let output = hub.server.outgoing();
            let piece = output.bytes().len().min(PIPE - self.staged);
            self.staged += piece;
            output.consume(piece);
        }
        if self.make != Make::NeverTellsRoom && hub.has_room(shared.limit / 2) {
            shared.tell_room(&mut hub);
            for teller in &mut self.tellers {
                if let Teller::PushedBack(told) = *teller {
                    *teller = Teller::Told(told);
                }
            }
        }
        let writing = self.staged > 0 && self.ready;
        self.at = if writing { Loop::Write } else { Loop::Ask };
        hub.asleep = !writing && self.make != Make::NeverSaysSo;
    }

    /// Nothing can happen any more: whether all has been done that should have been.
    fn is_done(&mut self) -> bool {
        let backlog = self.shared.lock().server.backlog();
        let told = self.tellers.iter().all(|teller| *teller == Teller::Told(EVENTS));
        told && (backlog, self.staged, self.pipe) == (0, 0, 0)
    }

    /// Two that look the same go on the same way.
    fn looks(&self) -> impl Eq + std::hash::Hash + use<> {
        let mut hub = self.shared.lock();
        let hub = (hub.asleep, hub.server.backlog());
        let system = (self.pipe, self.ready, self.news, self.woken);
        (hub, self.at, self.staged, system, self.tellers, self.closed)
    }
}

/// Goes through all that can be reached; returns how many states that are, or the steps after which somebody waits for
/// ever.
fn explore(make: Make) -> Result<usize, Vec<Who>> {
    let all = [Who::Loop, Who::Teller(0), Who::Teller(1), Who::Client, Who::Closer];
    let mut seen = HashSet::new();
    let mut open: Vec<Vec<Who>> = [Vec::new()].into();
    while let Some(steps) = open.pop() {
        let mut world = World::new(make);
        steps.iter().for_each(|who| world.step(*who));
        if !seen.insert(world.looks()) {
            continue;
        }
        let next: Vec<_> = all.into_iter().filter(|who| world.can(*who)).collect();
        // The end of the connection wakes everybody, so it does not count as help.
        if next.iter().all(|who| *who == Who::Closer) && !world.is_done() {
            return Err(steps);
        }
        open.extend(next.into_iter().map(|who| [&steps[..], &[who]].concat()));
    }
    Ok(seen.len())
}

#[test]
fn nobody_is_left_asleep() {
    let states = explore(Make::AsItIs).unwrap_or_else(|steps| panic!("somebody waits for ever after {steps:?}"));
    assert!(states > 500, "{states} states only");
}

/// The search would see it.
#[test]
fn a_hand_over_with_a_gap_is_found() {
    assert!(explore(Make::NeverSaysSo).is_err());
    assert!(explore(Make::NeverTellsRoom).is_err());
}
