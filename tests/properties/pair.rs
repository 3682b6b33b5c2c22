//! Two peers joined by two streams that deliver what they like when they like: everything that was sent and not
//! withdrawn arrives, in order, and every call ends as its other side decided.

use std::collections::{BTreeMap, VecDeque};

use dsh_wire::peer::{CallId, Event, Peer, Reply};

use super::choices::Choices;

/// Operations until the bytes are used up, then everything is delivered.
pub(crate) fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut ends = [End::new(1), End::new(2)];
    while !choices.is_empty() {
        let side = choices.below(2);
        let [a, b] = &mut ends;
        let (here, there) = if side == 0 { (a, b) } else { (b, a) };
        match choices.below(8) {
            0 => here.request(),
            1 => here.notify([1, 9, 80, 80, 1000][choices.below(5)] * choices.below(20)),
            2 => here.settle(choices.byte().into()),
            3 => here.abort(choices.byte().into()),
            4 | 5 => {
                let n = choices.below(512);
                deliver(here, there, n);
            }
            6 => here.take_events(1),
            _ => here.take_events(usize::MAX),
        }
    }
    let [a, b] = &mut ends;
    // An answer can wait behind a request, and a request behind an answer.
    for round in 0.. {
        for n in [1, 3, 1 << 20] {
            deliver(a, b, n);
            deliver(b, a, n);
        }
        a.take_events(usize::MAX);
        b.take_events(usize::MAX);
        while !a.owed.is_empty() || !b.owed.is_empty() {
            a.settle(round);
            b.settle(round + 1);
        }
        if a.peer.outgoing().is_empty() && b.peer.outgoing().is_empty() {
            break;
        }
    }
    for (here, there) in [(&*a, &*b), (&*b, &*a)] {
        assert_eq!(here.peer.pending(), 0, "no call is left");
        assert!(here.calls.is_empty());
        assert_eq!(here.peer.replies_owed(), 0);
        assert_eq!(here.peer.lines().buffered(), 0);
        let arrived = &there.arrived;
        let sent: Vec<_> = here.sent.iter().filter(|number| arrived.contains(number)).collect();
        assert!(sent.into_iter().eq(arrived), "in order, and once");
        let missing = here.sent.iter().filter(|number| !arrived.contains(number));
        assert!(missing.into_iter().all(|number| here.given_up.contains(number)), "only what was given up is missing");
    }
}

/// One side and what it knows.
struct End {
    peer: Peer<u64>,
    /// The next number; each message carries one.
    next: u64,
    /// Numbers of the notifications and requests that were sent, in order.
    sent: Vec<u64>,
    /// Numbers that came from the other side, in order.
    arrived: Vec<u64>,
    calls: BTreeMap<u64, CallId>,
    given_up: Vec<u64>,
    owed: VecDeque<(Reply, u64)>,
}

impl End {
    fn new(seed: u64) -> Self {
        Self {
            peer: Peer::with_seed(seed),
            next: 0,
            sent: Vec::new(),
            arrived: Vec::new(),
            calls: BTreeMap::new(),
            given_up: Vec::new(),
            owed: VecDeque::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.sent.push(self.next);
        self.next
    }

    fn request(&mut self) {
        let number = self.number();
        let call = self.peer.request("ask", &BTreeMap::from([("n", number)]), number, None).unwrap();
        self.calls.insert(number, call);
    }

    fn notify(&mut self, size: usize) {
        let number = self.number();
        self.peer.notify("tell", &serde_json::json!({"n": number, "text": "\n\u{1f600}".repeat(size)})).unwrap();
    }

    /// Answers one of the requests that wait.
    fn settle(&mut self, which: u64) {
        let Some((reply, number)) = self.owed.remove(which as usize % self.owed.len().max(1)) else { return };
        if which & 1 == 0 {
            self.peer.answer(reply, &number).unwrap();
        } else {
            self.peer.refuse(reply, number as i64, "no", Some(&number)).unwrap();
        }
    }

    fn abort(&mut self, which: usize) {
        let Some((number, call)) = self.calls.iter().nth(which % self.calls.len().max(1)) else { return };
        let (number, call) = (*number, *call);
        assert_eq!(self.peer.abort(call), Some(number));
        assert_eq!(self.peer.abort(call), None);
        self.calls.remove(&number);
        self.given_up.push(number);
    }

    fn take_events(&mut self, at_most: usize) {
        for _ in 0..at_most {
            match self.peer.next_event() {
                None => break,
                Some(Event::Request { method, params, reply }) => {
                    assert_eq!(method, "ask");
                    let number = params.member("n").unwrap().as_u64().unwrap();
                    self.arrived.push(number);
                    self.owed.push_back((reply, number));
                }
                Some(Event::Notification { method, params }) => {
                    assert_eq!(method, "tell");
                    self.arrived.push(params.member("n").unwrap().as_u64().unwrap());
                }
                Some(Event::Response { tag, outcome, .. }) => {
                    let answer = match outcome {
                        Ok(result) => result.as_u64(),
                        Err(error) => {
                            assert_eq!(error.code().unwrap().as_u64(), error.data().unwrap().as_u64());
                            error.data().unwrap().as_u64()
                        }
                    };
                    assert_eq!(answer, Some(tag), "the answer to another call");
                    assert!(self.calls.remove(&tag).is_some());
                }
                Some(Event::Unmatched { outcome, .. }) => {
                    let number = outcome.map_or_else(|error| error.data().unwrap().as_u64(), |result| result.as_u64());
                    assert!(self.given_up.contains(&number.unwrap()), "only what was given up is unmatched");
                }
                Some(other) => panic!("{other:?}"),
            }
        }
    }
}

/// Moves up to `n` bytes.
fn deliver(from: &mut End, to: &mut End, n: usize) {
    let mut left = n;
    while left > 0 && !from.peer.outgoing().is_empty() {
        let output = from.peer.outgoing();
        let now = left.min(output.bytes().len());
        to.peer.push(&output.bytes()[..now]);
        output.consume(now);
        left -= now;
    }
}
