//! The blocking client against real processes that misbehave. Each test has a bound on the wall clock.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dsh_wire::client::{Delivery, Filter, Graces, Policy, Rung, RungEnd, RuntimeRequest};
use dsh_wire::frame::RpcError;
use dsh_wire::json::JsonBuf;
use dsh_wire::peer::AbortToken;
use dsh_wire::stdio::{
    CallOptions, Cause, DeepSeekHarness, ErrorKind, Exit, HarnessClient, HarnessOptions, Launch, PendingCall,
    RunOptions, SpawnFault, Stderr,
};
use dsh_wire::wire::ContentBlock;
use serde_json::json;

use crate::faulty::{SECOND, chain, count, exists, faulty, options, route, slack, start, within};

fn harness(flags: &[&str]) -> DeepSeekHarness {
    let mut options = HarnessOptions::new(faulty(flags), route());
    options.client = crate::faulty::options();
    DeepSeekHarness::start(&options).unwrap()
}

/// Ends the client in order and checks that nothing is left of its process.
#[track_caller]
fn close(mut client: HarnessClient) {
    let pid = client.process_id().unwrap();
    let report = within(4 * SECOND, || client.close());
    assert!(report.exit.is_some(), "{report:?}");
    assert!(!exists(pid));
    assert_eq!((client.pending_calls(), client.close().rungs), (0, report.rungs));
}

#[test]
fn every_method_of_the_protocol() {
    let mut client = start(&[]);
    let result = client.initialize(&route()).unwrap();
    assert_eq!(result.server_info.unwrap().name.unwrap().to_string(), "deepseek-harness-sdk-runtime");
    assert_eq!(client.working_directory("s").unwrap().to_string(), "/somewhere");
    assert_eq!(client.set_working_directory("s", "/else").unwrap().to_string(), "/else");
    client.resume("s").unwrap();
    client.wait("s").unwrap();
    let events = client.subscribe_session_tree("s");
    let result = client.prompt("s", &[ContentBlock::text("hello")]).unwrap();
    assert_eq!(result.message_id().unwrap().to_string(), "message-1");
    let mut methods = Vec::new();
    for delivery in events.iter(&mut client) {
        let delivery = delivery.unwrap();
        let notification = delivery.notification().unwrap();
        methods.push(notification.event().map_or(notification.method, |event| event.kind).to_string());
        if notification.status().is_some_and(|status| status == dsh_wire::wire::Status::Idle) {
            break;
        }
    }
    assert_eq!(
        methods,
        ["agent/inbox/spliced", "session.status", "turn/start", "assistant/message", "turn/end", "session.status"]
    );
    let raw = client.call("echo", &json!({ "a": [1, "\u{2028}"] })).unwrap();
    assert_eq!(raw.as_json().get(), "{\"a\":[1,\"\u{2028}\"]}");
    let error = client.call("no/such", &()).unwrap_err();
    assert_eq!(error.rpc().unwrap().code, Some(-32603));
    assert_eq!(
        chain(&error),
        "cannot call no/such: the runtime answered with an error: \
         unknown DeepSeek Harness SDK runtime method: no/such (code -32603)"
    );
    let told = client.subscribe(Filter::all().method("got.notification"), Policy::Lossless);
    client.notify("hint", &json!({})).unwrap();
    told.next_timeout(&mut client, SECOND).unwrap().unwrap();
    close(client);
}

#[track_caller]
fn check_run(flags: &[&str], deltas: &str, kinds: &[&str]) {
    let mut harness = harness(flags);
    for round in 0..2 {
        let (mut seen, mut streamed) = (0, String::new());
        let options = RunOptions::new().timeout(5 * SECOND).on_notification(|notification| {
            seen += 1;
            streamed.extend(dsh_wire::client::text_delta(notification).map(|text| text.to_string()));
        });
        let result = harness.session("s").run("hello", options).unwrap();
        assert_eq!((&*result.final_response, result.finish_reason.as_deref()), ("echo: hello", Some("completed")));
        assert_eq!((result.session_id.to_string(), &*streamed), ("s".into(), deltas), "round {round}");
        let events: Vec<_> = result.events().map(|event| event.kind.to_string()).collect();
        assert_eq!(events, kinds);
        assert_eq!(seen, result.notifications.len());
    }
    let result = harness.run("again", RunOptions::new().collect(false).until_settled(true)).unwrap();
    assert_eq!((&*result.final_response, result.notifications.len()), ("echo: again", 0));
    assert!(result.session_id.to_string().starts_with("session-"));
    let report = harness.close();
    assert_eq!(report.exit, Some(Exit::Code(0)));
}

#[test]
fn a_run_on_each_revision_of_the_wire() {
    let today = ["agent/inbox/spliced", "turn/start", "assistant/message", "turn/end"];
    check_run(&["wire=0.2.1"], "", &today);
    let chunks = ["assistant/chunk", "assistant/chunk"];
    let streaming = [&today[..2], &chunks, &today[2..]].concat();
    check_run(&["wire=0.1.1"], "echo: hello", &streaming);
    check_run(&["wire=2026-07"], "echo: hello", &streaming[1..]);
}

#[test]
fn death_with_calls_open_names_the_exit_and_the_last_words() {
    for (flag, exit, words) in [
        ("exit=boom", Exit::Code(3), "the runtime exited with code 3, and last said: last words"),
        (
            "kill=boom",
            Exit::Signal(9),
            "the runtime was killed by signal 9 (SIGKILL), and last said: about to be killed",
        ),
    ] {
        let mut client = start(&[flag, "silent=quiet", "flood=3"]);
        let sub = client.subscribe(Filter::all(), Policy::Lossless);
        let quiet: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
        let error = within(SECOND, || client.call("boom", &())).unwrap_err();
        assert_eq!(error.exit(), Some(exit));
        assert!(chain(&error).contains(words), "{}", chain(&error));
        assert!(!error.stderr().unwrap().text().is_empty());
        assert_eq!(within(SECOND, || client.finish(quiet)).unwrap_err().exit(), Some(exit));
        // What was delivered comes first.
        let left: Vec<_> = within(SECOND, || sub.iter(&mut client).collect());
        assert_eq!(left.iter().map(|delivery| delivery.is_ok()).collect::<Vec<_>>(), [true, true, true, false]);
        assert_eq!(left.into_iter().last().unwrap().unwrap_err().exit(), Some(exit));
        assert_eq!(within(SECOND, || client.call("more", &())).unwrap_err().exit(), Some(exit));
        assert_eq!(client.pump(Duration::ZERO).unwrap_err().exit(), Some(exit));
        close(client);
    }
}

#[test]
fn death_in_mid_turn_ends_the_run_and_names_the_session() {
    let mut harness = harness(&["dies-in-turn"]);
    let error = within(SECOND, || harness.session("s-7").run("hello", RunOptions::new())).unwrap_err();
    assert_eq!((error.exit(), error.session_id().unwrap().to_string()), (Some(Exit::Code(9)), "s-7".into()));
    assert!(error.to_string().starts_with("cannot finish the run on session \"s-7\": the runtime exited"), "{error}");
}

#[test]
fn a_run_has_a_deadline_and_a_token() {
    let mut harness = harness(&["never-idle"]);
    let mut session = harness.session("s");
    let options = RunOptions::new().timeout(Duration::from_millis(100));
    let error = within(SECOND, || session.run("hello", options)).unwrap_err();
    assert_eq!(error.to_string(), "cannot finish the run on session \"s\": timed out after 100ms");
    // It is set when the prompt has long been answered, and nothing comes any more.
    let token = AbortToken::new("escape");
    let (told, tell) = std::sync::mpsc::channel();
    let setter = token.clone();
    let thread = std::thread::spawn(move || {
        tell.recv().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        setter.abort();
    });
    let options = RunOptions::new().token(&token).on_notification(|notification| {
        if notification.event().is_some_and(|event| event.kind == "assistant/message") {
            told.send(()).unwrap();
        }
    });
    let error = within(SECOND, || session.run("hello", options)).unwrap_err();
    thread.join().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Aborted(reason) if reason.as_str() == "escape"), "{error}");
}

#[test]
fn output_that_ends_ends_the_calls_though_the_process_lives() {
    let mut client = start(&["close-stdout=boom", "silent=boom"]);
    let error = within(SECOND, || client.call("boom", &())).unwrap_err();
    assert!(matches!(error.closed().unwrap().cause, Cause::OutputEnded));
    assert_eq!(error.to_string(), "cannot call boom: the runtime has closed its output");
    close(client);
}

#[test]
fn a_runtime_that_closes_its_stdin_is_broken() {
    let mut client = start(&["close-stdin"]);
    let closed = client.subscribe(Filter::all().method("stdin.closed"), Policy::Lossless);
    closed.next_timeout(&mut client, 5 * SECOND).unwrap().unwrap();
    let error = within(SECOND, || client.call("x", &())).unwrap_err();
    assert!(
        matches!(&error.closed().unwrap().cause, Cause::Broken(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    );
    close(client);
}

#[test]
fn the_deadline_covers_the_write() {
    let mut client = start(&["never-read"]);
    let call = CallOptions::default().timeout(Duration::from_millis(300));
    let big = "x".repeat(1 << 20);
    let error = within(SECOND, || client.call_with::<JsonBuf>("big", &[&big], &call)).unwrap_err();
    assert_eq!(error.to_string(), "cannot call big: timed out after 300ms");
    // The frame has begun to leave, so the next one waits behind it, and its deadline holds as well.
    let call = CallOptions::default().timeout(Duration::ZERO);
    assert!(within(SECOND, || client.call_with::<JsonBuf>("small", &(), &call)).unwrap_err().is_timeout());
    assert_eq!(client.pending_calls(), 0);
    close(client);
}

#[test]
fn a_huge_timeout_is_none_and_a_late_answer_is_counted() {
    let mut client = start(&["late=slow"]);
    let huge = CallOptions::default().timeout(Duration::MAX);
    client.call_with::<JsonBuf>("echo", &json!({}), &huge).unwrap();
    let short = CallOptions::default().timeout(Duration::from_millis(20));
    assert!(client.call_with::<JsonBuf>("slow", &(), &short).unwrap_err().is_timeout());
    client.call("echo", &json!({})).unwrap();
    assert_eq!(client.counters().unmatched, 1);
    close(client);
}

#[test]
fn a_token_set_by_another_thread_ends_the_call() {
    let mut client = start(&["silent=quiet"]);
    client.initialize(&route()).unwrap();
    let token = AbortToken::new("enough");
    let call: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default().token(&token)).unwrap();
    let waker = client.waker();
    let thread = std::thread::spawn({
        let token = token.clone();
        move || {
            token.abort();
            waker.wake();
        }
    });
    let error = within(SECOND, || client.finish(call)).unwrap_err();
    assert_eq!(error.to_string(), "cannot call quiet: aborted: enough");
    thread.join().unwrap();
    let refused = client.start_call::<JsonBuf>("quiet", &(), &CallOptions::default().token(&token));
    assert!(matches!(refused.unwrap_err().kind(), ErrorKind::Aborted(_)));
    close(client);
}

#[test]
fn many_calls_in_flight_and_the_answers_of_dropped_ones_are_not_kept() {
    let mut client = start(&["silent=quiet"]);
    let call = |client: &mut HarnessClient, n: u32| -> PendingCall<JsonBuf> {
        client.start_call("echo", &json!({ "n": n }), &CallOptions::default()).unwrap()
    };
    let calls: Vec<_> = (0..100).map(|n| call(&mut client, n)).collect();
    assert_eq!(client.counters().most_pending, 100);
    for (n, call) in calls.into_iter().enumerate().rev() {
        if n % 2 == 0 {
            assert_eq!(client.finish(call).unwrap().as_json().get(), format!("{{\"n\":{n}}}"));
        }
    }
    let quiet: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
    assert!(client.try_finish(&quiet).is_none());
    client.abandon(quiet);
    // The answer to the last one, which was dropped first, may not have been read yet.
    within(SECOND, || {
        while client.pending_calls() > 0 {
            client.pump(SECOND).unwrap();
        }
    });
    close(client);
}

#[test]
fn an_answer_of_another_shape_is_a_breach_of_the_protocol() {
    let mut client = start(&["odd=session/prompt"]);
    let error = client.prompt("s", &[]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Protocol { came, .. } if came.as_json().get() == "[1]"));
    assert!(chain(&error).contains("expected an object, found an array"), "{}", chain(&error));
    close(client);
}

#[test]
fn the_answer_in_the_pipe_at_the_exit_is_delivered() {
    let mut client = start(&["big-answer=last"]);
    let answer = within(2 * SECOND, || client.call("last", &())).unwrap();
    assert_eq!(answer.as_json().get().len(), (1 << 20) + 11);
    let mut client = start(&["cut-answer=last"]);
    let error = within(SECOND, || client.call("last", &())).unwrap_err();
    assert_eq!((error.exit(), client.counters().dropped_unterminated), (Some(Exit::Code(0)), 1));
}

/// Whose very last line tells nothing.
#[test]
fn the_report_of_an_error_has_the_last_lines_of_stderr() {
    let script = "for n in 1 2 3 4 5; do echo line $n >&2; done; echo >&2; echo the end >&2; exit 1";
    let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", script]), options()).unwrap();
    let error = within(SECOND, || client.call("m", &())).unwrap_err();
    let line = "cannot call m: the runtime exited with code 1, and last said: the end";
    let end = "\n  stderr of the runtime, its end:\n    line 2\n    line 3\n    line 4\n    line 5\n    the end";
    assert_eq!((format!("{error:#}"), format!("{error:?}")), (line.into(), format!("{line}{end}")));
    close(client);
}

#[test]
fn a_grandchild_that_holds_the_pipe_holds_up_nobody() {
    let mut client = start(&["grandchild=last"]);
    let error = within(SECOND, || client.call("last", &())).unwrap_err();
    assert_eq!(error.exit(), Some(Exit::Code(0)));
    assert!(matches!(error.closed().unwrap().cause, Cause::Exited), "{error:?}");
    close(client);
}

#[test]
fn a_grandchild_that_goes_on_writing_to_both_pipes_holds_up_nobody() {
    // Two, since the one that writes to stdout is ended by SIGPIPE when we close it.
    let forever = |what: &str| format!("while :; do {what}; sleep 0.01; done &");
    let script = format!("{} {} read -r one; exit 3", forever("echo out"), forever("echo err >&2"));
    // The time there is for it is part of the second that is promised, so a slow machine gets more tries, not more time.
    let mut tries = (0..5 * slack()).map(|_| {
        let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", &*script]), options()).unwrap();
        let start = Instant::now();
        let error = client.call("last", &()).unwrap_err();
        let took = start.elapsed();
        assert_eq!(error.exit(), Some(Exit::Code(3)));
        close(client);
        took
    });
    assert!(tries.any(|took| took < SECOND));
}

#[test]
fn a_runtime_that_has_closed_its_stdin_and_lives_on_is_waited_for_once() {
    let script = "exec <&-; echo closed >&2; exec sleep 60";
    let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", script]), options()).unwrap();
    within(10 * SECOND, || {
        while client.notify("hello", &()).is_ok() {
            let _ = client.pump(Duration::from_millis(5));
        }
    });
    within(SECOND, || {
        for _ in 0..20 {
            let error = client.call("m", &()).unwrap_err();
            assert!(matches!(error.closed().unwrap().cause, Cause::Broken(_)), "{error:?}");
            let _ = client.pump(Duration::ZERO);
        }
    });
    client.close();
}

#[test]
fn what_is_no_frame_is_counted_and_stderr_is_drained() {
    let mut client = start(&["banner", "stderr-lines=5000"]);
    within(5 * SECOND, || client.initialize(&route())).unwrap();
    assert_eq!(client.counters().dropped_no_frame(), 6);
    let report = client.close();
    assert!(report.stderr.is_cut());
    assert!(report.stderr.text().lines().count() <= 401);
    assert!(report.stderr.last_line().unwrap().starts_with("stderr line 4999"));
}

#[test]
fn stderr_can_be_handed_to_a_callback() {
    let seen = Arc::new(Mutex::new(Vec::<u8>::new()));
    let sink = Arc::clone(&seen);
    let launch = faulty(&["exit-at-start"]).stderr(Stderr::callback(move |piece| sink.lock().unwrap().extend(piece)));
    let mut client = HarnessClient::spawn(&launch).unwrap();
    let error = within(SECOND, || client.initialize(&route())).unwrap_err();
    assert_eq!(error.exit(), Some(Exit::Code(7)));
    assert_eq!(*seen.lock().unwrap(), b"cannot even start\n");
}

#[test]
fn the_ladder_goes_as_far_as_it_must() {
    let rungs = |flags: &[&str]| {
        let mut client = start(flags);
        client.initialize(&route()).unwrap();
        let pid = client.process_id().unwrap();
        let report = client.close();
        assert!(!exists(pid));
        (report.rungs.iter().map(|rung| (rung.rung, rung.end)).collect::<Vec<_>>(), report.exit.unwrap())
    };
    use Rung::*;
    use RungEnd::*;
    let orderly = [(RequestShutdown, Answered), (CloseStdin, Exited)];
    let (report, exit) = rungs(&[]);
    assert!(report == orderly || report == [(RequestShutdown, Exited)], "{report:?}");
    assert_eq!(exit, Exit::Code(0));
    let (report, exit) = rungs(&["ignore-eof"]);
    assert_eq!(report, [(RequestShutdown, Answered), (CloseStdin, TimedOut), (Terminate, Exited)]);
    assert_eq!(exit, Exit::Signal(15));
    let (report, exit) = rungs(&["ignore-eof", "ignore-term", "silent=shutdown"]);
    assert_eq!(report, [(RequestShutdown, TimedOut), (CloseStdin, TimedOut), (Terminate, TimedOut), (Kill, Exited)]);
    assert_eq!(exit, Exit::Signal(9));
}

#[test]
fn after_close_everything_ends_at_once() {
    let mut client = start(&["flood=10"]);
    let sub = client.subscribe(Filter::all(), Policy::Lossless);
    sub.next(&mut client).unwrap();
    client.close();
    for error in [sub.next(&mut client).unwrap_err(), client.call("x", &()).unwrap_err()] {
        assert!(matches!(error.closed().unwrap().cause, Cause::ClosedHere), "{error:?}");
    }
}

#[test]
fn dropping_ends_a_runtime_that_ignores_everything() {
    let client = start(&["ignore-eof", "ignore-term"]);
    let pid = client.process_id().unwrap();
    within(SECOND, || drop(client));
    assert!(!exists(pid));
}

#[test]
fn a_group_is_ended_with_its_leader() {
    // A launcher chain: the shell is our child, the runtime its child.
    let runtime = faulty(&["ignore-eof", "ignore-term"]);
    let text = format!("{runtime:?}");
    let path = text.split('"').nth(1).unwrap().to_owned();
    let script =
        format!("{path} --ignore-eof --ignore-term & echo '{{\"method\":\"pid\",\"params\":{{\"pid\":'$!'}}}}'; wait");
    let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", &script]), options()).unwrap();
    let pids = client.subscribe(Filter::all().method("pid"), Policy::Lossless);
    let delivery = pids.next_timeout(&mut client, 5 * SECOND).unwrap().unwrap();
    let pid = delivery.notification().unwrap().params.member("pid").unwrap().as_u64().unwrap();
    close(client);
    // It was given to init, or to whoever collects orphans here, which may take its time to reap it.
    let dead =
        |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    within(SECOND, || while !dead(u32::try_from(pid).unwrap()) {});
}

#[test]
fn what_cannot_be_started_says_so() {
    let spawn = |launch: &Launch| {
        let error = HarnessClient::spawn(launch).unwrap_err();
        let text = chain(&error);
        let ErrorKind::Spawn(error) = error.into_kind() else { panic!("{text}") };
        (error.fault(), text)
    };
    let (fault, text) = spawn(&Launch::new("no-such-runtime"));
    assert_eq!(fault, SpawnFault::ProgramMissing);
    assert_eq!(text, "cannot start \"no-such-runtime\": there is no such program on PATH");
    assert_eq!(spawn(&faulty(&[]).cwd("/no/such/dir")).0, SpawnFault::NoDirectory);
    assert_eq!(spawn(&Launch::new("/etc/passwd")).0, SpawnFault::NotExecutable);
    assert_eq!(spawn(&Launch::new("/etc")).0, SpawnFault::ProgramIsDirectory);
}

#[test]
fn requests_of_the_runtime_are_refused_or_answered_and_never_block() {
    // Their number is more than both pipes hold.
    let mut client = start(&["ask-first=3000"]);
    within(5 * SECOND, || client.initialize(&route())).unwrap();
    assert_eq!(client.counters().refused, 3000);
    close(client);
    let mut client = start(&["ask-first=1"]);
    client.take_requests(true);
    client.initialize(&route()).unwrap();
    let answered = client.subscribe(Filter::all().method("got.response"), Policy::Lossless);
    assert_eq!(client.counters().most_requested, "\"runtime/ask\"{\"n\":0}".len());
    let request = client.next_request().unwrap();
    assert_eq!((request.method.to_string(), request.params.as_json().get()), ("runtime/ask".into(), "{\"n\":0}"));
    client.answer(request.reply, &json!({ "yes": true })).unwrap();
    answered.next_timeout(&mut client, SECOND).unwrap().unwrap();
    close(client);
}

#[test]
fn a_run_answers_what_the_runtime_asks_in_it() {
    let mut harness = harness(&["ask-in-turn"]);
    let mut asked = Vec::new();
    let options = RunOptions::new().timeout(5 * SECOND).on_request(|request| {
        asked.push(request.method.to_string());
        Ok(json!({ "decision": "approved" }))
    });
    assert_eq!(harness.session("s").run("hello", options).unwrap().final_response, "echo: hello");
    assert_eq!(asked, ["approval/request"]);
    // An error as well; and nobody answers where no run does.
    let answered = harness.client().subscribe(Filter::all().method("got.response"), Policy::Lossless);
    let refuse = |_: &RuntimeRequest| Err::<(), _>(RpcError::new(7, "not today", None));
    harness.session("s").run("again", RunOptions::new().on_request(refuse)).unwrap();
    harness.session("s").run("and again", RunOptions::new().timeout(5 * SECOND)).unwrap();
    let error = |harness: &mut DeepSeekHarness| {
        let delivery = answered.next_timeout(harness.client(), SECOND).unwrap().unwrap();
        delivery.notification().unwrap().params.member("error").unwrap().get().to_owned()
    };
    assert_eq!(error(&mut harness), r#"{"code":7,"message":"not today"}"#);
    assert_eq!(error(&mut harness), r#"{"code":-32601,"message":"method not found: approval/request"}"#);
    // What was kept, and is not wanted any more, is refused.
    harness.client().take_requests(true);
    let prompt: PendingCall<JsonBuf> =
        harness.client().start_call("session/prompt", &json!({ "sessionId": "s" }), &CallOptions::default()).unwrap();
    while harness.client().counters().requests < 4 {
        harness.client().pump(SECOND).unwrap();
    }
    harness.client().take_requests(false);
    within(SECOND, || harness.client().finish(prompt)).unwrap();
    assert!(harness.client().next_request().is_none());
    harness.close();
}

#[test]
fn runs_of_two_sessions_go_on_together() {
    let mut harness = harness(&["ask-in-turn", "events=20"]);
    let seen = std::cell::Cell::new(0);
    let options = || {
        let options = RunOptions::new().timeout(5 * SECOND).on_notification(|_| seen.set(seen.get() + 1));
        options.on_request(|_| Ok(json!({})))
    };
    let mut runs = Vec::new();
    for session in ["a", "b"] {
        runs.push(harness.session(session).start_run(session, options()).unwrap());
    }
    let busy = harness.session("a").start_run("more", RunOptions::new()).unwrap_err();
    assert_eq!(busy.to_string(), "cannot start a run on session \"a\": a run on it has been started and not finished");
    assert!(matches!(harness.session("b").run("more", RunOptions::new()).unwrap_err().kind(), ErrorKind::SessionBusy));
    let mut results = Vec::new();
    within(5 * SECOND, || {
        while !runs.is_empty() {
            harness.client().pump(SECOND).unwrap();
            runs.retain_mut(|run| {
                let end = run.try_finish(harness.client());
                results.extend(end.map(|end| end.unwrap()));
                results.last().is_none_or(|last| last.session_id != *run.session_id())
            });
        }
    });
    let said: Vec<_> = results.iter().map(|result| (&*result.final_response, result.events().count())).collect();
    assert_eq!(said, [("echo: a", 24), ("echo: b", 24)]);
    assert_eq!(seen.get(), results.iter().map(|result| result.notifications.len()).sum::<usize>());
    // One after the other does as well; the end is taken once, and then there is room for the next.
    let first = harness.session("a").start_run("one", options()).unwrap();
    let mut second = harness.session("b").start_run("two", options()).unwrap();
    assert_eq!(within(SECOND, || first.finish(harness.client())).unwrap().final_response, "echo: one");
    within(SECOND, || {
        while second.try_finish(harness.client()).is_none_or(|end| end.is_err()) {
            harness.client().pump(SECOND).unwrap();
        }
    });
    assert!(matches!(second.try_finish(harness.client()).unwrap().unwrap_err().kind(), ErrorKind::NoSuchCall));
    drop(second);
    harness.session("b").run("three", options()).unwrap();
    harness.close();
}

#[test]
fn a_started_run_ends_with_its_deadline_its_token_or_the_runtime() {
    let mut harness = harness(&["never-idle", "kill=boom"]);
    let token = harness.client().abort_token("enough");
    let timed = harness.session("a").start_run("hello", RunOptions::new().timeout(Duration::from_millis(50))).unwrap();
    let aborted = harness.session("b").start_run("hello", RunOptions::new().token(&token)).unwrap();
    let open = harness.session("c").start_run("hello", RunOptions::new()).unwrap();
    let error = within(SECOND, || timed.finish(harness.client())).unwrap_err();
    assert!(error.is_timeout() && error.session_id().is_some_and(|id| *id == "a".into()), "{error}");
    token.abort();
    let error = within(SECOND, || aborted.finish(harness.client())).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Aborted(_)), "{error}");
    within(SECOND, || harness.client().call("boom", &())).unwrap_err();
    let error = within(SECOND, || open.finish(harness.client())).unwrap_err();
    assert_eq!((error.exit(), error.session_id().unwrap().to_string()), (Some(Exit::Signal(9)), "c".into()));
    assert_eq!(harness.client().pending_calls(), 0);
    harness.close();
}

#[test]
fn answers_that_the_runtime_does_not_read_are_bounded() {
    let mut options = options();
    options.max_backlog = 50_000;
    // It asks more than it could be answered into its pipe before it reads.
    let mut client = HarnessClient::spawn_with(&faulty(&["ask-first=3000"]), options).unwrap();
    let error = within(SECOND, || client.initialize(&route())).unwrap_err();
    let Cause::Backlog { name, held } = &error.closed().unwrap().cause else { panic!("{error}") };
    assert!(name == "answers to the runtime" && (50_000..300_000).contains(held), "{name}: {held}");
    close(client);
}

#[test]
fn a_ladder_without_patience_says_how_it_ended() {
    let mut options = options();
    options.graces =
        Graces { shutdown: Duration::ZERO, stdin: Duration::ZERO, terminate: Duration::ZERO, kill: Duration::ZERO };
    let launch = faulty(&["ignore-eof", "ignore-term", "silent=shutdown"]);
    let mut client = HarnessClient::spawn_with(&launch, options).unwrap();
    client.initialize(&route()).unwrap();
    let report = within(SECOND, || client.close());
    assert_eq!(report.exit, Some(Exit::Signal(9)), "{report}");
    let rungs: Vec<_> = report.rungs.iter().map(|rung| (rung.rung, rung.end)).collect();
    assert_eq!(rungs.last(), Some(&(Rung::Kill, RungEnd::Exited)), "{report}");
    assert_eq!(rungs.len(), 4);
}

#[test]
fn a_slow_subscriber_gets_what_its_policy_says() {
    let mut client = start(&["flood=3000", "flood-text=100"]);
    let bounded = client.subscribe(Filter::all().method("tick"), Policy::bounded(10));
    let lossless = client.subscribe(Filter::all().method("tick"), Policy::Lossless);
    client.initialize(&route()).unwrap();
    assert_eq!(bounded.try_next(&mut client), Some(Delivery::Lagged(2990)));
    let numbers = |sub: &dsh_wire::stdio::Subscription, client: &mut HarnessClient| {
        std::iter::from_fn(|| sub.try_next(client))
            .map(|delivery| delivery.notification().unwrap().params.member("n").unwrap().as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(&bounded, &mut client), (2990..3000).collect::<Vec<_>>());
    assert_eq!(numbers(&lossless, &mut client), (0..3000).collect::<Vec<_>>());
    assert_eq!((lossless.high_water(&client), bounded.high_water(&client)), (3000, 10));
    close(client);
}

#[test]
fn a_backlog_fails_the_connection_and_names_who_does_not_take() {
    let mut options = options();
    options.max_backlog = 100_000;
    let launch = faulty(&["flood=3000", "flood-text=100"]);
    let mut client = HarnessClient::spawn_with(&launch, options).unwrap();
    let sub = client.subscribe_as("the log view", Filter::all(), Policy::Lossless);
    let error = within(SECOND, || client.initialize(&route())).unwrap_err();
    assert!(matches!(&error.closed().unwrap().cause, Cause::Backlog { name, .. } if name == "the log view"), "{error}");
    // What was delivered before drains first.
    assert!(sub.next(&mut client).is_ok());
    close(client);
}

#[test]
fn pumping_alone_holds_up_the_runtime_instead_of_growing() {
    let mut client = start(&["flood=40000", "flood-text=100"]);
    let sub = client.subscribe(Filter::all().method("tick"), Policy::Lossless);
    // It takes as many as fit into 1 MiB, then no more, however often it is pumped.
    within(5 * SECOND, || {
        while sub.high_water(&client) < 5000 {
            client.pump(SECOND).unwrap();
        }
    });
    for _ in 0..5 {
        client.pump(Duration::from_millis(20)).unwrap();
    }
    assert!(sub.high_water(&client) < 12_000, "{}", sub.high_water(&client));
    for n in 0..40_000 {
        let delivery = sub.next(&mut client).unwrap();
        assert_eq!(delivery.notification().unwrap().params.member("n").unwrap().as_u64(), Some(n));
    }
    close(client);
}

#[test]
fn a_subscription_ends_with_its_handle_or_its_predicate() {
    let mut client = start(&["flood=5"]);
    let dropped = client.subscribe(Filter::all(), Policy::Lossless);
    drop(dropped);
    let ill = client.subscribe(Filter::all().matching(|_| panic!("no")), Policy::Lossless);
    client.initialize(&route()).unwrap();
    let error = ill.next(&mut client).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PredicatePanicked));
    close(client);
}

#[test]
fn calls_whose_handles_are_gone_leave_nothing() {
    let mut client = start(&["silent=quiet"]);
    let quick = CallOptions::default().timeout(Duration::from_millis(1));
    for n in 0..50 {
        drop(client.start_call::<JsonBuf>("echo", &json!({ "n": n }), &CallOptions::default()).unwrap());
        drop(client.start_call::<JsonBuf>("quiet", &(), &quick).unwrap());
    }
    std::thread::sleep(Duration::from_millis(2));
    client.call("echo", &json!({})).unwrap();
    assert_eq!((client.pending_calls(), client.kept_calls()), (0, 0));
    close(client);
}

#[test]
fn nothing_is_kept_of_a_call_whose_handle_goes_after_its_end() {
    let mut client = start(&["silent=quiet"]);
    let start = |client: &mut HarnessClient, method: &str| -> PendingCall<JsonBuf> {
        client.start_call(method, &json!({}), &CallOptions::default()).unwrap()
    };
    let [echo, quiet] = ["echo", "quiet"].map(|method| start(&mut client, method));
    // The answer of the first one has come with this, or before.
    client.call("echo", &json!({})).unwrap();
    assert_eq!((client.pending_calls(), client.kept_calls()), (1, 2));
    drop((echo, quiet));
    client.pump(Duration::ZERO).unwrap();
    assert_eq!((client.pending_calls(), client.kept_calls()), (1, 1), "the other one has not ended");
    let left = start(&mut client, "quiet");
    client.close();
    assert_eq!((client.pending_calls(), client.kept_calls()), (0, 1), "its handle is there");
    drop(left);
    assert!(client.pump(Duration::ZERO).is_err());
    assert_eq!(client.kept_calls(), 0);
}

#[test]
fn the_handles_of_another_client_change_nothing() {
    let [mut client, mut other] = [start(&[]), start(&[])];
    let start = |client: &mut HarnessClient| -> PendingCall<JsonBuf> {
        client.start_call("echo", &json!({}), &CallOptions::default()).unwrap()
    };
    let [ours, theirs, given_up] = [start(&mut client), start(&mut other), start(&mut other)];
    let second = start(&mut client);
    assert!(matches!(client.try_finish(&theirs).unwrap().unwrap_err().kind(), ErrorKind::OtherClient));
    client.abandon(theirs);
    let error = client.finish(given_up).unwrap_err();
    assert_eq!(error.to_string(), "cannot call echo: it belongs to another client, and goes on there");
    assert_eq!((client.pending_calls(), client.kept_calls()), (2, 2));
    client.finish(ours).unwrap();
    client.finish(second).unwrap();
    close(client);
    close(other);
}

#[test]
fn a_subscription_of_another_client_gets_nothing_of_this_one() {
    let [mut client, mut other] = [start(&["flood=5"]), start(&[])];
    let ours = client.subscribe(Filter::all(), Policy::Lossless);
    let theirs = other.subscribe(Filter::all(), Policy::Lossless);
    client.initialize(&route()).unwrap();
    assert!(client.counters().notifications > 0);
    assert!(theirs.try_next(&mut client).is_none());
    assert_eq!(theirs.high_water(&client), 0);
    let error = within(SECOND, || theirs.next(&mut client)).unwrap_err();
    assert_eq!(error.to_string(), "cannot wait for a notification: it belongs to another client, and goes on there");
    let error = within(SECOND, || theirs.next_timeout(&mut client, 60 * SECOND)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OtherClient));
    assert!(theirs.iter(&mut client).next().unwrap().is_err());
    assert_eq!(ours.high_water(&client) as u64, client.counters().notifications, "nothing was taken");
    close(client);
    close(other);
}

#[test]
fn a_run_of_another_client_ends_at_once_here_and_goes_on_there() {
    let [mut ours, mut theirs] = [harness(&[]), harness(&[])];
    let mut runs = Vec::new();
    for harness in [&mut ours, &mut theirs] {
        runs.push(harness.session("s").start_run("hello", RunOptions::new()).unwrap());
    }
    let error = within(SECOND, || runs[1].try_finish(ours.client())).unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OtherClient), "{error}");
    assert_eq!(error.session_id().unwrap().to_string(), "s");
    let [run, foreign] = <[_; 2]>::try_from(runs).unwrap();
    within(SECOND, || foreign.finish(theirs.client())).unwrap();
    within(SECOND, || run.finish(theirs.client())).unwrap_err();
    ours.close();
    theirs.close();
}

#[test]
fn a_close_says_how_long_it_took() {
    let mut client = start(&["silent=quiet"]);
    // The client is older by this than any close of its runtime takes.
    client.call_with::<JsonBuf>("quiet", &(), &CallOptions::default().timeout(SECOND / 2)).unwrap_err();
    let start = Instant::now();
    let report = client.close();
    let took = start.elapsed();
    assert!(report.took <= took, "{report:?} in {took:?}");
    let rungs: Duration = report.rungs.iter().map(|rung| rung.took).sum();
    assert!(report.took >= rungs && !rungs.is_zero(), "{report:?}");
}

#[test]
fn a_kill_at_any_moment_ends_everything_with_its_cause() {
    for round in 0..20_u64 {
        let mut client = start(&["silent=quiet", "events=200"]);
        let sub = client.subscribe(Filter::all(), Policy::bounded(100));
        let quiet: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
        let pid = rustix::process::Pid::from_raw(client.process_id().unwrap().cast_signed()).unwrap();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * round * 100));
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        let error = loop {
            if let Err(error) = client.prompt("s", &[ContentBlock::text("hello")]) {
                break error;
            }
        };
        killer.join().unwrap();
        assert_eq!(error.exit(), Some(Exit::Signal(9)), "{error}");
        assert_eq!(within(SECOND, || client.finish(quiet)).unwrap_err().exit(), Some(Exit::Signal(9)));
        let last = within(SECOND, || sub.iter(&mut client).last()).unwrap();
        assert_eq!(last.unwrap_err().exit(), Some(Exit::Signal(9)));
        close(client);
    }
}

#[test]
fn a_poll_of_the_callers_hosts_the_client() {
    use mio::{Events, Interest, Poll, Token};
    let mut client = start(&["late=slow"]);
    let mut poll = Poll::new().unwrap();
    poll.registry().register(&mut client, Token(1), Interest::READABLE).unwrap();
    let mut events = Events::with_capacity(4);
    let calls: Vec<PendingCall<JsonBuf>> = ["echo", "slow", "echo"]
        .map(|method| client.start_call(method, &json!({}), &CallOptions::default()).unwrap())
        .into();
    let mut ended = 0;
    while ended < calls.len() {
        while !client.pump(Duration::ZERO).unwrap().is_nothing() {}
        ended += calls.iter().filter_map(|call| client.try_finish(call)).count();
        if ended < calls.len() {
            poll.poll(&mut events, Some(5 * SECOND)).unwrap();
            assert!(!events.is_empty());
        }
    }
    close(client);
}

/// Runs the test below in a process of its own, where nobody else opens descriptors.
#[test]
fn nothing_is_left_of_a_client() {
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["client::count_what_is_left", "--exact", "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "run by nothing_is_left_of_a_client"]
fn count_what_is_left() {
    let faults: [&[&str]; 5] =
        [&[], &["exit=initialize"], &["grandchild=initialize"], &["exit-at-start"], &["ignore-eof"]];
    let counts = || (count("fd"), count("task"));
    let mut before = None;
    for _ in 0..4 {
        for flags in faults {
            let mut client = start(flags);
            let _ = client.initialize(&route());
            close(client);
            drop(start(flags));
            assert_eq!(*before.get_or_insert_with(counts), counts());
        }
        HarnessClient::spawn(&Launch::new("no-such-runtime")).unwrap_err();
        HarnessClient::spawn(&Launch::new("/etc/passwd")).unwrap_err();
    }
}

#[test]
fn both_sides_may_send_more_than_the_pipes_hold() {
    let mut client = start(&[]);
    let text = "x".repeat(1 << 20);
    let calls: Vec<PendingCall<JsonBuf>> = (0..16)
        .map(|n| client.start_call("echo", &json!({ "n": n, "text": text }), &CallOptions::default()).unwrap())
        .collect();
    for call in calls {
        assert!(within(10 * SECOND, || client.finish(call)).unwrap().as_json().get().len() > text.len());
    }
    close(client);
}

#[test]
fn a_second_answer_is_counted_and_changes_nothing() {
    let mut client = start(&["twice=echo"]);
    assert_eq!(client.call("echo", &json!({ "n": 2 })).unwrap().as_json().get(), "{\"n\":1}");
    client.call("echo", &json!({})).unwrap();
    client.initialize(&route()).unwrap();
    assert_eq!(client.counters().unmatched, 2);
    close(client);
}

#[test]
fn a_stopped_runtime_holds_up_no_deadline_and_no_ladder() {
    let mut client = start(&[]);
    client.initialize(&route()).unwrap();
    let pid = rustix::process::Pid::from_raw(client.process_id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let call = CallOptions::default().timeout(Duration::from_millis(50));
    let error = within(SECOND, || client.call_with::<JsonBuf>("echo", &["x".repeat(1 << 20)], &call)).unwrap_err();
    assert!(error.is_timeout());
    let report = client.close();
    assert_eq!(report.rungs.last().map(|rung| (rung.rung, rung.end)), Some((Rung::Kill, RungEnd::Exited)));
}

#[test]
fn a_runtime_can_be_made_to_die_with_its_parent() {
    let launch = faulty(&["ignore-eof"]).dies_with_parent(true);
    match HarnessClient::spawn_with(&launch, options()) {
        Ok(mut client) => {
            // That it does is the kernel's; that it runs through the other program is ours.
            client.initialize(&route()).unwrap();
            close(client);
        }
        Err(error) => assert!(chain(&error).contains("no setpriv on PATH"), "{}", chain(&error)),
    }
}

/// The embedded runtime, which answers as the official one does.
#[cfg(feature = "cli")]
#[test]
fn a_conversation_with_the_embedded_runtime() {
    let launch = Launch::new(env!("CARGO_BIN_EXE_dsh-wire")).arg("serve");
    let directory = std::env::temp_dir().display().to_string();
    let route = dsh_wire::wire::InitializeParams::new(directory, "deepseek-official", "deepseek-v4-flash");
    let mut harness = DeepSeekHarness::start(&HarnessOptions::new(launch, route)).unwrap();
    let mut session = harness.session("s");
    for text in ["hello", "\u{4f60}\u{597d} \u{1f600}"] {
        let result = session.run(text, RunOptions::new().timeout(10 * SECOND).until_settled(true)).unwrap();
        assert_eq!(result.final_response, format!("echo: {text}"));
        assert_eq!(result.finish_reason.as_deref(), Some("completed"));
        let kinds: Vec<_> = result.events().map(|event| event.kind.to_string()).collect();
        assert_eq!(kinds.first().map(String::as_str), Some("agent/inbox/spliced"));
        assert_eq!(kinds.last().map(String::as_str), Some("turn/end"));
    }
    session.wait().unwrap();
    assert!(session.working_directory().unwrap().to_string().starts_with('/'));
    let error = harness.resume_session("never-seen").unwrap_err();
    assert_eq!(error.rpc().unwrap().message, "session \"never-seen\" not found");
    assert_eq!(harness.client().counters().malformed, 0);
    let report = harness.close();
    assert_eq!(report.exit, Some(Exit::Code(0)), "{report:?}");
}

/// The flow of an approval: from an agent to the client and back.
#[cfg(feature = "cli")]
#[test]
fn an_agent_asks_the_client() {
    let launch = Launch::new(env!("CARGO_BIN_EXE_dsh-wire")).arg("serve");
    let mut client = HarnessClient::spawn_with(&launch, options()).unwrap();
    client.initialize(&dsh_wire::wire::InitializeParams::new("/", "deepseek-official", "m")).unwrap();
    client.take_requests(true);
    let events = client.subscribe(Filter::all(), Policy::Lossless);
    for (allow, expected) in
        [(true, r#"the client answered: {\"allowed\":true}"#), (false, "the client refused: not today (code 7)")]
    {
        within(10 * SECOND, || {
            client.prompt("s", &[ContentBlock::text(r#"@ask approval/ask {"tool":"rm"}"#)]).unwrap();
            let request = loop {
                if let Some(request) = client.next_request() {
                    break request;
                }
                client.pump(SECOND).unwrap();
            };
            assert_eq!(
                (request.method.to_string(), request.params.as_json().get()),
                ("approval/ask".into(), r#"{"tool":"rm"}"#)
            );
            let answered = match allow {
                true => client.answer(request.reply, &json!({ "allowed": true })),
                false => client.refuse(request.reply, 7, "not today", None::<&()>),
            };
            answered.unwrap();
            loop {
                let delivery = events.next_timeout(&mut client, 5 * SECOND).unwrap().expect("the answer in time");
                let text = delivery.notification().unwrap().params.get();
                if text.contains("assistant/message") {
                    assert!(text.contains(expected), "{text}");
                    break;
                }
            }
        });
    }
    assert_eq!(client.counters().refused, 0);
    assert_eq!(client.close().exit, Some(Exit::Code(0)));
}

/// A run ends when its session is idle, or goes on until what it has started is done.
#[cfg(feature = "cli")]
#[test]
fn a_run_can_wait_for_its_sub_agents() {
    let launch = Launch::new(env!("CARGO_BIN_EXE_dsh-wire")).arg("serve");
    let route = dsh_wire::wire::InitializeParams::new("/", "deepseek-official", "deepseek-v4-flash");
    let mut harness = DeepSeekHarness::start(&HarnessOptions::new(launch, route)).unwrap();
    let ends = |harness: &mut DeepSeekHarness, session: &str, until_settled: bool| {
        let options = RunOptions::new().timeout(20 * SECOND).until_settled(until_settled);
        let result = harness.session(session).run("@agent @slow 0.3 from the child", options).unwrap();
        result.notifications.iter().filter(|n| n.method.to_string() == "subagent.finished").count()
    };
    assert_eq!(ends(&mut harness, "a", false), 0);
    assert_eq!(ends(&mut harness, "b", true), 1);
    // As a started run as well, beside another.
    let options = || RunOptions::new().timeout(20 * SECOND).until_settled(true);
    let run = harness.session("c").start_run("@agent @slow 0.3 from the child", options()).unwrap();
    let other = harness.session("d").start_run("hello", options()).unwrap();
    let result = run.finish(harness.client()).unwrap();
    assert!(result.notifications.iter().any(|n| n.method.to_string() == "subagent.finished"));
    assert_eq!(other.finish(harness.client()).unwrap().final_response, "echo: hello");
    harness.close();
}
