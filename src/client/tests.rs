//! The client against a peer that plays the runtime, with a clock of our own.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::json::{Json, JsonBuf};
use crate::peer::{AbortToken, Event as PeerEvent};
use crate::wire::{Prompt, PromptParams};

/// Both ends of one connection.
struct Pair {
    client: Client,
    runtime: Peer<()>,
}

impl Pair {
    fn new() -> Self {
        Self { client: Client::with_seed(1), runtime: Peer::with_seed(2) }
    }

    /// Moves all bytes to the runtime; returns its requests.
    fn deliver_to_runtime(&mut self) -> Vec<(String, Reply)> {
        while !self.client.outgoing().is_empty() {
            let bytes = self.client.outgoing().bytes().to_vec();
            self.client.outgoing().consume(bytes.len());
            self.runtime.push(&bytes);
        }
        let mut requests = Vec::new();
        while let Some(event) = self.runtime.next_event() {
            if let PeerEvent::Request { method, reply, .. } = event {
                requests.push((method.to_string(), reply));
            }
        }
        requests
    }

    /// Moves all bytes to the client; returns what it saw.
    fn deliver_to_client(&mut self) -> Vec<String> {
        while !self.runtime.outgoing().is_empty() {
            let bytes = self.runtime.outgoing().bytes().to_vec();
            self.runtime.outgoing().consume(bytes.len());
            self.client.push(&bytes);
        }
        let mut seen = Vec::new();
        while let Some(event) = self.client.next_event() {
            seen.push(match event {
                Event::Notification { notification, .. } => notification.method.to_string(),
                Event::Ended(_) => "ended".into(),
                Event::Request => "request".into(),
                Event::Refused { method } => format!("refused {method}"),
                Event::Unmatched { .. } => "unmatched".into(),
                Event::Dropped(_) => "dropped".into(),
            });
        }
        seen
    }
}

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_deadline_ends_the_call_and_the_late_answer_is_told() {
    let mut pair = Pair::new();
    let slow: Call<JsonBuf> = pair.client.start("slow", &(), &Limits::until(at(300))).unwrap();
    let endless: Call<JsonBuf> = pair.client.start("endless", &(), &Limits::default()).unwrap();
    let huge: Call<JsonBuf> = pair.client.start("huge", &(), &Limits::until(Duration::MAX)).unwrap();
    let requests = pair.deliver_to_runtime();
    assert_eq!(pair.client.next_deadline(), Some(at(300)));
    pair.client.expire(at(299));
    assert_eq!(pair.client.take(&slow), None);
    pair.client.expire(at(300));
    assert_eq!(pair.client.take(&slow), Some(Err(Failure::TimedOut)));
    assert_eq!(pair.client.take(&slow), None);
    for (_, reply) in requests {
        pair.runtime.answer(reply, &7).unwrap();
    }
    assert_eq!(pair.deliver_to_client(), ["unmatched", "ended", "ended"], "the end of the first has been taken");
    assert_eq!(pair.client.take(&endless), Some(Ok(JsonBuf::new("7").unwrap())));
    assert!(pair.client.has_ended(huge.id()));
    assert_eq!((pair.client.pending(), pair.client.next_deadline()), (0, None));
    assert_eq!((pair.client.counters().unmatched, pair.client.counters().calls_failed), (1, 1));
}

#[test]
fn a_call_that_was_never_written_leaves_no_trace() {
    let mut pair = Pair::new();
    let call: Call<JsonBuf> = pair.client.start("a", &(), &Limits::until(at(0))).unwrap();
    pair.client.expire(at(0));
    assert_eq!(pair.client.take(&call), Some(Err(Failure::TimedOut)));
    assert!(pair.client.outgoing().is_empty());
}

#[test]
fn what_is_abandoned_before_its_end_is_told_leaves_no_trace() {
    let mut pair = Pair::new();
    let token = AbortToken::new("enough");
    let limits = Limits { deadline: Some(at(9)), token: Some(&token) };
    let [aborted, late, told]: [Call<JsonBuf>; 3] =
        [limits, Limits::until(at(5)), limits].map(|limits| pair.client.start("slow", &(), &limits).unwrap());
    token.abort();
    pair.client.poll_aborts();
    pair.client.expire(at(5));
    assert_eq!(pair.client.next_deadline(), None);
    for call in [&aborted, &late] {
        pair.client.abandon(call.id());
    }
    assert_eq!(pair.deliver_to_client(), ["ended"]);
    assert_eq!([&aborted, &late, &told].map(|call| pair.client.has_ended(call.id())), [false, false, true]);
    assert_eq!(pair.client.take(&told), Some(Err(Failure::Aborted(token.reason()))));
}

#[test]
fn a_run_until_finished_goes_on_also_where_the_answer_comes_after_the_turn() {
    let mut run = Run::new("s", false).until_finished();
    let tree = SessionTree::new();
    let show = |run: &mut Run, method: &str, params: &str| {
        let method = JsonString::from(method);
        let place = run.observe(&read(method.as_json_str(), Json::new(params).unwrap()), &tree);
        while run.next_held().is_some() {}
        place
    };
    let message = r#"{"sessionId":"s","event":{"type":"assistant/message","seq":0,"time":0,"data":{}}}"#;
    assert_eq!(show(&mut run, "session.event", message), Observed::Held);
    assert_eq!(show(&mut run, "session.finished", r#"{"sessionId":"s","status":"ok"}"#), Observed::Related);
    run.answered(&crate::wire::PromptResult::Accepted);
    assert!(!run.is_finished() && run.is_idle());
    assert_eq!(show(&mut run, "session.event", message), Observed::Related);
}

#[test]
fn what_is_wrong_with_a_result_is_named() {
    let mut pair = Pair::new();
    let prompt = |pair: &mut Pair| pair.client.call::<Prompt>(&PromptParams::text("s", "hi"), &Limits::default());
    let (odd, refused, lost) = (prompt(&mut pair).unwrap(), prompt(&mut pair).unwrap(), prompt(&mut pair).unwrap());
    let mut replies = pair.deliver_to_runtime().into_iter().map(|(_, reply)| reply);
    pair.runtime.answer(replies.next().unwrap(), &5).unwrap();
    pair.runtime.refuse(replies.next().unwrap(), -32603, "no", Some(&[1])).unwrap();
    pair.deliver_to_client();
    pair.client.end_input();
    pair.deliver_to_client();
    let error = pair.client.take(&odd).unwrap().unwrap_err();
    assert!(matches!(&error, Failure::Unexpected { came, .. } if came.as_json().get() == "5"), "{error:?}");
    let Err(Failure::Rpc(error)) = pair.client.take(&refused).unwrap() else { panic!() };
    assert_eq!((error.code, &*error.message, error.data.unwrap().as_json().get()), (Some(-32603), "no", "[1]"));
    assert_eq!(pair.client.take(&lost), Some(Err(Failure::Lost(peer::LostReason::InputEnded))));
    let after = pair.client.start::<JsonBuf>("x", &(), &Limits::default());
    assert!(matches!(after, Err(SendError::Closed)));
}

#[test]
fn requests_are_refused_unless_they_are_wanted() {
    let mut pair = Pair::new();
    pair.runtime.request("ui/ask", &[1], (), None).unwrap();
    assert_eq!(pair.deliver_to_client(), ["refused ui/ask"]);
    pair.client.take_requests(true);
    pair.runtime.request("ui/ask", &[("a", 1)].into_iter().collect::<BTreeMap<_, _>>(), (), None).unwrap();
    assert_eq!(pair.deliver_to_client(), ["request"]);
    assert_eq!(pair.client.backlog_over(3).map(|(name, _)| name), Some("requests of the runtime"));
    let request = pair.client.next_request().unwrap();
    assert_eq!((request.method.to_string(), request.params.as_json().get()), ("ui/ask".into(), r#"{"a":1}"#));
    pair.client.answer(request.reply, &true).unwrap();
    assert_eq!(pair.client.backlog_over(10).map(|(name, _)| name), Some("answers to the runtime"));
    pair.deliver_to_runtime();
    assert_eq!((pair.runtime.pending(), pair.client.backlog_over(0)), (0, None));
}

#[test]
fn answers_that_wait_are_counted_and_nothing_else_is() {
    let mut pair = Pair::new();
    let mut bytes = 0;
    for _ in 0..100 {
        pair.client.notify("ours", &()).unwrap();
        pair.runtime.request("ui/ask", &(), (), None).unwrap();
        let before = pair.client.outgoing().len();
        assert_eq!(pair.deliver_to_client(), ["refused ui/ask"]);
        bytes += pair.client.outgoing().len() - before;
    }
    assert_eq!(pair.client.backlog_over(0), Some(("answers to the runtime", bytes)));
    // No more than waits at all, and nothing once the last of them has left.
    let len = pair.client.outgoing().len();
    pair.client.outgoing().consume(len - 10);
    assert_eq!(pair.client.backlog_over(0), Some(("answers to the runtime", 10)));
    pair.client.notify("ours", &()).unwrap();
    pair.client.outgoing().consume(10);
    assert_eq!(pair.client.backlog_over(0), None);
}

#[test]
fn the_handles_of_another_client_change_nothing() {
    let [mut ours, mut theirs] = [1, 2].map(Client::with_seed);
    let call = |client: &mut Client| client.start::<JsonBuf>("ask", &(), &Limits::default()).unwrap();
    let (_waits, foreign) = (call(&mut ours), call(&mut theirs));
    let subscribe = |client: &mut Client| client.subscribe("all", Filter::all(), Policy::Lossless);
    let (id, foreign_id) = (subscribe(&mut ours), subscribe(&mut theirs));
    ours.push(b"{\"method\":\"tick\"}\n");
    while ours.next_event().is_some() {}

    assert_eq!(ours.take(&foreign), Some(Err(Failure::OtherClient)));
    ours.abandon(foreign.id());
    assert_eq!((ours.pending(), theirs.pending()), (1, 1));
    assert!(!ours.has_delivery(foreign_id) && ours.is_deaf(foreign_id) && ours.next_delivery(foreign_id).is_none());
    assert_eq!((ours.high_water(foreign_id), ours.high_water(id)), (None, Some(1)));
    assert!(!ours.unsubscribe(foreign_id));
    assert!(ours.next_delivery(id).is_some());
}

#[test]
fn a_request_is_answered_where_it_came_and_nowhere_else() {
    let [mut ours, mut theirs] = [1, 2].map(Client::with_seed);
    for client in [&mut ours, &mut theirs] {
        client.take_requests(true);
        client.push(b"{\"id\":7,\"method\":\"ask\"}\n");
        while client.next_event().is_some() {}
    }
    let request = ours.next_request().unwrap();
    let error = theirs.answer(request.reply, &1).unwrap_err();
    assert!(matches!(error.why, SendError::OtherConnection), "{error}");
    assert!(theirs.outgoing().is_empty());
    ours.answer(error.reply, &1).unwrap();
}

/// Plays a conversation on session `s`; the line `ANSWER …` is the answer to the prompt. Returns the place of every
/// notification by its `n`, in the order in which the run gave it out, and the run.
#[track_caller]
fn play(script: &str) -> (Vec<String>, Run) {
    let mut client = Client::with_seed(1);
    let mut run = client.run("s");
    let mut places = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(answer) = line.strip_prefix("ANSWER ") {
            run.answered(&crate::wire::PromptResult::decode(Json::new(answer).unwrap()).unwrap());
        } else {
            let (name, frame) = line.split_once(' ').unwrap();
            let (method, params) = frame.split_once(' ').unwrap();
            client.push(format!("{{\"method\":\"{method}\",\"params\":{params}}}\n").as_bytes());
            let Some(Event::Notification { notification, tree }) = client.next_event() else { panic!("{line}") };
            match run.observe(&notification, tree) {
                Observed::Unrelated => {}
                Observed::Held => places.push(format!("({name})")),
                Observed::Related => places.push(name.into()),
                Observed::Last => places.push(format!("{name}!")),
            }
        }
        while let Some((buf, place)) = run.next_held() {
            let kind = buf.params.as_json().member("event").and_then(|event| event.member("type"));
            let name = kind.unwrap_or(Json::NULL).get().trim_matches('"').to_string();
            places.push(if place == Observed::Last { format!("{name}!") } else { name });
        }
    }
    (places, run)
}

#[test]
fn a_run_of_today_lasts_from_the_receipt_to_idle() {
    let (places, run) = play(
        r#"
        a session.event {"sessionId":"s","event":{"type":"permission/preset","seq":0,"time":0,"data":{}}}
        b session.event {"sessionId":"other","event":{"type":"turn/end","seq":0,"time":0,"data":{"reason":{"kind":"x"}}}}
        c session.event {"sessionId":"s","event":{"type":"agent/inbox/spliced","seq":1,"time":0,"data":{"target":"next-turn","start":0,"inserted":[{"id":"m1"}]}}}
        d session.status {"sessionId":"s","status":"running"}
        e session.event {"sessionId":"s","event":{"type":"turn/start","seq":2,"time":0,"data":{"turn":1}}}
        ANSWER {"messageId":"m1"}
        f subagent.started {"parentSessionId":"s","childSessionId":"kid"}
        g session.event {"sessionId":"kid","event":{"type":"assistant/message","seq":3,"time":0,"data":{"message":{"content":[{"type":"text","text":"kid"}]}}}}
        h session.event {"sessionId":"s","event":{"type":"assistant/message","seq":3,"time":0,"data":{"message":{"content":[{"type":"text","text":"hel"},{"type":"reasoning","text":"x"},{"type":"text","text":"lo"}]}}}}
        i session.status {"sessionId":"kid","status":"idle"}
        j session.event {"sessionId":"s","event":{"type":"turn/end","seq":4,"time":0,"data":{"turn":1,"reason":{"kind":"completed"}}}}
        k session.status {"sessionId":"s","status":"idle"}
        l session.status {"sessionId":"s","status":"running"}
        "#,
    );
    assert_eq!(
        places,
        ["(a)", "(c)", "(d)", "(e)", "agent/inbox/spliced", "null", "turn/start", "f", "g", "h", "i", "j", "k!"]
    );
    assert_eq!(run.final_response().unwrap(), "hello");
    assert_eq!(run.finish_reason().unwrap(), "completed");
    assert!(run.is_finished());
}

#[test]
fn a_prompt_that_queues_belongs_to_the_run_of_its_receipt() {
    // The session is busy: the idle that follows comes after our turn, not before.
    let (places, run) = play(
        r#"
        a session.event {"sessionId":"s","event":{"type":"agent/inbox/spliced","seq":1,"time":0,"data":{"inserted":[{"id":"other"}]}}}
        b session.status {"sessionId":"s","status":"running"}
        ANSWER {"messageId":"m1"}
        c session.event {"sessionId":"s","event":{"type":"turn/end","seq":2,"time":0,"data":{"reason":{"kind":"error"}}}}
        d session.event {"sessionId":"s","event":{"type":"agent/inbox/spliced","seq":3,"time":0,"data":{"inserted":[{"id":"m1"}]}}}
        e session.event {"sessionId":"s","event":{"type":"turn/end","seq":4,"time":0,"data":{"reason":{"kind":"max-tokens"}}}}
        f session.status {"sessionId":"s","status":"idle"}
        "#,
    );
    assert_eq!(places, ["(a)", "(b)", "d", "e", "f!"]);
    assert_eq!(run.finish_reason().unwrap(), "max-tokens");
    assert_eq!(run.final_response(), None);
}

#[test]
fn a_run_of_old_streams_before_its_answer() {
    let chunk = r#"session.event {"sessionId":"s","event":{"type":"assistant/chunk","seq":2,"time":0,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"he"}}}}"#;
    let message = r#"session.event {"sessionId":"s","event":{"type":"assistant/message","seq":3,"time":0,"data":{"content":[{"type":"text","text":"hello"}]}}}"#;
    let start = r#"session.event {"sessionId":"s","event":{"type":"turn/start","seq":1,"time":0,"data":{"turn":1}}}"#;
    let finished = r#"session.finished {"sessionId":"s","status":"ok"}"#;
    let script =
        format!("a {start}\nb {chunk}\nc {chunk}\nd {message}\ne {finished}\nANSWER {{\"accepted\":true}}\nf {start}");
    let (places, run) = play(&script);
    assert_eq!(places, ["(a)", "(b)", "turn/start", "assistant/chunk", "c", "d", "e"]);
    assert!(run.is_finished());
    assert_eq!(run.final_response().unwrap(), "hello");
    assert_eq!(run.finish_reason().unwrap(), "completed");
    // The same with the answer before the end.
    let script = format!("a {start}\nb {chunk}\nANSWER {{\"accepted\":true}}\nd {message}\ne {finished}\nf {start}");
    assert_eq!(play(&script).0, ["(a)", "(b)", "turn/start", "assistant/chunk", "d", "e!"]);
    // And where nothing tells the revision before the answer.
    let failed = r#"session.finished {"sessionId":"s","status":"error","reason":"no key"}"#;
    let (places, run) = play(&format!("a {start}\nb {failed}\nANSWER {{\"accepted\":true}}"));
    assert_eq!(places, ["(a)", "(b)", "turn/start", "null!"]);
    assert_eq!(run.finish_reason().unwrap(), "no key");
}

#[test]
fn text_deltas_are_found() {
    let params = r#"{"sessionId":"s","event":{"type":"assistant/chunk","seq":2,"time":0,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"he"}}}}"#;
    let method = JsonString::from("session.event");
    let notification = read(method.as_json_str(), Json::new(params).unwrap());
    assert_eq!(text_delta(&notification).unwrap(), "he");
}
