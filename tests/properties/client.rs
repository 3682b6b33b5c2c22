//! A client under an arbitrary runtime, beside a peer that is told the same and a model of all above it, which does
//! each thing the slow way: how calls end, what the subscriptions hold, which notifications make a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use dsh_wire::client::{Call, Client, Delivery, Event, Failure, Filter, Limits, Observed, Policy, Run, SubscriptionId};
use dsh_wire::json::{Json, JsonBuf, JsonString};
use dsh_wire::peer::{self, AbortToken, CallId, DropReason, Peer, Reply, SendError};
use dsh_wire::wire::{Notification, NotificationBody, NotificationBuf, PromptResult, Status};

use super::choices::Choices;
use super::lines::pieces;
use super::teardown;

/// First whether the ladder of the teardown is what is looked at; then operations until the bytes are used up.
pub(crate) fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let limit = match choices.below(8) {
        0 => return teardown::check(&mut choices),
        1 => 300,
        _ => 64 << 20,
    };
    let mut world = World::new(limit);
    while !choices.is_empty() {
        world.step(&mut choices);
        world.compare();
    }
    world.finish();
}

/// Names of sessions as a runtime writes them: the second is the first, and the last is no Unicode.
const SESSIONS: [&str; 5] = [r#""s""#, r#""\u0073""#, r#""t""#, r#""u""#, r#""\ud83d""#];

struct World {
    client: Client,
    /// Does what the client's own peer has to do.
    mirror: Peer<()>,
    now: Duration,
    /// By their numbers.
    calls: Vec<Made>,
    /// Ended by their deadline or token, and not told.
    given_up: VecDeque<usize>,
    tokens: Vec<AbortToken>,
    input_ended: bool,
    output_ended: bool,

    subscriptions: Vec<Subscription>,
    parents: BTreeMap<JsonString, JsonString>,
    reports_status: bool,
    takes_requests: bool,
    /// Requests of the runtime that wait to be taken.
    requests: VecDeque<(JsonString, JsonBuf, Reply)>,
    /// Those that wait for their answer; the second is the mirror's.
    replies: Vec<(Reply, Reply)>,
    runs: Vec<Watched>,
    next: u64,
    counted: [u64; 10],
}

struct Made {
    call: Call<JsonBuf>,
    id: String,
    deadline: Option<Duration>,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Waiting,
    Ended(Result<JsonBuf, Failure>),
    Gone,
}

struct Subscription {
    id: SubscriptionId,
    method: Option<&'static str>,
    /// And whether what comes from it counts.
    session: Option<(JsonString, bool)>,
    even: bool,
    policy: Policy,
    /// What waits, and whether it has to stay.
    waits: VecDeque<(NotificationBuf, bool)>,
    lagged: u64,
    high_water: usize,
}

/// A run and what it has been shown.
struct Watched {
    run: Run,
    session: JsonString,
    until_idle: bool,
    reports_status: bool,
    /// All that concerned it.
    log: Vec<Shown>,
    /// With how many of them the answer came.
    answer: Option<(usize, PromptResult)>,
    inside: Vec<u64>,
    last: bool,
}

struct Shown {
    n: u64,
    /// Of the session itself.
    own: bool,
    is_idle: bool,
    is_finished: bool,
    /// An event that stands in a turn, of a runtime that has reported no status.
    is_legacy: bool,
    receipts: Vec<JsonString>,
}

impl World {
    fn new(limit: usize) -> Self {
        Self {
            client: Client::with_seed_and_limit(3, limit),
            mirror: Peer::with_seed_and_limit(3, limit),
            now: Duration::ZERO,
            calls: Vec::new(),
            given_up: VecDeque::new(),
            tokens: Vec::new(),
            input_ended: false,
            output_ended: false,
            subscriptions: Vec::new(),
            parents: BTreeMap::new(),
            reports_status: false,
            takes_requests: false,
            requests: VecDeque::new(),
            replies: Vec::new(),
            runs: Vec::new(),
            next: 0,
            counted: [0; 10],
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(32) {
            0..=3 => self.start(choices),
            4..=11 => {
                let line = self.line(choices);
                self.push(&line, choices);
            }
            12 => {
                let n = choices.below(40);
                let bytes = choices.take(n);
                self.push(bytes, choices);
            }
            13..=17 => {
                for _ in 0..=choices.below(4) {
                    self.event();
                }
            }
            18 => {
                self.now += Duration::from_millis(choices.byte().into());
                self.expire();
            }
            19 => {
                if choices.flag() || self.tokens.is_empty() {
                    self.tokens.push(AbortToken::new("no more"));
                } else {
                    self.tokens[choices.below(self.tokens.len())].abort();
                }
                self.poll_aborts();
            }
            20 | 21 if !self.calls.is_empty() => self.take(choices.below(self.calls.len())),
            22 if !self.calls.is_empty() => {
                let index = choices.below(self.calls.len());
                let made = &mut self.calls[index];
                self.client.abandon(made.call.id());
                self.mirror.abort(made.call.id());
                made.state = State::Gone;
            }
            23 => self.subscribe(choices),
            24 if !self.subscriptions.is_empty() => {
                let index = choices.below(self.subscriptions.len());
                for _ in 0..=choices.below(8) {
                    self.deliver(index);
                }
                if choices.below(8) == 0 {
                    let subscription = self.subscriptions.remove(index);
                    assert!(self.client.unsubscribe(subscription.id) && !self.client.unsubscribe(subscription.id));
                    assert!(self.client.is_deaf(subscription.id));
                    assert_eq!(self.client.next_delivery(subscription.id), None);
                }
            }
            25 => self.asked(choices),
            26 if self.runs.len() < 3 => {
                let session = JsonString::from(Json::new(SESSIONS[choices.below(5)]).unwrap().as_str().unwrap());
                let (run, until_idle) = (self.client.run(session.clone()), choices.below(4) > 0);
                self.runs.push(Watched {
                    run: if until_idle { run } else { run.until_finished() },
                    session,
                    until_idle,
                    reports_status: self.reports_status,
                    log: Vec::new(),
                    answer: None,
                    inside: Vec::new(),
                    last: false,
                });
            }
            27 | 28 if !self.runs.is_empty() => {
                let index = choices.below(self.runs.len());
                if choices.below(4) == 0 {
                    let mut over = self.runs.remove(index);
                    over.run.finish();
                    assert!(over.run.is_finished() && over.run.held() == 0 && over.run.next_held().is_none());
                } else if self.runs[index].answer.is_none() {
                    let result = match choices.below(4) {
                        0 => PromptResult::Accepted,
                        n => PromptResult::Enqueued { message_id: format!("m{n}").into() },
                    };
                    self.runs[index].answered(result);
                }
            }
            29 => {
                let n = choices.below(1 << 10);
                self.client.outgoing().consume(n);
                self.mirror.outgoing().consume(n);
            }
            30 => {
                let told = self.client.notify("tell", &7).is_ok();
                assert_eq!(told, self.mirror.notify("tell", &7).is_ok());
                assert_eq!(told, !self.output_ended);
            }
            _ => match choices.below(16) {
                0 => {
                    self.client.end_input();
                    self.mirror.end_input();
                    self.input_ended = true;
                }
                1 => {
                    self.client.end_output();
                    self.mirror.end_output();
                    self.output_ended = true;
                }
                _ => self.expire(),
            },
        }
    }

    fn start(&mut self, choices: &mut Choices<'_>) {
        let deadline = match choices.below(4) {
            0 => None,
            1 => Some([Duration::ZERO, Duration::MAX][choices.below(2)]),
            _ => Some(self.now + Duration::from_millis(choices.byte().into())),
        };
        let token = if choices.flag() { self.tokens.get(choices.below(self.tokens.len() + 1)) } else { None };
        let params = "x".repeat(choices.below(100));
        let made = self.client.start::<JsonBuf>("ask", &params, &Limits { deadline, token });
        match (made, self.mirror.request("ask", &params, (), token)) {
            (Ok(call), Ok(id)) => {
                assert_eq!((call.id(), self.calls.len()), (id, self.calls.len()));
                let written = self.mirror.outgoing().chunks().last().unwrap().to_vec();
                let id = String::from_utf8(written).unwrap().split('"').nth(7).unwrap().into();
                self.calls.push(Made { call, id, deadline, state: State::Waiting });
            }
            (Err(SendError::Closed), Err(SendError::Closed)) => assert!(self.input_ended || self.output_ended),
            (Err(SendError::Aborted(_)), Err(SendError::Aborted(_))) => assert!(token.unwrap().is_aborted()),
            (ours, theirs) => panic!("{ours:?}, but {theirs:?}"),
        }
    }

    /// A line that a runtime could send, good or bad; notifications are numbered.
    fn line(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        self.next += 1;
        let n = self.next;
        let session = SESSIONS[choices.below(5)];
        let padding = if choices.below(8) == 0 { "\\u00e9".repeat(choices.byte().into()) } else { String::new() };
        let (method, params) = match choices.below(16) {
            0 | 1 if !self.calls.is_empty() => {
                let id = &self.calls[choices.below(self.calls.len())].id;
                let outcome = ["\"result\":", "\"error\":{},\"result\":", "\"x\":"][choices.below(3)];
                return format!("{{\"id\":\"{id}\",{outcome}\"{padding}\"}}\n").into();
            }
            2 => return format!("{{\"id\":{n},\"method\":\"ask\",\"params\":{{\"x\":\"{padding}\"}}}}\n").into(),
            3 => return format!("noise {padding}\n").into(),
            4..=8 => {
                let (kind, data) = match choices.below(8) {
                    0..=3 => {
                        let id = choices.below(4);
                        ("agent/inbox/spliced", format!(r#"{{"inserted":[{{"id":"m{id}"}},7]}}"#))
                    }
                    4 => ("assistant/message", r#"{"content":[{"type":"text","text":"hello"}]}"#.into()),
                    5 => ("turn/end", r#"{"reason":"completed"}"#.into()),
                    6 => ("tool/call", "null".into()),
                    _ => ("other", "[]".into()),
                };
                (
                    "session.event",
                    format!(r#""event":{{"type":"{kind}","seq":{n},"time":1,"data":{data}}},"sessionId":{session}"#),
                )
            }
            9..=11 => {
                let status = ["running", "idle", "idle", "odd"][choices.below(4)];
                ("session.status", format!(r#""sessionId":{session},"status":"{status}""#))
            }
            12 => ("session.finished", format!(r#""sessionId":{session},"status":"ok""#)),
            13 => {
                let child = SESSIONS[choices.below(5)];
                ("subagent.started", format!(r#""parentSessionId":{session},"childSessionId":{child}"#))
            }
            14 => ("session.event", format!(r#""event":7,"sessionId":{session}"#)),
            _ => ("tick", format!(r#""sessionId":{session},"childSessionId":{}"#, SESSIONS[choices.below(5)])),
        };
        format!("{{\"method\":\"{method}\",\"params\":{{\"n\":{n},{params},\"x\":\"{padding}\"}}}}\n").into()
    }

    fn push(&mut self, bytes: &[u8], choices: &mut Choices<'_>) {
        let cuts = [choices.byte().into(), choices.byte().into()];
        for piece in pieces(bytes, &cuts) {
            self.client.push(piece);
            self.mirror.push(piece);
        }
    }

    fn expire(&mut self) {
        self.client.expire(self.now);
        let is_due = |made: &Made| made.state == State::Waiting && made.deadline.is_some_and(|at| at <= self.now);
        let mut due: Vec<_> = (0..self.calls.len()).filter(|index| is_due(&self.calls[*index])).collect();
        due.sort_by_key(|index| (self.calls[*index].deadline, *index));
        for index in due {
            assert!(self.mirror.abort(self.calls[index].call.id()).is_some());
            self.give_up(index, Failure::TimedOut);
        }
    }

    fn poll_aborts(&mut self) {
        self.client.poll_aborts();
        let waited = self.mirror.pending();
        self.mirror.poll_aborts();
        for _ in self.mirror.pending()..waited {
            let Some(peer::Event::Aborted { call, reason, .. }) = self.mirror.next_event() else { panic!() };
            self.give_up(self.index_of(call), Failure::Aborted(reason));
        }
    }

    fn give_up(&mut self, index: usize, why: Failure) {
        self.calls[index].state = State::Ended(Err(why));
        self.given_up.push_back(index);
        self.counted[9] += 1;
    }

    fn index_of(&self, call: CallId) -> usize {
        self.calls.iter().position(|made| made.call.id() == call).expect("a call that was made")
    }

    fn ended(&mut self, call: CallId, end: Result<JsonBuf, Failure>) -> usize {
        let index = self.index_of(call);
        assert_eq!(self.calls[index].state, State::Waiting, "it ends once");
        self.calls[index].state = State::Ended(end);
        index
    }

    fn take(&mut self, index: usize) {
        let made = &mut self.calls[index];
        assert_eq!(self.client.has_ended(made.call.id()), matches!(made.state, State::Ended(_)));
        match (self.client.take(&made.call), std::mem::replace(&mut made.state, State::Gone)) {
            (Some(end), State::Ended(ours)) => assert_eq!(end, ours),
            (None, State::Waiting) => made.state = State::Waiting,
            (None, State::Gone) => {}
            (end, ours) => panic!("{end:?}, but {ours:?}"),
        }
        assert!(self.client.take(&made.call).is_none(), "once");
    }

    /// The next event of both.
    fn event(&mut self) -> bool {
        while let Some(index) = self.given_up.pop_front() {
            // Nobody wants to hear of an end that has been taken.
            if self.calls[index].state != State::Gone {
                let call = self.calls[index].call.id();
                assert!(matches!(self.client.next_event(), Some(Event::Ended(ended)) if ended == call));
                return true;
            }
        }
        let (incoming, mut outgoing) = self.mirror.split();
        let theirs = incoming.into_next_event();
        let ours = self.client.next_event();
        let (ours, theirs) = match (ours, theirs) {
            (None, None) => return false,
            (Some(ours), Some(theirs)) => (ours, theirs),
            (ours, theirs) => panic!("{ours:?}, but {theirs:?}"),
        };
        let ended = match (ours, theirs) {
            (Event::Notification { notification, tree }, peer::Event::Notification { method, params }) => {
                assert_eq!((notification.method, notification.params), (method, params));
                self.counted[0] += 1;
                self.counted[1] += u64::from(Notification::decode(method, params).is_err());
                self.reports_status |= notification.status().is_some();
                if let NotificationBody::SubagentStarted(started) = &notification.body
                    && started.parent_session_id != started.child_session_id
                {
                    self.parents.insert(started.child_session_id.to_buf(), started.parent_session_id.to_buf());
                }
                for subscription in &mut self.subscriptions {
                    subscription.offer(&notification, &self.parents);
                }
                for observed in &mut self.runs {
                    observed.observe(&notification, &self.parents, |run| run.observe(&notification, tree));
                }
                return true;
            }
            (Event::Ended(ours), peer::Event::Response { call, outcome, .. }) => {
                assert_eq!(ours, call);
                self.counted[2] += 1;
                (call, outcome.map(Json::to_buf).map_err(|error| Failure::Rpc(error.into())))
            }
            (Event::Ended(ours), peer::Event::Lost { call, why, .. }) => {
                assert_eq!(ours, call);
                self.counted[9] += 1;
                (call, Err(Failure::Lost(why)))
            }
            (Event::Unmatched { id, outcome }, peer::Event::Unmatched { id: theirs, outcome: same }) => {
                assert_eq!((id, outcome), (theirs, same));
                self.counted[3] += 1;
                return true;
            }
            (Event::Request, peer::Event::Request { method, params, reply }) => {
                assert!(self.takes_requests);
                self.counted[4] += 1;
                self.requests.push_back((method.to_buf(), params.to_buf(), reply));
                return true;
            }
            (Event::Refused { method }, peer::Event::Request { method: theirs, reply, .. }) => {
                assert!(!self.takes_requests && method == theirs);
                self.counted[4] += 1;
                self.counted[5] += 1;
                assert_eq!(outgoing.refuse_method(reply, method).is_ok(), !self.output_ended);
                return true;
            }
            (Event::Refused { method }, peer::Event::RequestTooLong { method: theirs, reply, limit }) => {
                assert_eq!(method, theirs);
                self.counted[4] += 1;
                self.counted[5] += 1;
                assert_eq!(outgoing.refuse_too_long(reply, limit).is_ok(), !self.output_ended);
                return true;
            }
            (Event::Dropped(ours), peer::Event::Dropped(theirs)) => {
                assert_eq!(
                    (ours.number, ours.len, ours.prefix, ours.why),
                    (theirs.number, theirs.len, theirs.prefix, theirs.why)
                );
                let which = match ours.why {
                    DropReason::NotAFrame(_) => 6,
                    DropReason::TooLong { .. } => 7,
                    _ => 8,
                };
                self.counted[which] += 1;
                return true;
            }
            (ours, theirs) => panic!("{ours:?}, but {theirs:?}"),
        };
        self.ended(ended.0, ended.1);
        true
    }

    fn subscribe(&mut self, choices: &mut Choices<'_>) {
        if self.subscriptions.len() == 4 {
            return;
        }
        let method = [None, None, Some("session.event"), Some("tick")][choices.below(4)];
        let session = JsonString::from(Json::new(SESSIONS[choices.below(5)]).unwrap().as_str().unwrap());
        let (tree, even) = (choices.flag(), choices.below(4) == 0);
        let session = if choices.flag() { Some((session, tree)) } else { None };
        let policy = match choices.below(4) {
            0 => Policy::bounded(choices.below(4)),
            1 => Policy::Bounded { items: 100, bytes: choices.below(1000) },
            _ => Policy::Lossless,
        };
        let mut filter = Filter::all();
        if let Some(method) = method {
            filter = filter.method(method);
        }
        if let Some((session, tree)) = &session {
            filter = if *tree { filter.session_tree(session.clone()) } else { filter.session(session.clone()) };
        }
        if even {
            filter = filter.matching(|notification| number(notification.params).is_multiple_of(2));
        }
        let id = self.client.subscribe("a name", filter, policy);
        assert!(!self.client.is_deaf(id));
        self.subscriptions.push(Subscription {
            id,
            method,
            session,
            even,
            policy,
            waits: VecDeque::new(),
            lagged: 0,
            high_water: 0,
        });
    }

    /// The next delivery of both; says whether there was one.
    fn deliver(&mut self, index: usize) -> bool {
        let subscription = &mut self.subscriptions[index];
        let ours = self.client.next_delivery(subscription.id);
        let expected = match std::mem::take(&mut subscription.lagged) {
            0 => subscription.waits.pop_front().map(|(buf, _)| Delivery::Notification(buf)),
            lagged => Some(Delivery::Lagged(lagged)),
        };
        assert_eq!(ours, expected);
        ours.is_some()
    }

    /// The requests of the runtime.
    fn asked(&mut self, choices: &mut Choices<'_>) {
        match choices.below(4) {
            0 => {
                self.takes_requests = choices.flag();
                self.client.take_requests(self.takes_requests);
            }
            1 | 2 => match (self.client.next_request(), self.requests.pop_front()) {
                (None, None) => {}
                (Some(request), Some((method, params, reply))) => {
                    assert_eq!((&request.method, &request.params), (&method, &params));
                    assert_eq!(request.reply.id(), reply.id());
                    self.replies.push((request.reply, reply));
                }
                (ours, theirs) => panic!("{ours:?}, but {theirs:?}"),
            },
            _ => {
                let Some((reply, mirrored)) = self.replies.pop() else { return };
                let (ours, theirs) = if choices.flag() {
                    (self.client.answer(reply, &1), self.mirror.answer(mirrored, &1))
                } else {
                    (self.client.refuse(reply, 1, "no", Some(&2)), self.mirror.refuse(mirrored, 1, "no", Some(&2)))
                };
                assert_eq!((ours.is_ok(), theirs.is_ok()), (!self.output_ended, !self.output_ended));
            }
        }
    }

    fn compare(&mut self) {
        assert_eq!(self.client.outgoing().len(), self.mirror.outgoing().len());
        assert!(self.client.outgoing().chunks().eq(self.mirror.outgoing().chunks()));
        assert_eq!(self.client.pending(), self.mirror.pending());
        assert_eq!(self.client.has_tokens(), self.mirror.has_tokens());
        let waiting: Vec<_> = self.calls.iter().filter(|made| made.state == State::Waiting).collect();
        assert_eq!(waiting.len(), self.client.pending());
        assert_eq!(self.client.next_deadline(), waiting.iter().filter_map(|made| made.deadline).min());
        for subscription in &self.subscriptions {
            assert_eq!(self.client.high_water(subscription.id), Some(subscription.high_water));
        }
        let held = self.subscriptions.iter().map(Subscription::held).max().unwrap_or_default();
        let requests = self
            .requests
            .iter()
            .map(|(method, params, _)| method.as_json_str().get().len() + params.as_json().get().len());
        let most = [requests.sum(), self.mirror.answers_waiting(), held].into_iter().find(|bytes| *bytes > 0);
        assert_eq!(self.client.backlog_over(0).map(|(_, bytes)| bytes), most);
        let counters = self.client.counters();
        let counted = [
            counters.notifications,
            counters.malformed,
            counters.responses,
            counters.unmatched,
            counters.requests,
            counters.refused,
            counters.dropped_no_frame(),
            counters.dropped_too_long,
            counters.dropped_unterminated,
            counters.calls_failed,
        ];
        assert_eq!(counted, self.counted);
        for observed in &self.runs {
            observed.compare();
        }
    }

    /// The input ends; every call ends, and every queue can be emptied.
    fn finish(mut self) {
        self.client.end_input();
        self.mirror.end_input();
        self.input_ended = true;
        while self.event() {}
        self.compare();
        assert_eq!((self.client.pending(), self.client.next_deadline()), (0, None));
        assert!(self.calls.iter().all(|made| made.state != State::Waiting));
        (0..self.calls.len()).for_each(|index| self.take(index));
        for index in 0..self.subscriptions.len() {
            while self.deliver(index) {}
        }
        self.takes_requests = false;
        while self.client.next_request().is_some() {}
        let waits = self.client.outgoing().len();
        self.client.outgoing().consume(waits);
        assert_eq!(self.client.backlog_over(0), None);
    }
}

impl Subscription {
    fn offer(&mut self, notification: &Notification<'_>, parents: &BTreeMap<JsonString, JsonString>) {
        let is_about = match &self.session {
            None => true,
            Some((session, true)) => concerns(parents, session, notification),
            Some((session, false)) => notification.session_id().is_some_and(|about| about == session.as_json_str()),
        };
        if self.method.is_some_and(|method| notification.method != method)
            || !is_about
            || self.even && number(notification.params) % 2 == 1
        {
            return;
        }
        let must_stay =
            matches!(notification.body, NotificationBody::SessionStatus(_) | NotificationBody::SessionFinished(_));
        self.waits.push_back((notification.to_buf(), must_stay));
        if let Policy::Bounded { items, bytes } = self.policy {
            loop {
                let droppable: Vec<_> = (0..self.waits.len()).filter(|index| !self.waits[*index].1).collect();
                let total: usize = droppable.iter().map(|index| size(&self.waits[*index].0)).sum();
                if droppable.len() <= items && total <= bytes {
                    break;
                }
                self.waits.remove(droppable[0]);
                self.lagged += 1;
            }
        }
        self.high_water = self.high_water.max(self.waits.len());
    }

    /// Bytes that may not be dropped.
    fn held(&self) -> usize {
        let all = self.policy == Policy::Lossless;
        self.waits.iter().filter(|(_, must_stay)| all || *must_stay).map(|(buf, _)| size(buf)).sum()
    }
}

impl Watched {
    fn observe(
        &mut self,
        notification: &Notification<'_>,
        parents: &BTreeMap<JsonString, JsonString>,
        observe: impl FnOnce(&mut Run) -> Observed,
    ) {
        self.reports_status |= notification.status().is_some();
        let (was_over, before) = (self.run.is_finished(), self.inside.len());
        let place = observe(&mut self.run);
        let concerned = concerns(parents, &self.session, notification);
        if was_over || !concerned {
            assert_eq!(place, Observed::Unrelated);
            return;
        }
        let own = notification.session_id().is_some_and(|session| session == self.session.as_json_str());
        let event = notification.event();
        let kind = event.map(|event| event.kind.to_string_lossy().into_owned()).unwrap_or_default();
        let of_a_turn = ["assistant/", "step/", "tool/"].iter().any(|family| kind.starts_with(family));
        let inserted = event.filter(|_| kind == "agent/inbox/spliced").and_then(|event| event.data.member("inserted"));
        let ids = inserted.into_iter().flat_map(Json::elements).filter_map(|message| message.member("id")?.as_str());
        let n = number(notification.params);
        self.log.push(Shown {
            n,
            own,
            is_idle: own && notification.status() == Some(Status::Idle),
            is_finished: own && matches!(notification.body, NotificationBody::SessionFinished(_)),
            is_legacy: own && of_a_turn && !self.reports_status,
            receipts: ids.map(JsonString::from).collect(),
        });
        self.note(place, n);
        self.drain();
        if place == Observed::Unrelated {
            assert_eq!(self.inside.len(), before);
        }
    }

    fn answered(&mut self, result: PromptResult) {
        self.run.answered(&result);
        self.answer = Some((self.log.len(), result));
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((buf, place)) = self.run.next_held() {
            assert!(matches!(place, Observed::Related | Observed::Last));
            self.note(place, number(buf.params.as_json()));
        }
    }

    fn note(&mut self, place: Observed, n: u64) {
        if let Observed::Related | Observed::Last = place {
            assert!(!self.last, "the last one was told");
            self.inside.push(n);
        }
        self.last |= place == Observed::Last;
        assert!(!self.last || self.run.is_finished() && self.run.held() == 0);
    }

    /// What belongs to the run and whether it is over, judged by all that it has been shown.
    fn compare(&self) {
        let answered_at = self.answer.as_ref().map_or(self.log.len(), |(at, _)| *at);
        let legacy = self.log[..answered_at].iter().any(|shown| shown.is_legacy);
        let receipt = |id: &JsonString| self.log.iter().position(|shown| shown.own && shown.receipts.contains(id));
        let start = match &self.answer {
            _ if legacy => Some(0),
            None => None,
            Some((_, PromptResult::Accepted)) => Some(0),
            Some((_, PromptResult::Enqueued { message_id })) => receipt(message_id),
            Some((_, other)) => panic!("{other:?}"),
        };
        let (mut expected, mut over, mut finished) = (Vec::new(), false, false);
        for (index, shown) in self.log.iter().enumerate().skip(start.unwrap_or(self.log.len())) {
            if index == answered_at && finished && self.until_idle {
                break;
            }
            expected.push(shown.n);
            // Of a runtime that answers after the turn, the answer is the end.
            finished |= legacy && shown.is_finished && index < answered_at;
            if self.until_idle && (shown.is_idle || shown.is_finished && !(legacy && index < answered_at)) {
                over = true;
                break;
            }
        }
        over |= self.until_idle && finished && self.answer.is_some();
        assert_eq!((&self.inside, self.run.is_finished()), (&expected, over), "of {:?}", self.session);
    }
}

/// By the way up from the session.
fn concerns(parents: &BTreeMap<JsonString, JsonString>, root: &JsonString, notification: &Notification<'_>) -> bool {
    let child = notification.params.member("childSessionId").and_then(Json::as_str);
    let mut at = notification.session_id().map(JsonString::from);
    let mut seen = BTreeSet::new();
    while let Some(session) = at.filter(|session| seen.insert(session.clone())) {
        if session == *root {
            return true;
        }
        at = parents.get(&session).cloned();
    }
    child.is_some_and(|child| child == root.as_json_str())
}

/// What a notification counts for that waits.
fn size(buf: &NotificationBuf) -> usize {
    buf.method.as_json_str().get().len() + buf.params.as_json().get().len() + 64
}

fn number(params: Json<'_>) -> u64 {
    params.member("n").and_then(Json::as_u64).unwrap_or_default()
}
