//! A server under an arbitrary client and an arbitrary host, beside a model of what the two know: each request is
//! answered once or owed for a reason, sessions are opened and released once, and what is told of them adds up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dsh_wire::frame::{Frame, INTERNAL_ERROR, Outcome};
use dsh_wire::json::{Json, JsonBuf, JsonString};
use dsh_wire::peer::{CallId, Event, Peer, SendError};
use dsh_wire::server::{
    DirectoryReply, Finished, NewEvent, Opening, Phase, PromptReply, Refusal, RouteReply, Server, Task, Unanswered,
};
use dsh_wire::wire::StopReason;

use super::choices::Choices;
use super::lines::pieces;
use super::peer::Unwritable;

/// First the settings, then operations until the bytes are used up; then everything is brought to its end.
pub(crate) fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let limit = [64 << 20, 64 << 20, 200][choices.below(3)];
    let mut world = World::new(limit, choices.flag());
    while !choices.is_empty() {
        world.step(&mut choices);
        world.compare();
    }
    world.finish();
}

/// Names of sessions as a client writes them: the second is the first, and the last is no Unicode.
const SESSIONS: [&str; 5] = [r#""s""#, r#""\u0073""#, r#""t""#, r#""""#, r#""\ud83d""#];

/// Nobody asks for it.
const GHOST: &str = "ghost";

struct World {
    server: Server,
    /// Reads what the server reads and makes the requests that it makes.
    mirror: Peer<()>,
    /// Ids of all requests to the client.
    ids: Vec<String>,
    /// Those that wait.
    calls: BTreeSet<CallId>,
    /// Those that have ended, of which the host has not heard.
    ended: VecDeque<(CallId, Result<JsonBuf, Unanswered>)>,
    max_tokens_as_success: bool,
    next_id: u64,
    /// Requests that have been read and not answered, by the text of the id.
    asked: BTreeMap<String, Vec<Asked>>,
    /// What came that is no request: lines, notifications, responses.
    other: [u64; 3],
    sessions: BTreeMap<JsonString, Session>,
    /// `initialize` has been answered with a result.
    routed: bool,
    input_ended: bool,
    output_ended: bool,
    phase: Phase,
    failed: bool,

    routes: Vec<RouteReply>,
    opens: Vec<(JsonString, Opening)>,
    prompts: Vec<(JsonString, PromptReply)>,
    directories: Vec<(JsonString, DirectoryReply)>,
    releases: Vec<JsonString>,
}

#[derive(Debug, Clone)]
enum Asked {
    Initialize,
    Prompt(JsonString),
    Resume(JsonString),
    Wait(JsonString),
    Directory(JsonString),
    Shutdown,
    /// It can only be refused.
    Hopeless,
}

#[derive(Debug, Default)]
struct Session {
    stage: Stage,
    seq: u64,
    time: u64,
    /// What was last said of it.
    running: bool,
    children: BTreeSet<JsonString>,
    /// The number in the last prompt that the host was given.
    prompt: u64,
}

#[derive(Debug, Default, PartialEq)]
enum Stage {
    #[default]
    No,
    Opening,
    Open,
    Releasing,
    Released,
}

/// A line that the server wrote.
#[derive(Debug)]
enum Heard {
    Answer { asked: Asked, error: Option<String>, message: Option<JsonString> },
    News(String, serde_json::Value),
    Asks(String),
}

impl World {
    fn new(limit: usize, max_tokens_as_success: bool) -> Self {
        let mut server = Server::with_peer(Peer::with_seed_and_limit(1, limit));
        server.max_tokens_as_success(max_tokens_as_success);
        Self {
            server,
            mirror: Peer::with_seed_and_limit(1, limit),
            ids: Vec::new(),
            calls: BTreeSet::new(),
            ended: VecDeque::new(),
            max_tokens_as_success,
            next_id: 0,
            asked: BTreeMap::new(),
            other: [0; 3],
            sessions: BTreeMap::new(),
            routed: false,
            input_ended: false,
            output_ended: false,
            phase: Phase::Serving,
            failed: false,
            routes: Vec::new(),
            opens: Vec::new(),
            prompts: Vec::new(),
            directories: Vec::new(),
            releases: Vec::new(),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(24) {
            0..=7 => {
                let line = self.line(choices);
                self.push(&line, choices);
            }
            8 => {
                let n = choices.below(40);
                let bytes = choices.take(n);
                self.push(bytes, choices);
            }
            9..=11 => {
                for _ in 0..=choices.below(4) {
                    self.task();
                }
            }
            12..=16 => drop(self.outcome(choices.below(8), choices.below(4) > 0, choices.byte().into())),
            17..=21 => self.news(choices),
            22 => self.ask(choices),
            _ => match choices.below(16) {
                0 => self.end_input(),
                1 => {
                    self.server.end_output();
                    self.mirror.end_output();
                    self.output_ended = true;
                    self.end_calls();
                }
                2 => {
                    self.server.close();
                    self.hear(|asked, ok| matches!(asked, Asked::Wait(_) if ok));
                }
                // Nobody waits for these.
                _ => {
                    self.server.opened(&GHOST.into(), Ok(()));
                    self.server.released(&GHOST.into(), Err("no".into()));
                    let idle = self.sessions.iter().find(|(_, session)| session.stage == Stage::Open);
                    if let Some((session, _)) = idle {
                        self.server.opened(session, Err("too late".into()));
                    }
                    assert!(self.hear(|_, _| false).is_empty());
                }
            },
        }
    }

    /// A line that a client could send, good or bad; requests carry ids that are not used twice.
    fn line(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        self.next_id += 1;
        let n = self.next_id;
        let id = match choices.below(4) {
            0 => n.to_string(),
            1 => format!("{n}.0"),
            2 => format!("\"{n}\""),
            _ => format!("\"\\u0023{n}\""),
        };
        let session = SESSIONS[choices.below(SESSIONS.len())];
        let (method, params) = match choices.below(20) {
            0 | 1 => {
                let tokens = ["1", "9007199254740991", "0", "1.0", "-1", "9007199254740992", "null", "\"1\""];
                let route = match choices.below(4) {
                    0 => format!(r#""cwd":"/","maxTokens":{},"provider":"p""#, tokens[choices.below(8)]),
                    1 => r#""cwd":"/","provider":7,"model":null,"reasoningEffort":"""#.into(),
                    _ => r#""cwd":"/","provider":"p","model":"m""#.into(),
                };
                ("initialize", format!("{{{route}}}"))
            }
            2..=6 => {
                let blocks = match choices.below(6) {
                    0 => "[null]",
                    1 => "{}",
                    _ => &*format!("[{{\"type\":\"text\",\"text\":\"\\ud83d\",\"n\":{n}}}]"),
                };
                ("session/prompt", format!(r#"{{"sessionId":{session},"contentBlocks":{blocks}}}"#))
            }
            7 | 8 => ("session/resume", format!(r#"{{"sessionId":{session}}}"#)),
            9..=11 => ("session/wait", format!(r#"{{"sessionId":{session}}}"#)),
            12 => ("session/working-directory/get", format!(r#"{{"sessionId":{session}}}"#)),
            13 | 14 => {
                let path = ["\"\"", "\"/\"", "7"][choices.below(3)];
                ("session/working-directory/set", format!(r#"{{"path":{path},"sessionId":{session}}}"#))
            }
            15 => ("session/wait", "[]".into()),
            16 if choices.below(4) == 0 => ("shutdown", "null".into()),
            17 => return b"{\"method\":\"tell\"}\n".into(),
            18 if !self.ids.is_empty() => {
                let id = &self.ids[choices.below(self.ids.len())];
                let padding = "x".repeat(choices.byte().into());
                let error = if choices.flag() { r#","error":{"code":-32601}"# } else { "" };
                return format!("{{\"id\":{id}{error},\"result\":\"{padding}\"}}\n").into();
            }
            18 => return format!("{{\"id\":{id},\"result\":1}}\nnoise\n\n").into(),
            _ => ("session/close", "{}".into()),
        };
        let padding = if choices.below(8) == 0 { "x".repeat(choices.byte().into()) } else { String::new() };
        let mut line = format!(r#"{{"id":{id},"method":"{method}","params":{params},"x":"{padding}"}}"#).into_bytes();
        line.push(if choices.below(32) == 0 { b' ' } else { b'\n' });
        line
    }

    /// The host asks the client for something, or does not want to know any more.
    fn ask(&mut self, choices: &mut Choices<'_>) {
        if choices.flag() {
            let waiting = self.calls.iter().nth(choices.below(4)).copied();
            let Some(call) = waiting else { return };
            self.calls.remove(&call);
            self.mirror.abort(call);
            assert!(self.server.give_up(call) && !self.server.give_up(call));
            assert!(self.hear(|_, _| false).is_empty());
            return;
        }
        let asked = self.server.request("approval/ask", &7);
        let heard = self.hear(|_, _| false);
        if self.is_closing() || self.output_ended || self.input_ended {
            assert!(matches!(asked, Err(SendError::Closed)) && heard.is_empty());
            return;
        }
        let call = asked.unwrap();
        assert_eq!(self.mirror.request("approval/ask", &7, (), None).unwrap(), call);
        let written = self.mirror.outgoing().len();
        self.mirror.outgoing().consume(written);
        self.calls.insert(call);
        match &*heard {
            [Heard::Asks(id)] => self.ids.push(id.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// No request to the client waits any longer.
    fn end_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.mirror.abort(call);
            self.ended.push_back((call, Err(Unanswered::Closing)));
        }
    }

    fn push(&mut self, bytes: &[u8], choices: &mut Choices<'_>) {
        let cuts = [choices.byte().into(), choices.byte().into()];
        for piece in pieces(bytes, &cuts) {
            self.server.push(piece);
            self.mirror.push(piece);
        }
    }

    fn end_input(&mut self) {
        self.input_ended = true;
        self.mirror.end_input();
        self.server.end_input();
        self.read();
        self.hear(answered_at_once);
    }

    /// The server has read all there is; so does the model.
    fn read(&mut self) {
        while let Some(event) = self.mirror.next_event() {
            let (method, params, reply) = match event {
                Event::Request { method, params, reply } => (method, params, reply),
                Event::Dropped(_) => {
                    self.other[0] += 1;
                    continue;
                }
                Event::Notification { .. } => {
                    self.other[1] += 1;
                    continue;
                }
                Event::Unmatched { .. } => {
                    self.other[2] += 1;
                    continue;
                }
                Event::Response { call, outcome, .. } => {
                    let outcome = outcome.map(Json::to_buf).map_err(|error| Unanswered::Refused(error.into()));
                    assert!(self.calls.remove(&call));
                    self.ended.push_back((call, outcome));
                    continue;
                }
                Event::Lost { call, why, .. } => {
                    assert!(self.calls.remove(&call));
                    self.ended.push_back((call, Err(Unanswered::Lost(why))));
                    continue;
                }
                Event::RequestTooLong { reply, .. } => {
                    self.asked.entry(reply.id().get().into()).or_default().push(Asked::Hopeless);
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let session = params.member("sessionId").and_then(Json::as_str).map(JsonString::from);
            let asked = match (&*method.to_string_lossy(), session) {
                ("initialize", _) => Asked::Initialize,
                ("session/prompt", Some(session)) => Asked::Prompt(session),
                ("session/resume", Some(session)) => Asked::Resume(session),
                ("session/wait", Some(session)) => Asked::Wait(session),
                ("session/working-directory/get" | "session/working-directory/set", Some(session)) => {
                    Asked::Directory(session)
                }
                ("shutdown", _) => Asked::Shutdown,
                _ => Asked::Hopeless,
            };
            self.asked.entry(reply.id().get().into()).or_default().push(asked);
        }
    }

    /// Takes one task; says whether there was one.
    fn task(&mut self) -> bool {
        let task = self.server.next_task();
        self.read();
        self.hear(answered_at_once);
        let Some(task) = task else {
            self.everything_owed_has_a_reason();
            return false;
        };
        let ended = self.phase != Phase::Serving && self.phase != Phase::Draining;
        match task {
            Task::Route { route, reply } => {
                assert!(route.max_tokens.is_none_or(|max| (1..1 << 53).contains(&max)), "{route:?}");
                assert!(route.reasoning_effort.is_none_or(|effort| effort.as_json_str() != ""));
                self.routes.push(reply);
            }
            Task::Open { session, how, route } => {
                assert!(self.routed && route.cwd.as_json_str() == "/", "only with a route in force");
                let entry = self.sessions.entry(session.clone()).or_default();
                assert_eq!(entry.stage, Stage::No, "{session:?} is opened once");
                entry.stage = Stage::Opening;
                self.opens.push((session, how));
            }
            Task::Prompt { session, content_blocks, reply } => {
                let entry = self.sessions.get_mut(&session).unwrap();
                assert!(entry.stage == Stage::Open || ended && entry.stage != Stage::No, "{entry:?}");
                let number = content_blocks.as_json().elements().next().and_then(|block| block.member("n"));
                if let Some(number) = number.and_then(Json::as_u64) {
                    assert!(number > entry.prompt, "prompts come in wire order");
                    entry.prompt = number;
                }
                self.prompts.push((session, reply));
            }
            Task::WorkingDirectory { session, change, reply } => {
                let entry = &self.sessions[&session];
                assert!(entry.stage == Stage::Open || ended && entry.stage != Stage::No, "{entry:?}");
                assert!(change.is_none_or(|path| path.as_json_str() != ""));
                self.directories.push((session, reply));
            }
            Task::Answered { call, outcome } => assert_eq!(Some((call, outcome)), self.ended.pop_front()),
            Task::Release { session } => {
                assert!(ended);
                let entry = self.sessions.get_mut(&session).unwrap();
                assert_eq!(entry.stage, Stage::Open, "{session:?} is released once, when it is open");
                entry.stage = Stage::Releasing;
                self.releases.push(session);
            }
        }
        true
    }

    /// The host reports one of the outcomes that it owes, if it owes one of this kind; says whether it did.
    fn outcome(&mut self, kind: usize, good: bool, which: usize) -> bool {
        let refusal = || Refusal::new("the host says no");
        let result = |value: &str| if good { Ok(JsonString::from(value)) } else { Err(refusal()) };
        let is_refusal = |error: &Option<String>| error.is_none() == good;
        match kind {
            0 if !self.routes.is_empty() => {
                let reply = self.routes.swap_remove(which % self.routes.len());
                self.server.routed(reply, result("").map(drop));
                self.routed |= good;
                let heard = self.hear(|asked, _| matches!(asked, Asked::Initialize));
                self.one(heard, |heard| matches!(heard, Heard::Answer { error, .. } if is_refusal(error)));
            }
            1 | 2 if !self.opens.is_empty() => {
                let (session, _) = self.opens.swap_remove(which % self.opens.len());
                self.sessions.get_mut(&session).unwrap().stage = if good { Stage::Open } else { Stage::No };
                self.server.opened(&session, result("").map(drop));
                let closing = self.is_closing();
                self.hear(|asked, ok| match asked {
                    Asked::Resume(of) => of == &session && ok == (good && !closing),
                    // Those that are good become tasks.
                    Asked::Prompt(of) | Asked::Directory(of) => of == &session && !ok,
                    Asked::Shutdown => closing,
                    _ => false,
                });
            }
            3 | 4 | 7 if !self.prompts.is_empty() => {
                let (session, reply) = self.prompts.swap_remove(which % self.prompts.len());
                self.server.prompted(reply, result("the message"));
                let at_rest = self.is_at_rest(&session);
                let mut heard = self.hear(|asked, ok| match asked {
                    Asked::Prompt(of) => of == &session && ok == good,
                    Asked::Wait(of) => of == &session && ok && at_rest,
                    _ => false,
                });
                heard.truncate(1);
                self.one(heard, |heard| match heard {
                    Heard::Answer { asked: Asked::Prompt(_), error, message } => {
                        is_refusal(error)
                            && message.as_ref().is_some_and(|id| id.as_json_str() == "the message") == good
                    }
                    _ => false,
                });
            }
            5 if !self.directories.is_empty() => {
                let (session, reply) = self.directories.swap_remove(which % self.directories.len());
                self.server.directory(reply, result("/home"));
                let heard =
                    self.hear(|asked, ok| matches!(asked, Asked::Directory(of) if of == &session && ok == good));
                self.one(heard, |_| true);
            }
            6 if !self.releases.is_empty() => {
                let session = self.releases.swap_remove(which % self.releases.len());
                self.sessions.get_mut(&session).unwrap().stage = Stage::Released;
                self.failed |= !good;
                self.server.released(&session, result("").map(drop));
                let good = !self.failed;
                self.hear(|asked, ok| matches!(asked, Asked::Shutdown) && ok == good);
            }
            _ => return false,
        }
        true
    }

    /// Exactly one line was heard, such as this; none where nothing goes out any more.
    fn one(&self, heard: Vec<Heard>, is: impl Fn(&Heard) -> bool) {
        match &*heard {
            [] => assert!(self.output_ended, "nothing was heard"),
            [only] => assert!(is(only), "{only:?}"),
            more => panic!("{more:?}"),
        }
    }

    /// The host tells what happens in a session.
    fn news(&mut self, choices: &mut Choices<'_>) {
        let name = |choices: &mut Choices<'_>| match choices.below(6) {
            5 => JsonString::from(GHOST),
            n => JsonString::from(Json::new(SESSIONS[n]).unwrap().as_str().unwrap()),
        };
        let session = name(choices);
        let silent = self.is_closing() || self.output_ended;
        let entry = self.sessions.entry(session.clone()).or_default();
        let none_waits = |_: &Asked, _| false;
        let (expected, heard) = match choices.below(8) {
            0 | 1 => {
                let time = choices.byte().into();
                let (seq, at) = (entry.seq, entry.time.max(time));
                (entry.seq, entry.time) = (seq.saturating_add(1), at);
                let stamp = self.server.session_event(&session, &NewEvent::new("e", &7), time).unwrap();
                assert_eq!((stamp.seq, stamp.time), (seq, at), "numbered without a gap, and time never goes back");
                let event = serde_json::json!({"type": "e", "seq": seq, "time": at, "data": 7});
                (Some(("session.event", "event", event)), self.hear(none_waits))
            }
            2 => {
                let sent = self.server.session_event(&session, &NewEvent::new("e", &Unwritable), u64::MAX);
                if silent {
                    // Nobody writes it.
                    (entry.seq, entry.time) = (entry.seq.saturating_add(1), u64::MAX);
                    // Where the output has ended but shutdown has not begun, it is the same.
                    assert!(sent.is_ok());
                } else {
                    assert!(sent.is_err());
                }
                (None, self.hear(none_waits))
            }
            3 => {
                let seq = if choices.below(16) == 0 { u64::MAX } else { choices.byte().into() };
                entry.seq = entry.seq.max(seq);
                self.server.number_from(&session, seq);
                (None, self.hear(none_waits))
            }
            4 | 5 => {
                let running = choices.flag();
                let news = std::mem::replace(&mut entry.running, running) != running;
                self.server.set_running(&session, running);
                let at_rest = self.is_at_rest(&session);
                let heard = self.hear(|asked, ok| matches!(asked, Asked::Wait(of) if of == &session && ok && at_rest));
                let status = if running { "running" } else { "idle" };
                (news.then(|| ("session.status", "status", status.into())), heard)
            }
            6 => {
                let child = name(choices);
                let news = entry.children.insert(child.clone());
                self.server.subagent_started(&session, &child);
                let child = serde_json::from_str(&lossless(&child)).unwrap_or_default();
                (news.then_some(("subagent.started", "childSessionId", child)), self.hear(none_waits))
            }
            _ => {
                let child = name(choices);
                let news = entry.children.remove(&child);
                let stop_reason = [StopReason::Completed, StopReason::MaxTokens, StopReason::Error][choices.below(3)];
                let ok = stop_reason == StopReason::Completed
                    || stop_reason == StopReason::MaxTokens && self.max_tokens_as_success;
                let end = Finished { provider: "spawn", stop_reason, last_assistant_message: None };
                self.server.subagent_finished(&session, &child, &end);
                let at_rest = self.is_at_rest(&session);
                let heard = self.hear(|asked, ok| matches!(asked, Asked::Wait(of) if of == &session && ok && at_rest));
                let status = if ok { "ok" } else { "error" };
                (news.then(|| ("subagent.finished", "status", status.into())), heard)
            }
        };
        let mut heard = heard.into_iter();
        if let Some((method, member, value)) = expected.filter(|_| !silent) {
            match heard.next() {
                Some(Heard::News(name, params)) => {
                    assert_eq!((&*name, &params[member]), (method, &value), "{session:?}: {params}");
                }
                other => panic!("{other:?}, but {method} was to be told"),
            }
        }
        assert!(heard.all(|heard| matches!(heard, Heard::Answer { .. })), "told what is no news");
    }

    /// All lines that the server has written since the last time; each answer must be one that `may` happen now, by
    /// what was asked and whether it was met.
    fn hear(&mut self, may: impl Fn(&Asked, bool) -> bool) -> Vec<Heard> {
        let written = self.server.outgoing().chunks().collect::<Vec<_>>().concat();
        self.server.outgoing().consume(written.len());
        assert!(written.is_empty() || written.ends_with(b"\n"), "a piece of a frame");
        let mut heard = Vec::new();
        for line in written.split_inclusive(|byte| *byte == b'\n') {
            let text = core::str::from_utf8(line).unwrap();
            heard.push(match Frame::parse(text).expect("each line is a frame") {
                Frame::Response { id, outcome } => {
                    let waiting = self.asked.get_mut(id.get()).unwrap_or_else(|| panic!("nobody asked for {text}"));
                    let error = error_of(outcome);
                    let ok = error.is_none();
                    let index = waiting.iter().position(|asked| may(asked, ok));
                    let index = index.unwrap_or_else(|| panic!("not now: {text} for {waiting:?}"));
                    let asked = waiting.remove(index);
                    let message = outcome.ok().and_then(|result| result.member("messageId")?.as_str());
                    let heard = Heard::Answer { asked, error, message: message.map(JsonString::from) };
                    if waiting.is_empty() {
                        self.asked.remove(id.get());
                    }
                    heard
                }
                Frame::Notification { method, params } => {
                    assert!(!self.is_closing(), "after shutdown has begun: {text}");
                    // A lone surrogate is nothing for serde_json.
                    let params = serde_json::from_str(params.get()).unwrap_or_else(|_| {
                        serde_json::from_str(&params.get().replace("\\ud83d", "\u{fffd}")).unwrap()
                    });
                    Heard::News(method.to_string_lossy().into(), params)
                }
                Frame::Request { id, method, .. } => {
                    assert!(!self.is_closing() && method == "approval/ask", "{text}");
                    Heard::Asks(id.get().into())
                }
            });
        }
        if self.output_ended {
            assert!(heard.is_empty());
        }
        // Only now: what was told in the same step was told before it.
        let phase = self.server.phase();
        assert!(order(phase) >= order(self.phase), "{:?} after {:?}", phase, self.phase);
        self.phase = phase;
        if self.is_closing() {
            self.end_calls();
        }
        heard
    }

    fn is_closing(&self) -> bool {
        !matches!(self.phase, Phase::Serving | Phase::Draining)
    }

    /// By what the host knows: a prompt in the queue of tasks is not among it.
    fn is_at_rest(&self, session: &JsonString) -> bool {
        self.sessions.get(session).is_none_or(|entry| !entry.running && entry.children.is_empty())
            && !self.prompts.iter().any(|(of, _)| of == session)
    }

    fn compare(&mut self) {
        assert!(self.hear(|_, _| false).is_empty());
        assert!(self.sessions.iter().all(|(session, entry)| self.server.next_seq(session) == entry.seq));
        let counters = self.server.counters();
        let other = [counters.dropped_lines, counters.notifications, counters.unmatched_responses];
        assert_eq!(other, self.other);
        let owed = if self.output_ended { 0 } else { self.asked.values().map(Vec::len).sum::<usize>() };
        assert_eq!(self.server.replies_owed(), owed as u64, "{:?}", self.asked);
    }

    /// With no task left, all that is owed is with the host, or waits for something that has to come.
    fn everything_owed_has_a_reason(&self) {
        if self.output_ended {
            return;
        }
        let mut left = [self.routes.len(), 0, 0];
        let mut prompts: Vec<_> = self.prompts.iter().map(|(session, _)| session).collect();
        let mut directories: Vec<_> = self.directories.iter().map(|(session, _)| session).collect();
        let take = |from: &mut Vec<&JsonString>, session| {
            from.iter().position(|of| *of == session).map(|index| from.swap_remove(index)).is_some()
        };
        let is_opening = |session| self.sessions.get(session).is_some_and(|entry| entry.stage == Stage::Opening);
        for asked in self.asked.values().flatten() {
            let explained = match asked {
                Asked::Initialize => {
                    left[1] += 1;
                    left[1] <= left[0]
                }
                Asked::Prompt(session) => take(&mut prompts, session) || is_opening(session),
                Asked::Directory(session) => take(&mut directories, session) || is_opening(session),
                Asked::Resume(session) => is_opening(session),
                Asked::Wait(session) => self.phase == Phase::Serving && !self.is_at_rest(session),
                Asked::Shutdown => self.phase == Phase::Releasing,
                Asked::Hopeless => false,
            };
            assert!(explained, "why does this wait? {asked:?}");
        }
        assert!(self.ended.is_empty(), "the host has not heard of {:?}", self.ended);
        assert!(prompts.is_empty() && directories.is_empty() && left[0] == left[1], "a task for no request");
        let stage = |is: Stage| self.sessions.values().any(|entry| entry.stage == is);
        match self.phase {
            Phase::Serving | Phase::Draining => assert!(!stage(Stage::Releasing) && !stage(Stage::Released)),
            Phase::Releasing => {
                assert!(stage(Stage::Opening) || stage(Stage::Releasing), "what is waited for?");
                assert!(!stage(Stage::Open), "it has to be released");
            }
            Phase::Released | Phase::Failed => {
                assert!(!stage(Stage::Opening) && !stage(Stage::Open) && !stage(Stage::Releasing));
                assert_eq!(self.phase == Phase::Failed, self.failed);
            }
        }
    }

    /// The input ends, the host does all that it is asked to, and then nothing is left.
    fn finish(mut self) {
        if !self.input_ended {
            self.end_input();
        }
        for round in 0.. {
            assert!(round < 10_000, "no end");
            while self.task() {}
            if !(0..7).any(|kind| self.outcome(kind, round % 3 > 0, round)) {
                break;
            }
            self.compare();
        }
        assert!(matches!(self.server.phase(), Phase::Released | Phase::Failed), "{:?}", self.server.phase());
        assert!(self.output_ended || self.asked.is_empty(), "never answered: {:?}", self.asked);
        assert_eq!(self.server.replies_owed(), 0);
        assert!(!self.task() && self.server.next_task().is_none());
    }
}

/// What a request may be answered with before the host has heard of it.
fn answered_at_once(asked: &Asked, ok: bool) -> bool {
    match asked {
        // A session at rest, or the end of everything.
        Asked::Wait(_) | Asked::Shutdown => true,
        _ => !ok,
    }
}

fn error_of(outcome: Outcome<'_>) -> Option<String> {
    let error = outcome.err()?;
    assert_eq!(error.code().and_then(Json::as_i64), Some(INTERNAL_ERROR));
    Some(error.message().unwrap().to_string_lossy().into())
}

fn order(phase: Phase) -> u8 {
    match phase {
        Phase::Serving => 0,
        Phase::Draining => 1,
        Phase::Releasing => 2,
        Phase::Released | Phase::Failed => 3,
    }
}

/// A text that serde_json reads.
fn lossless(name: &JsonString) -> String {
    name.as_json_str().get().replace("\\ud83d", "\u{fffd}")
}
