//! Aborts, withdrawal, the flush mark and memory, at sizes where a leak or a race would show.

use std::thread;

use dsh_wire::frame::Frame;
use dsh_wire::line::DEFAULT_LIMIT;
use dsh_wire::peer::{AbortToken, DropReason, Event, Peer, SendError};
use serde_json::json;

/// How many rounds a loop takes that must not keep anything: fewer where the compiler was told not to optimise.
const ROUNDS: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// All that waits to go out, taken.
fn take(peer: &mut Peer<u64>) -> Vec<u8> {
    let bytes = peer.outgoing().chunks().collect::<Vec<_>>().concat();
    peer.outgoing().consume(bytes.len());
    bytes
}

fn ids(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        assert!(line.ends_with(b"\n"), "a frame is whole");
        match Frame::parse(core::str::from_utf8(line).unwrap()) {
            Ok(Frame::Request { id, .. }) => id.get().to_owned(),
            other => panic!("{other:?}"),
        }
    });
    lines.collect()
}

#[test]
fn a_set_token_writes_nothing_and_uses_no_id() {
    let mut peer = Peer::with_seed(1);
    let token = AbortToken::new("never mind");
    token.clone().abort();
    let mark = peer.sent_mark();
    for _ in 0..3 {
        let Err(SendError::Aborted(reason)) = peer.request("m", &(), 0, Some(&token)) else { panic!() };
        assert_eq!(reason.as_str(), "never mind");
    }
    assert!(peer.outgoing().is_empty() && peer.pending() == 0 && !peer.has_tokens() && peer.is_flushed(mark));
    assert!(peer.next_event().is_none());
    peer.request("m", &(), 1, None).unwrap();
    assert!(ids(&take(&mut peer))[0].ends_with("0\""), "the first id is still unused");
}

#[test]
fn one_token_ends_ten_thousand_calls() {
    const CALLS: u64 = 10_000;
    for written in [0, CALLS / 2, CALLS] {
        let mut peer = Peer::with_seed(1);
        let token = AbortToken::new("enough");
        for tag in 0..written {
            peer.request("m", &json!({"n": tag}), tag, Some(&token)).unwrap();
        }
        let out = take(&mut peer);
        for tag in written..CALLS {
            peer.request("m", &json!({"n": tag}), tag, Some(&token)).unwrap();
        }
        peer.request("other", &(), CALLS, None).unwrap();
        peer.poll_aborts();
        assert!(peer.next_event().is_none(), "a token that is not set ends nothing");
        token.abort();
        peer.poll_aborts();
        assert_eq!((peer.pending(), peer.has_tokens()), (1, false));
        assert_eq!(ids(&take(&mut peer)).len(), 1, "what had not left is withdrawn");
        for expected in 0..CALLS {
            let Some(Event::Aborted { tag, reason, .. }) = peer.next_event() else { panic!() };
            assert_eq!((tag, reason.as_str()), (expected, "enough"));
        }
        assert!(peer.next_event().is_none());
        // The answers that come all the same.
        for id in ids(&out) {
            peer.push(format!("{{\"id\":{id},\"result\":1}}\n").as_bytes());
            assert!(matches!(peer.next_event(), Some(Event::Unmatched { id: late, .. }) if late.get() == id));
        }
    }
}

#[test]
fn a_token_is_set_from_any_thread() {
    let mut peer = Peer::with_seed(1);
    let tokens: Vec<_> = (0..8).map(|n| AbortToken::new(format!("thread {n}"))).collect();
    for tag in 0..800 {
        peer.request("m", &(), tag, Some(&tokens[tag as usize % 8])).unwrap();
    }
    let setters: Vec<_> = tokens.iter().cloned().map(|token| thread::spawn(move || token.abort())).collect();
    let mut ended = Vec::new();
    while ended.len() < 800 {
        peer.poll_aborts();
        while let Some(Event::Aborted { tag, reason, .. }) = peer.next_event() {
            assert_eq!(reason.to_string(), format!("thread {}", tag % 8));
            ended.push(tag);
        }
        thread::yield_now();
    }
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..800));
    assert!(peer.outgoing().is_empty());
    setters.into_iter().for_each(|setter| setter.join().unwrap());
}

/// Queues a small frame, a call and a small frame, lets `gone` bytes leave, gives the call up, and checks what is seen on
/// the other side. By the call itself or, every other time, by a token.
fn give_up_after(gone: usize, text: &str) {
    let mut peer = Peer::with_seed(1);
    peer.notify("before", &json!({"n": 1})).unwrap();
    let before = peer.outgoing().len();
    let token = AbortToken::new("stop");
    let call = peer.request("call", &json!({"text": text}), 7, Some(&token)).unwrap();
    let mark = peer.sent_mark();
    peer.notify("behind", &json!({"n": 2})).unwrap();

    let mut wire = peer.outgoing().chunks().collect::<Vec<_>>().concat();
    wire.truncate(gone);
    peer.outgoing().consume(gone);
    if gone.is_multiple_of(2) {
        assert_eq!(peer.abort(call), Some(7));
        assert_eq!(peer.abort(call), None);
    } else {
        token.abort();
        peer.poll_aborts();
        assert!(matches!(peer.next_event(), Some(Event::Aborted { tag: 7, .. })));
    }
    assert!(peer.next_event().is_none());
    wire.extend(peer.outgoing().bytes());
    let n = peer.outgoing().bytes().len();
    peer.outgoing().consume(n);
    wire.extend(take(&mut peer));
    assert!(peer.is_flushed(mark));

    let mut other: Peer<()> = Peer::with_seed(2);
    other.push(&wire);
    assert!(matches!(other.next_event(), Some(Event::Notification { method, .. }) if method == "before"));
    if gone > before {
        let Some(Event::Request { params, .. }) = other.next_event() else { panic!("{gone}: cut") };
        assert_eq!(params.member("text").unwrap().as_str().unwrap(), text);
    }
    assert!(matches!(other.next_event(), Some(Event::Notification { method, .. }) if method == "behind"), "{gone}");
    assert!(other.next_event().is_none() && other.lines().buffered() == 0);
}

#[test]
fn a_call_given_up_at_any_byte_is_sent_whole_or_not_at_all() {
    for gone in 0..2000 {
        give_up_after(gone, &"text ".repeat(400));
    }
    let large = "x".repeat(1 << 20);
    for gone in [0, 46, 47, 48, 49, 4095, 65_535, 65_536, 65_537, 1 << 19, 1 << 20, (1 << 20) + 200] {
        give_up_after(gone, &large);
    }
}

#[test]
fn a_prefix_shorter_than_usual_still_names_the_call() {
    // Under 256 bytes the prefix is as long as the limit.
    for limit in [60, 63, 80, 255, 256, 257] {
        for chunk in [1, 7, 100_000] {
            let mut peer = Peer::with_seed_and_limit(1, limit);
            peer.request("m", &(), 1, None).unwrap();
            peer.request("m", &(), 2, None).unwrap();
            let ids = ids(&take(&mut peer));
            let long = "y".repeat(1000);
            let lines = format!(
                "{{\"id\":{},\"result\":\"{long}\"}}\n{{\"id\":{},\"method\":\"{long}\"}}\n{{\"id\":{},\"result\":2}}\n",
                ids[0], ids[1], ids[1]
            );
            let mut seen = Vec::new();
            for piece in lines.as_bytes().chunks(chunk) {
                peer.push(piece);
                while let Some(event) = peer.next_event() {
                    seen.push(match event {
                        Event::Lost { tag, .. } => format!("lost {tag}"),
                        Event::Dropped(dropped) => format!("dropped {}", dropped.len),
                        Event::Response { tag, .. } => format!("response {tag}"),
                        other => panic!("{other:?}"),
                    });
                }
            }
            assert_eq!(seen, ["lost 1", "dropped 1057", "dropped 1057", "response 2"], "limit {limit}, chunk {chunk}");
        }
    }
}

/// A notification on a line of so many bytes.
fn notification(len: usize) -> Vec<u8> {
    let [head, tail] = [r#"{"method":"m","params":{"text":""#, r#""}}"#];
    [head, &"x".repeat(len - head.len() - tail.len()), tail].concat().into_bytes()
}

#[test]
fn the_default_limit_is_64_mib_to_the_byte() {
    let mut peer: Peer<()> = Peer::with_seed(1);
    for (len, whole) in [(64 << 20, true), ((64 << 20) + 1, false)] {
        notification(len).chunks(1 << 16).for_each(|piece| peer.push(piece));
        peer.push(b"\n");
        match peer.next_event() {
            Some(Event::Notification { .. }) => assert!(whole),
            Some(Event::Dropped(dropped)) => {
                assert!(!whole && dropped.len == len as u64);
                assert_eq!(dropped.why, DropReason::TooLong { limit: DEFAULT_LIMIT });
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Nanoseconds that this thread has had the processor.
#[cfg(target_os = "linux")]
fn thread_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The processor time that a peer takes for a stream of notifications in pieces of one length.
#[cfg(target_os = "linux")]
fn time(stream: &[u8], piece: usize) -> u64 {
    let mut peer: Peer<()> = Peer::with_seed(1);
    let (start, mut events) = (thread_time(), 0);
    for piece in stream.chunks(piece) {
        peer.push(piece);
        while let Some(event) = peer.next_event() {
            assert!(matches!(event, Event::Notification { .. }));
            events += 1;
        }
    }
    let time = thread_time() - start;
    assert_eq!(events, stream.iter().filter(|byte| **byte == b'\n').count());
    time
}

#[test]
#[ignore = "a measurement, for a quiet machine; what it would show of the code is counted in src/line.rs"]
#[cfg(target_os = "linux")]
fn a_long_line_costs_at_most_twice_what_small_frames_do() {
    let len = if cfg!(debug_assertions) { 2 << 20 } else { DEFAULT_LIMIT };
    let long = [notification(len), b"\n".to_vec()].concat();
    let small = [notification(250), b"\n".to_vec()].concat().repeat(len / 251);
    for piece in [1 << 16, 1] {
        // The median of turns, since a busy machine slows both halves of one.
        let ratio = |_| time(&long, piece) as f64 / time(&small, piece) as f64;
        let mut ratios: Vec<f64> = (0..5).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        println!("one line of {len} bytes in pieces of {piece}, × the time of small frames: {ratios:.2?}");
        assert!(ratios[2] <= 2.0, "in pieces of {piece}: {ratios:?}");
    }
}

/// Resident bytes of this process that are not pages of a file: code comes in when it is first run.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: Vec<u64> = pages.split(' ').take(3).map(|n| n.parse().unwrap()).collect();
    (pages[1] - pages[2]) * 4096
}

/// Runs a test of this file again in a process of its own, where nothing else allocates; true in that process.
#[cfg(target_os = "linux")]
fn alone(test: &str) -> bool {
    if std::env::var_os("DSH_WIRE_ALONE").is_some() {
        return true;
    }
    let exe = std::env::current_exe().unwrap();
    let run = std::process::Command::new(exe)
        .args([&format!("bounds::{test}"), "--exact", "--test-threads=1"])
        .env("DSH_WIRE_ALONE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&run.stderr));
    false
}

/// Runs `round` again and again; the memory in use must not grow after the first part.
#[cfg(target_os = "linux")]
fn stays_flat(mut round: impl FnMut(u64)) {
    (0..ROUNDS / 10).for_each(&mut round);
    let before = resident();
    (ROUNDS / 10..ROUNDS).for_each(&mut round);
    let grown = resident().saturating_sub(before);
    // The allocator's own steps are 64 KiB; a leak of a word a round would be 720 KB, or 7 MB in a release build.
    assert!(grown <= 256 << 10, "{grown} bytes more after {ROUNDS} rounds");
    println!("{grown} bytes more after {ROUNDS} rounds");
}

#[test]
#[cfg(target_os = "linux")]
fn calls_started_and_given_up_leave_memory_flat() {
    if !alone("calls_started_and_given_up_leave_memory_flat") {
        return;
    }
    // Given up at once, one way and the other; nobody reads.
    let mut peer: Peer<u64> = Peer::with_seed(1);
    stays_flat(|tag| {
        let token = AbortToken::new("stop");
        let call = peer.request("m", &json!({"n": tag}), tag, Some(&token)).unwrap();
        if tag.is_multiple_of(2) {
            assert_eq!(peer.abort(call), Some(tag));
        } else {
            token.abort();
            peer.poll_aborts();
            assert!(matches!(peer.next_event(), Some(Event::Aborted { tag: ours, .. }) if ours == tag));
        }
    });
    assert!(peer.outgoing().is_empty() && peer.pending() == 0);

    // One that has not been given up is always left, behind a frame whose first byte has gone and whose rest nobody takes.
    let mut peer: Peer<u64> = Peer::with_seed(1);
    let token = AbortToken::new("stop");
    peer.notify("stuck", &()).unwrap();
    peer.outgoing().consume(1);
    let mut last = peer.request("m", &(), 0, Some(&token)).unwrap();
    stays_flat(|tag| {
        let next = peer.request("m", &json!({"n": tag}), tag, Some(&token)).unwrap();
        assert!(peer.abort(std::mem::replace(&mut last, next)).is_some());
    });
    assert_eq!(peer.pending(), 1);

    // Written, given up, and answered too late.
    let mut peer: Peer<u64> = Peer::with_seed(1);
    stays_flat(|tag| {
        let call = peer.request("m", &(), tag, Some(&token)).unwrap();
        let id = ids(&take(&mut peer)).remove(0);
        assert_eq!(peer.abort(call), Some(tag));
        peer.push(format!("{{\"id\":{id},\"result\":{tag}}}\n").as_bytes());
        assert!(matches!(peer.next_event(), Some(Event::Unmatched { .. })));
    });
    assert!(peer.lines().buffered() == 0 && peer.pending() == 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_line_over_the_limit_and_a_long_stream_leave_memory_flat() {
    if !alone("a_line_over_the_limit_and_a_long_stream_leave_memory_flat") {
        return;
    }
    let mut peer: Peer<u64> = Peer::with_seed_and_limit(1, 1 << 16);
    let piece = [b'x'; 1000];
    stays_flat(|_| {
        peer.push(&piece);
        assert!(peer.next_event().is_none() && peer.lines().buffered() <= 1 << 16);
    });
    peer.push(b"\n");
    let Some(Event::Dropped(dropped)) = peer.next_event() else { panic!() };
    assert_eq!((dropped.len, dropped.prefix), (ROUNDS * 1000, &piece[..256]));
    // Cut so that a line is always unfinished when the next piece comes.
    let frames = b"{\"method\":\"a\",\"params\":{}}\n".repeat(40);
    let mut stream = frames.iter().copied().cycle();
    let (mut buf, mut count) = (Vec::new(), 0);
    stays_flat(|round| {
        buf.clear();
        buf.extend(stream.by_ref().take(30 + round as usize % 7));
        peer.push(&buf);
        while let Some(event) = peer.next_event() {
            assert!(matches!(event, Event::Notification { .. }));
            count += 1;
        }
    });
    assert!(count > ROUNDS);
}
