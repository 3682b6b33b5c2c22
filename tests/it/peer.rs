//! One connection: how calls end, what is answered, what leaves.

use dsh_wire::frame::Frame;
use dsh_wire::peer::{AbortToken, DropReason, Event, LostReason, Peer, SendError};
use serde_json::json;

/// Takes all events, written in a form to compare with.
fn events(peer: &mut Peer<&str>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(event) = peer.next_event() {
        seen.push(match event {
            Event::Request { method, params, reply } => format!("request {:?} {method} {params}", reply.id()),
            Event::Notification { method, params } => format!("notification {method} {params}"),
            Event::Response { tag, outcome: Ok(result), .. } => format!("{tag}: {result}"),
            Event::Response { tag, outcome: Err(error), .. } => format!("{tag}: error {error:?}"),
            Event::Aborted { tag, reason, .. } => format!("{tag}: aborted, {reason}"),
            Event::Lost { tag, why, .. } => format!("{tag}: lost, {why}"),
            Event::Unmatched { id, .. } => format!("unmatched {id:?}"),
            Event::RequestTooLong { method, reply, limit } => format!("request {:?} {method} over {limit}", reply.id()),
            Event::Dropped(dropped) => format!("dropped {} ({} bytes): {}", dropped.number, dropped.len, dropped.why),
        });
    }
    seen
}

/// What waits to go out, as lines.
fn sent(peer: &mut Peer<&str>) -> Vec<String> {
    let mut bytes = Vec::new();
    while !peer.outgoing().is_empty() {
        let output = peer.outgoing();
        let chunk = output.bytes().to_vec();
        output.consume(chunk.len());
        bytes.extend(chunk);
    }
    String::from_utf8(bytes).unwrap().split_terminator('\n').map(Into::into).collect()
}

fn id_of(line: &str) -> String {
    match Frame::parse(line) {
        Ok(Frame::Request { id, .. }) => id.get().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_gives_the_same_events_however_it_is_cut() {
    let stream = "garbage\n\n{\"method\":\"n\",\"params\":{\"a\":1}}\r\n[1]\n{\"id\":7,\"method\":\"r\"}\n{\"id\":\"x\",\"result\":1}\n\
                  {\"method\":\"你\"}\n{\"method\":\"too long for the limit of this connection, which is 64\"}\n{\"method\":\"cut";
    let whole = {
        let mut peer = Peer::with_seed_and_limit(1, 64);
        peer.push(stream.as_bytes());
        peer.end_input();
        events(&mut peer)
    };
    assert_eq!(
        whole,
        [
            "dropped 1 (7 bytes): not JSON at byte 0: no value begins like this",
            "notification n {\"a\":1}",
            "dropped 4 (3 bytes): a JSON array; batches are not part of this protocol",
            "request 7 r {}",
            "unmatched \"x\"",
            "notification 你 {}",
            "dropped 8 (67 bytes): longer than the line limit of 64 bytes",
            "dropped 9 (14 bytes): the stream ended before the line did",
        ]
    );
    for chunk in [1, 2, 3, 5, 17] {
        let mut peer = Peer::with_seed_and_limit(1, 64);
        let mut seen = Vec::new();
        for piece in stream.as_bytes().chunks(chunk) {
            peer.push(piece);
            seen.extend(events(&mut peer));
        }
        peer.end_input();
        seen.extend(events(&mut peer));
        assert_eq!(seen, whole, "chunks of {chunk}");
    }
}

#[test]
fn calls_end_with_the_response_that_bears_their_id() {
    let mut peer = Peer::with_seed(1);
    let (first, second) =
        (peer.request("a", &json!({"x": 1}), "first", None).unwrap(), peer.request("b", &(), "second", None).unwrap());
    assert_eq!([first, second].map(|call| call.to_string()), ["call 0", "call 1"]);
    let lines = sent(&mut peer);
    assert_eq!(lines.len(), 2);
    let [one, two] = [id_of(&lines[0]), id_of(&lines[1])];
    assert_eq!(lines[0], format!(r#"{{"jsonrpc":"2.0","id":{one},"method":"a","params":{{"x":1}}}}"#));
    assert_eq!(lines[1], format!(r#"{{"jsonrpc":"2.0","id":{two},"method":"b"}}"#));
    assert!(one.len() == 38 && one.starts_with("\"req_") && one[5..37].bytes().all(|b| b.is_ascii_hexdigit()));
    // The second first, with its id escaped; then twice the same; then the first as an error; then a stolen id.
    let escaped = two.replacen("req", "\\u0072eq", 1);
    peer.push(format!("{{\"id\":{escaped},\"result\":[2]}}\n{{\"id\":{two},\"result\":[2]}}\n").as_bytes());
    peer.push(format!("{{\"id\":{one},\"method\":\"mine\"}}\n").as_bytes());
    peer.push(format!("{{\"id\":{one},\"error\":{{\"code\":1,\"message\":\"no\"}}}}\n").as_bytes());
    assert_eq!(
        events(&mut peer),
        [
            "second: [2]".to_owned(),
            format!("unmatched {two}"),
            format!("request {one} mine {{}}"),
            r#"first: error {"code":1,"message":"no"}"#.to_owned(),
        ]
    );
    assert_eq!((peer.pending(), peer.replies_owed()), (0, 1));
}

#[test]
fn answers_echo_the_id_byte_for_byte() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    let ids = ["1.0", "1e3", "-0", "12345678901234567890", r#""""#, r#""\ud83d\u0041""#, "1e400"];
    for id in ids {
        peer.push(format!("{{\"id\":{id},\"method\":\"m\"}}\n").as_bytes());
    }
    let (mut incoming, mut outgoing) = peer.split();
    let mut count = 0;
    while let Some(Event::Request { method, reply, .. }) = incoming.next_event() {
        count += 1;
        match count {
            1 => outgoing.refuse_method(reply, method).unwrap(),
            2 => outgoing.refuse(reply, -32603, "it broke", Some(&json!([1]))).unwrap(),
            _ => outgoing.answer(reply, &count).unwrap(),
        }
    }
    assert_eq!(peer.replies_owed(), 0);
    let lines = sent(&mut peer);
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32601,"message":"method not found: m"}}"#);
    assert_eq!(lines[1], r#"{"jsonrpc":"2.0","id":1e3,"error":{"code":-32603,"message":"it broke","data":[1]}}"#);
    for (line, (id, count)) in lines.iter().zip(ids.iter().zip(1..)).skip(2) {
        assert_eq!(*line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{count}}}"#));
    }
}

#[test]
fn a_request_over_the_limit_is_refused_with_its_id_while_it_comes() {
    let mut peer: Peer<&str> = Peer::with_seed_and_limit(1, 100);
    peer.push(format!(r#"{{"id":7,"method":"big","params":{{"text":"{}"#, "x".repeat(200)).as_bytes());
    let (incoming, mut outgoing) = peer.split();
    let Some(Event::RequestTooLong { method, reply, limit: 100 }) = incoming.into_next_event() else { panic!() };
    assert_eq!(method, "big");
    outgoing.refuse_too_long(reply, 100).unwrap();
    assert_eq!(
        sent(&mut peer),
        [
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the request is longer than the line limit of 100 bytes"}}"#
        ]
    );
    assert_eq!(peer.replies_owed(), 0);
}

#[test]
#[cfg(feature = "std")]
fn connections_choose_ids_of_their_own() {
    let first_id = |mut peer: Peer<&str>| {
        peer.request("m", &(), "", None).unwrap();
        id_of(&sent(&mut peer)[0])
    };
    let ids = [Peer::new(), Peer::default(), Peer::with_limit(10)].map(first_id);
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(Peer::<&str>::with_limit(10).lines().limit(), 10);
}

#[test]
fn connections_of_one_seed_use_the_same_ids() {
    let first = |seed| {
        let mut peer: Peer<&str> = Peer::with_seed(seed);
        peer.request("m", &(), "", None).unwrap();
        sent(&mut peer)
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
#[cfg(feature = "std")]
fn reading_is_pushing_what_was_read() {
    let stream = b"{\"method\":\"a\"}\n{\"method\":\"b\"}\n";
    let mut peer: Peer<&str> = Peer::with_seed(1);
    let (mut source, mut seen) = (&stream[..], 0);
    loop {
        match peer.read_from(&mut source).unwrap() {
            0 => break,
            len => seen += len,
        }
    }
    assert_eq!(seen, stream.len());
    assert_eq!(events(&mut peer), ["notification a {}", "notification b {}"]);
}

#[test]
fn both_halves_are_the_peer() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    peer.push(b"{\"method\":\"n\"}\n{\"id\":1,\"method\":\"r\"}\n{\"id\":2,\"method\":\"r\"}\n");
    let (mut incoming, mut outgoing) = peer.split();
    while let Some(event) = incoming.next_event() {
        match event {
            Event::Notification { method, .. } => outgoing.notify(&method.to_string(), &()).unwrap(),
            Event::Request { reply, .. } if reply.id().get() == "1" => outgoing.answer(reply, &true).unwrap(),
            Event::Request { reply, .. } => outgoing.refuse(reply, 7, "no", None::<&()>).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        sent(&mut peer),
        [
            r#"{"jsonrpc":"2.0","method":"n"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":true}"#,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"no"}}"#,
        ]
    );
}

#[test]
fn answers_that_wait_are_counted_until_they_have_left() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    peer.push(b"{\"id\":1,\"method\":\"r\"}\n{\"id\":2,\"method\":\"r\"}\n");
    let mut replies = Vec::new();
    while let Some(Event::Request { reply, .. }) = peer.next_event() {
        replies.push(reply);
    }
    assert_eq!(peer.answers_waiting(), 0);
    peer.notify("n", &json!({"text": "x".repeat(1000)})).unwrap();
    let other = peer.outgoing().len();
    let mut answers = 0;
    for reply in replies {
        let before = peer.outgoing().len();
        peer.answer(reply, &"y".repeat(500)).unwrap();
        answers += peer.outgoing().len() - before;
        assert_eq!(peer.answers_waiting(), answers);
    }
    peer.notify("n", &()).unwrap();
    assert_eq!(peer.answers_waiting(), answers, "what is no answer does not count");
    let leave = |peer: &mut Peer<&str>, mut len: usize| {
        while len > 0 {
            let piece = peer.outgoing().bytes().len().min(len);
            peer.outgoing().consume(piece);
            len -= piece;
        }
    };
    leave(&mut peer, other + answers - 1);
    assert!(peer.answers_waiting() >= 1);
    leave(&mut peer, 1);
    assert_eq!(peer.answers_waiting(), 0);
}

#[test]
fn small_frames_leave_in_few_pieces() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    for _ in 0..1000 {
        peer.notify("session.event", &json!({"text": "x".repeat(100)})).unwrap();
    }
    let len = peer.outgoing().len();
    assert_eq!(peer.outgoing().chunks().count(), len / (64 << 10) + 1);
}

#[test]
fn an_answer_that_cannot_be_written_gives_the_right_to_answer_back() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    peer.push(b"{\"id\":1,\"method\":\"m\"}\n");
    let Some(Event::Request { reply, .. }) = peer.next_event() else { panic!() };
    let error = peer.answer(reply, &std::collections::BTreeMap::from([([1], 1)])).unwrap_err();
    assert!(matches!(error.why, SendError::Encode(_)) && peer.outgoing().is_empty());
    assert_eq!(peer.replies_owed(), 1);
    assert_eq!(
        causes(&error),
        [
            "cannot answer the request with id 1",
            "cannot send the frame",
            "cannot write the value as JSON",
            "key must be a string"
        ]
    );
    peer.answer(error.reply, &1).unwrap();
    assert_eq!(sent(&mut peer), [r#"{"jsonrpc":"2.0","id":1,"result":1}"#]);
}

#[test]
fn what_cannot_be_sent_says_why() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    let token = AbortToken::new("enough");
    token.abort();
    let refused = peer.request("m", &(), "a", Some(&token)).unwrap_err();
    assert_eq!(causes(&refused), ["the call was aborted before it was sent: enough"]);
    peer.end_output();
    assert_eq!(causes(&peer.notify("m", &()).unwrap_err()), ["cannot send: the connection has ended"]);
}

/// The text of an error and those of its sources.
fn causes(error: &dyn std::error::Error) -> Vec<String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
}

#[test]
fn a_token_refuses_ends_and_leaves_nothing() {
    let token = AbortToken::new("enough");
    let mut peer = Peer::with_seed(1);
    peer.request("kept", &(), "kept", None).unwrap();
    for _ in 0..3 {
        peer.request("gone", &(), "gone", Some(&token)).unwrap();
    }
    peer.poll_aborts();
    assert!(events(&mut peer).is_empty() && peer.has_tokens());
    std::thread::spawn({
        let token = token.clone();
        move || token.abort()
    })
    .join()
    .unwrap();
    peer.poll_aborts();
    assert_eq!(events(&mut peer), ["gone: aborted, enough"; 3]);
    assert_eq!((peer.pending(), peer.has_tokens()), (1, false));
    assert!(
        matches!(peer.request("m", &(), "t", Some(&token)), Err(SendError::Aborted(reason)) if reason.as_str() == "enough")
    );
    let lines = sent(&mut peer);
    assert!(lines.len() == 1 && lines[0].contains("kept"), "frames that had not begun are withdrawn: {lines:?}");
}

#[test]
fn a_token_wakes_once_when_it_is_set() {
    let (sender, woken) = std::sync::mpsc::channel();
    let token = AbortToken::waking("enough", move || sender.send(()).unwrap());
    assert!(woken.try_recv().is_err() && !token.is_aborted());
    token.abort();
    assert!(woken.try_recv().is_ok() && token.is_aborted());
    token.clone().abort();
    assert!(woken.try_recv().is_err());
}

#[test]
fn a_frame_that_has_begun_is_finished_and_its_late_response_reported() {
    let mut peer = Peer::with_seed(1);
    let call = peer.request("m", &"x".repeat(1000), "call", None).unwrap();
    let begun = peer.outgoing().bytes()[..1].to_vec();
    peer.outgoing().consume(1);
    assert_eq!(peer.abort(call), Some("call"));
    assert_eq!(peer.abort(call), None);
    let line = String::from_utf8(begun).unwrap() + &sent(&mut peer).join("");
    let id = id_of(&line);
    peer.push(format!("{{\"id\":{id},\"result\":1}}\n").as_bytes());
    assert_eq!(events(&mut peer), [format!("unmatched {id}")]);
}

#[test]
fn the_flush_mark_tells_when_what_was_sent_has_left() {
    let mut peer: Peer<&str> = Peer::with_seed(1);
    assert!(peer.is_flushed(peer.sent_mark()));
    peer.notify("a", &()).unwrap();
    let first = peer.sent_mark();
    peer.notify("b", &()).unwrap();
    let second = peer.sent_mark();
    let withdrawn = peer.request("c", &(), "c", None).unwrap();
    let third = peer.sent_mark();
    let len = peer.outgoing().bytes().iter().position(|byte| *byte == b'\n').unwrap() + 1;
    peer.outgoing().consume(len - 1);
    assert!(!peer.is_flushed(first));
    peer.outgoing().consume(1);
    assert!(peer.is_flushed(first) && !peer.is_flushed(second) && !peer.is_flushed(third));
    peer.abort(withdrawn);
    peer.notify("d", &()).unwrap();
    let fourth = peer.sent_mark();
    peer.outgoing().consume(len);
    assert!(peer.is_flushed(second) && peer.is_flushed(third) && !peer.is_flushed(fourth));
    peer.end_output();
    assert!(peer.is_flushed(fourth));
    assert!(matches!(peer.notify("e", &()), Err(SendError::Closed)));
}

#[test]
fn the_end_of_input_ends_every_call_after_what_came_before_it() {
    let mut peer = Peer::with_seed(1);
    peer.request("a", &(), "a", None).unwrap();
    peer.request("b", &(), "b", None).unwrap();
    let lines = sent(&mut peer);
    peer.push(format!("{{\"id\":{},\"result\":1}}\n{{\"id\":{}", id_of(&lines[1]), id_of(&lines[0])).as_bytes());
    peer.end_input();
    assert!(matches!(peer.request("c", &(), "c", None), Err(SendError::Closed)));
    assert_eq!(
        events(&mut peer),
        [
            "b: 1",
            "dropped 2 (44 bytes): the stream ended before the line did",
            "a: lost, the peer's output ended before the answer came",
        ]
    );
    assert_eq!(peer.pending(), 0);
}

#[test]
fn an_answer_over_the_limit_ends_its_call_at_once() {
    /// Sends the line up to just over the limit, then the rest; returns the events of both.
    fn check(line: impl Fn(&str) -> String, limit: usize) -> [Vec<String>; 2] {
        let mut peer = Peer::with_seed_and_limit(1, limit);
        peer.request("m", &(), "call", None).unwrap();
        let id = id_of(&sent(&mut peer)[0]);
        let line = line(&id);
        let (start, rest) = line.split_at(limit + 1);
        start.bytes().for_each(|byte| peer.push(&[byte]));
        let early = events(&mut peer);
        peer.push(rest.as_bytes());
        let late = events(&mut peer);
        let mut whole = Peer::with_seed_and_limit(1, limit);
        whole.request("m", &(), "call", None).unwrap();
        whole.push(line.as_bytes());
        assert_eq!(events(&mut whole), [early.clone(), late.clone()].concat());
        [early, late]
    }
    let long = "x".repeat(1000);
    let lost = "call: lost, the answer is longer than the line limit of 300 bytes";
    for line in [
        r#"{"id":ID,"result":"LONG"}"#,
        r#" {"jsonrpc":"2.0","id":ID,"error":{"message":"LONG"}}"#,
        r#"{"id":3,"id":ID,"result":["LONG"]}"#,
    ] {
        let [early, late] = check(|id| line.replace("ID", id).replace("LONG", &long) + "\n", 300);
        assert_eq!(early, [lost], "{line}");
        assert!(late.len() == 1 && late[0].starts_with("dropped 1 (1"), "{late:?}");
    }
    let [early, _] = check(|id| format!("{{\"id\":{id},\"result\":1}}{}\n", " ".repeat(1000)), 300);
    assert_eq!(early, [lost], "white space makes it too long");
    for fill in 120..220 {
        // The prefix ends in each byte of these tokens once.
        let tokens = r#"[true,null,false,-1.5e+3,"\u00e9\n",{"a":{}}]"#;
        let fill = "f".repeat(fill);
        let [early, _] =
            check(|id| format!("{{\"id\":{id},\"a\":\"{fill}\",\"b\":{tokens},\"result\":\"{long}\"}}\n"), 300);
        assert_eq!(early, [lost], "filled with {} bytes", fill.len());
    }
    let [early, late] = check(|id| format!("{{\"method\":\"m\",\"id\":{id},\"params\":\"{long}\"}}\n"), 300);
    assert!(
        early.len() == 1 && early[0].starts_with("request \"req_") && early[0].ends_with("m over 300"),
        "{early:?}"
    );
    assert_eq!(late.len(), 1);
    for line in [
        r#"{"id":ID,"method":"LONG"}"#,
        r#"{"id":ID,"m\u0065thod":"LONG"}"#,
        r#"{"id":ID,,"result":"LONG"}"#,
        r#"{"result":"LONG","id":ID}"#,
    ] {
        let [early, late] = check(|id| line.replace("ID", id).replace("LONG", &long) + "\n", 300);
        assert!(early.is_empty(), "{line}: {early:?}");
        assert_eq!(late.len(), 1);
    }
    let mut peer: Peer<&str> = Peer::with_seed_and_limit(1, 8);
    peer.push(b"123456789\n{\"id\":1}\n");
    let Some(Event::Dropped(dropped)) = peer.next_event() else { panic!() };
    assert_eq!((dropped.prefix, dropped.why), (&b"12345678"[..], DropReason::TooLong { limit: 8 }));
    assert_eq!(LostReason::TooLong { limit: 8 }.to_string(), "the answer is longer than the line limit of 8 bytes");
}
