//! Every order in which the loop, agents and a client can meet: nobody is left asleep.
//!
//! All of it is real: the steps of the loop are those that [`Serving::run`] takes, on real pipes, and agents tell through
//! sinks. Only who goes next is chosen here, between any two times under the lock. A wake-up is sent when the lock is free
//! again, so it is a step of its own; an agent that is pushed back stands still until it is told of room, as it would at
//! the condition variable.

use std::collections::{HashSet, VecDeque};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::string::String;
use std::sync::LazyLock;

use super::*;
use crate::json::{Json, JsonBuf};
use crate::server::{NewEvent, Opening};
use crate::wire::InitializeParams;

/// Bytes of the pipe to the client.
const PIPE: usize = 4096;

/// Bytes of an event: it does not fit into the pipe, and while it waits agents are pushed back.
const EVENT: usize = PIPE + 1000;

/// Its data.
static DATA: LazyLock<JsonBuf> = LazyLock::new(|| JsonBuf::from_serialize(&"x".repeat(EVENT)).unwrap());

/// Events of each of the two agents.
const EVENTS: usize = 2;

/// What one step can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Who {
    Loop,
    /// Tells one event.
    Teller(usize),
    /// Does something that is never pushed back, once.
    Actor,
    /// The client reads all that it can.
    Reader,
    /// The client sends a request, once.
    Asker,
    /// The client ends its input, and with it everything.
    Ender,
    /// A wake-up of an agent arrives.
    Wake,
}

/// Who meets the loop, besides a client that reads and wake-ups. All at once would be too many orders.
const CASTS: [&[Who]; 4] = [
    &[Who::Teller(0), Who::Teller(1)],
    &[Who::Teller(0), Who::Actor],
    &[Who::Teller(0), Who::Asker],
    &[Who::Teller(0), Who::Ender],
];

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The loop does not say that it sleeps.
    SaysNothing,
    /// It says so when the lock is free again.
    SaysLate,
    /// Nobody is told of room.
    NoRoom,
}

struct Nobody;

impl AgentHost for Nobody {
    type Agent = NoAgent;

    fn open(&self, _: Opening, _: &InitializeParams, _: Sink) -> Result<NoAgent, Refusal> {
        Err("nobody is at home".into())
    }
}

struct NoAgent;

impl Agent for NoAgent {
    fn prompt(&mut self, _: Json<'_>, _: PromptResponder) {}

    fn working_directory(&mut self, _: Option<&JsonString>) -> Result<JsonString, Refusal> {
        Err("nobody is at home".into())
    }
}

struct World {
    fault: Fault,
    serving: Serving<Nobody>,
    /// What the loop does next; `None` is to look, unless it is time to ask.
    next: Option<Next>,
    /// With [`Fault::SaysLate`]: it is about to say so.
    late: bool,
    /// Events told, and whether the next one has been pushed back.
    tellers: [(usize, bool); 2],
    acted: bool,
    asked: bool,
    /// Where the wake-ups of the agents go at first.
    post: Pump,
    /// Those that have been sent and have not arrived.
    wakes: usize,
    requests: Option<PipeWriter>,
    answers: PipeReader,
    /// Lines that have come to the client.
    arrived: usize,
    /// What the system has to tell the loop, and of how many bytes, as far as it matters to tell two states apart.
    news: Vec<(Who, usize)>,
}

impl World {
    fn new(fault: Fault) -> Self {
        let (input, requests) = pipe().unwrap();
        let (answers, output) = pipe().unwrap();
        for fd in [
            OwnedFd::from(input.try_clone().unwrap()),
            output.try_clone().unwrap().into(),
            answers.try_clone().unwrap().into(),
        ] {
            rustix::io::ioctl_fionbio(fd, true).unwrap();
        }
        rustix::pipe::fcntl_setpipe_size(&output, PIPE).unwrap();
        let options = ServeOptions {
            max_backlog: 1000,
            deterministic: true,
            finish_within: Duration::MAX,
            ..ServeOptions::default()
        };
        let (nothing, nowhere) = pipe().unwrap();
        let post = Pump::new(nothing.into(), nowhere.into()).unwrap();
        let pump = Pump::new(input.into(), output.into()).unwrap();
        let mut serving = Serving::new(Nobody, pump, post.waker(), options).unwrap();
        // It will soon ask the system in between, with the writer on loan.
        serving.unasked = TURNS_WITHOUT_ASKING - 2;
        Self {
            fault,
            serving,
            next: None,
            late: false,
            tellers: [(0, false); 2],
            acted: false,
            asked: false,
            post,
            wakes: 0,
            requests: Some(requests),
            answers,
            arrived: 0,
            news: Vec::new(),
        }
    }

    /// Whether one of the others than the loop can do something.
    fn may(&self, who: Who) -> bool {
        match who {
            Who::Loop => false,
            Who::Teller(n) => matches!(self.tellers[n], (told, false) if told < EVENTS),
            Who::Actor => !self.acted,
            Who::Reader => self.unread() > 0,
            Who::Wake => self.wakes > 0,
            Who::Asker => !self.asked && self.requests.is_some(),
            Who::Ender => self.requests.is_some(),
        }
    }

    /// Bytes in the pipe to the client.
    fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.answers).unwrap()
    }

    /// Takes a step; returns whether anything has come of it.
    fn step(&mut self, who: Who) -> bool {
        match who {
            Who::Loop => return self.step_loop(),
            Who::Teller(n) => {
                let sink = Sink::new(&self.serving.shared, &["a", "b"][n].into());
                let told =
                    sink.tell_now(self.serving.shared.lock(), &NewEvent::new("e", DATA.as_json().get().as_bytes()));
                self.tellers[n] = match told {
                    Ok(told) => told.map(|_| (self.tellers[n].0 + 1, false)).unwrap(),
                    Err(_) => (self.tellers[n].0, true),
                };
            }
            Who::Actor => {
                Sink::new(&self.serving.shared, &"c".into()).set_running(true);
                self.acted = true;
            }
            Who::Reader => {
                let mut bytes = [0; PIPE];
                let len = self.answers.read(&mut bytes).unwrap();
                self.arrived += memchr::memchr_iter(b'\n', &bytes[..len]).count();
                self.news.push((who, len));
            }
            Who::Asker => {
                self.requests.as_ref().unwrap().write_all(b"{\"id\":1,\"method\":\"nope\"}\n").unwrap();
                self.asked = true;
                self.news.push((who, 0));
            }
            Who::Ender => {
                self.requests = None;
                self.news.push((who, 0));
            }
            Who::Wake => {
                self.serving.pump.waker().wake();
                self.wakes -= 1;
                self.news.push((who, 0));
            }
        }
        self.post.ask(Some(Duration::ZERO)).unwrap();
        self.wakes += usize::from(self.post.has_heard());
        true
    }

    fn step_loop(&mut self) -> bool {
        if std::mem::take(&mut self.late) {
            self.serving.shared.lock().asleep = true;
            return true;
        }
        match self.next.take() {
            None if self.serving.unasked >= TURNS_WITHOUT_ASKING => {
                self.serving.ask(Some(Duration::ZERO)).unwrap();
                self.news.clear();
            }
            None => {
                let pushed_back = self.serving.shared.lock().pushed_back;
                let next = self.serving.look();
                let mut hub = self.serving.shared.lock();
                if pushed_back && !hub.pushed_back && self.fault != Fault::NoRoom {
                    self.tellers.iter_mut().for_each(|teller| teller.1 = false);
                }
                if matches!(self.fault, Fault::SaysNothing | Fault::SaysLate) {
                    self.late = self.fault == Fault::SaysLate && hub.asleep;
                    hub.asleep = false;
                }
                self.next = Some(next);
            }
            Some(Next::Work(tasks)) => self.serving.work(tasks),
            Some(Next::Wait) => {
                self.serving.ask(Some(Duration::ZERO)).unwrap();
                self.news.clear();
                if !self.serving.pump.has_heard() {
                    // It waits on.
                    self.next = Some(Next::Wait);
                    return false;
                }
            }
            over => {
                self.next = over;
                return false;
            }
        }
        true
    }

    /// The loop waits and the client has nothing to read: whether all that was told has arrived, and nobody is held up.
    /// What others may still do does not count as help.
    fn check(&self) -> Result<(), String> {
        let arrived = self.arrived;
        let told = self.tellers[0].0 + self.tellers[1].0 + usize::from(self.acted) + usize::from(self.asked);
        let free = !self.tellers.iter().any(|(_, pushed_back)| *pushed_back);
        let (done, loop_is) = match &self.next {
            // What was told after the end is not sent.
            Some(Next::Over(served)) => (matches!(served, Served::InputEnded), "over"),
            _ => (arrived == told && self.requests.is_some(), "waiting"),
        };
        if done && free {
            return Ok(());
        }
        Err(format!("{arrived} of {told} lines have arrived, the loop is {loop_is}, the agents {:?}", self.tellers))
    }

    /// Two that look the same go on in the same way.
    fn looks(&mut self) -> impl Eq + std::hash::Hash + use<> {
        let next = match &self.next {
            None => 0,
            Some(Next::Work(_)) => 1,
            Some(Next::Wait) => 2,
            Some(Next::Over(_)) => 3,
        };
        let (pump, loan) = (&self.serving.pump, self.serving.loan.as_ref());
        let pump = (loan.map(Loan::progress), pump.readiness(), pump.input_open());
        let mut hub = self.serving.shared.lock();
        let hub = (hub.asleep, hub.pushed_back, hub.server.backlog(), hub.is_closing());
        let mut news = self.news.clone();
        news.sort_unstable();
        news.dedup();
        // Which of the two agents is which does not matter.
        let mut tellers = self.tellers;
        tellers.sort_unstable();
        let done = (self.acted, self.asked, self.requests.is_some());
        let next = (next, self.serving.unasked);
        (hub, pump, self.unread(), next, self.late, tellers, done, self.wakes, news)
    }
}

/// Goes through all that can be reached; returns how many states that are, or the steps after which somebody waits in
/// vain.
fn explore(cast: &[Who], fault: Fault) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open: VecDeque<Vec<Who>> = [Vec::new()].into();
    while let Some(mut steps) = open.pop_front() {
        let mut world = World::new(fault);
        for who in &steps {
            world.step(*who);
        }
        // One way goes on from here, the others when their turn comes.
        while seen.insert(world.looks()) {
            let cast = cast.iter().copied().chain([Who::Reader, Who::Wake]);
            let mut others: Vec<_> = cast.filter(|who| world.may(*who)).collect();
            let mut next = Who::Loop;
            // Whether the loop can do something is seen when it tries.
            if !world.step(Who::Loop) {
                if !others.iter().any(|who| matches!(who, Who::Reader | Who::Wake)) {
                    world.check().map_err(|error| format!("after {steps:?}: {error}"))?;
                }
                let Some(other) = others.pop() else { break };
                world.step(other);
                next = other;
            }
            open.extend(others.into_iter().map(|who| [&steps[..], &[who]].concat()));
            steps.push(next);
        }
    }
    Ok(seen.len())
}

#[test]
fn nobody_is_left_asleep() {
    for cast in CASTS {
        let states = explore(cast, Fault::None).unwrap_or_else(|error| panic!("{error}"));
        std::eprintln!("{states} states with {cast:?}");
        assert!(states > 1000, "{states} states only with {cast:?}");
    }
}

/// The search would see it.
#[test]
fn a_hand_over_with_a_gap_is_found() {
    for fault in [Fault::SaysNothing, Fault::SaysLate, Fault::NoRoom] {
        assert!(CASTS.iter().any(|cast| explore(cast, fault).is_err()), "{fault:?}");
    }
}
