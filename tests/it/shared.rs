//! The client that threads share, against real processes. Each test has a bound on the wall clock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use dsh_wire::client::{Client, Delivery, Filter, Policy, RuntimeRequest};
use dsh_wire::json::JsonBuf;
use dsh_wire::peer::{AbortToken, Peer};
use dsh_wire::server::Server;
use dsh_wire::stdio::{
    CallOptions, Cause, CloseReport, DeepSeekHarness, Error, ErrorKind, Exit, HarnessClient, HarnessOptions, Launch,
    PendingCall, RunOptions, RunResult, SharedClient, SharedSession, SharedSubscription, Stderr, Subscription, Waker,
};
use dsh_wire::wire::ContentBlock;
use serde_json::json;

use crate::faulty::{SECOND, count, exists, options, route, shared, slack, start, within};

/// Ends the client and checks that nothing is left of it.
#[track_caller]
fn close(client: &SharedClient) {
    let pid = client.process_id().unwrap();
    let report = within(4 * SECOND, || client.close());
    assert!(report.exit.is_some(), "{report:?}");
    assert!(!exists(pid));
    assert_eq!((client.pending_calls(), client.close().rungs), (0, report.rungs));
}

#[track_caller]
fn closed_here(error: &Error) {
    assert!(matches!(error.closed().unwrap().cause, Cause::ClosedHere), "{error:?}");
}

#[test]
fn handles_go_to_any_thread() {
    fn shared<T: Send + Sync + 'static>() {}
    fn moved<T: Send + 'static>() {}
    shared::<SharedClient>();
    shared::<SharedSession>();
    shared::<SharedSubscription>();
    shared::<PendingCall<JsonBuf>>();
    shared::<Subscription>();
    shared::<Error>();
    shared::<RunResult>();
    shared::<CloseReport>();
    shared::<RuntimeRequest>();
    shared::<Waker>();
    shared::<AbortToken>();
    shared::<Launch>();
    shared::<HarnessOptions>();
    moved::<HarnessClient>();
    moved::<DeepSeekHarness>();
    moved::<Client>();
    moved::<Peer<()>>();
    moved::<Server>();
}

#[test]
fn eight_threads_make_a_thousand_calls_each() {
    let client = shared(&["events=1"]);
    client.initialize(&route()).unwrap();
    within(60 * SECOND, || {
        thread::scope(|scope| {
            for thread in 0..8 {
                let client = client.clone();
                scope.spawn(move || {
                    for n in 0..1000 {
                        let params = json!({ "thread": thread, "n": n, "text": "x".repeat(n % 100) });
                        let answer = client.call("echo", &params).unwrap();
                        assert_eq!(answer.as_json().get(), params.to_string());
                    }
                });
            }
        });
    });
    assert_eq!((client.counters().responses, client.kept_calls()), (8001, 0));
    close(&client);
}

#[test]
fn a_call_that_pumps_for_itself_leaves_nobody_waiting() {
    let client = shared(&["silent=quiet"]);
    let short = CallOptions::default().timeout(Duration::from_millis(10));
    let done = AtomicUsize::new(0);
    within(20 * SECOND, || {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..30 {
                        // So close after each other that they pump for themselves, where the other thread does not call.
                        (0..20).for_each(|_| drop(client.call("echo", &json!({})).unwrap()));
                        // The answers of the other thread come while this one waits in vain, and after.
                        let error = client.call_with::<JsonBuf>("quiet", &json!({}), &short).unwrap_err();
                        assert!(error.is_timeout(), "{error}");
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
            // Waits for something else, again and again.
            while done.load(Ordering::Relaxed) < 2 {
                assert!(client.wait_for_request(Duration::from_millis(3)).unwrap().is_none());
            }
        });
    });
    // Alone again, and after a pause in which the thread has taken over.
    for pause in [0, 1, 3, 10] {
        thread::sleep(Duration::from_millis(pause));
        within(SECOND, || client.call("echo", &json!({}))).unwrap();
    }
    close(&client);
}

#[test]
fn frames_of_many_threads_do_not_mix() {
    let client = shared(&[]);
    within(30 * SECOND, || {
        thread::scope(|scope| {
            for thread in 0..8 {
                let client = client.clone();
                scope.spawn(move || {
                    let text = format!("{thread}").repeat(200_000);
                    for _ in 0..5 {
                        let answer = client.call("echo", &json!({ "text": text })).unwrap();
                        assert_eq!(answer.as_json().get().len(), text.len() + 11);
                    }
                });
            }
        });
    });
    close(&client);
}

#[test]
fn every_method_of_the_protocol_on_a_shared_client() {
    // Before anybody pumps: the request comes at once, and would be refused.
    let mut client = start(&["ask-first=1"]);
    client.take_requests(true);
    let client = client.into_shared().unwrap();
    let request = client.wait_for_request(SECOND).unwrap().unwrap();
    client.initialize(&route()).unwrap();
    assert_eq!(client.working_directory("s").unwrap().to_string(), "/somewhere");
    assert_eq!(client.set_working_directory("s", "/else").unwrap().to_string(), "/else");
    client.resume("s").unwrap();
    client.wait("s").unwrap();
    let answered = client.subscribe(Filter::all().method("got.response"), Policy::Lossless);
    client.answer(request.reply, &json!({ "yes": true })).unwrap();
    answered.next_timeout(SECOND).unwrap().unwrap();
    let told = client.subscribe(Filter::all().method("got.notification"), Policy::Lossless);
    client.notify("hint", &json!({})).unwrap();
    told.next().unwrap();
    assert_eq!(told.next_timeout(Duration::from_millis(10)).unwrap(), None);
    let events = client.subscribe_session_tree("s");
    assert!(client.prompt("s", &[ContentBlock::text("hello")]).unwrap().message_id().is_some());
    assert!(matches!(events.next().unwrap(), Delivery::Notification(_)));
    assert_eq!(client.call("no/such", &()).unwrap_err().rpc().unwrap().code, Some(-32603));
    let started: PendingCall<JsonBuf> = client.start_call("echo", &json!({}), &CallOptions::default()).unwrap();
    assert_eq!(client.finish(started).unwrap().as_json().get(), "{}");
    close(&client);
}

#[test]
fn runs_of_many_threads() {
    for flags in [&["wire=0.2.1"][..], &["wire=0.1.1"], &["wire=2026-07"]] {
        let client = shared(flags);
        client.initialize(&route()).unwrap();
        within(20 * SECOND, || {
            thread::scope(|scope| {
                for thread in 0..4 {
                    let client = client.clone();
                    scope.spawn(move || {
                        for n in 0..20 {
                            let text = format!("{thread} {n}");
                            let mut seen = 0;
                            let options = RunOptions::new().on_notification(|_| seen += 1).timeout(10 * SECOND);
                            let options = options.until_settled(n % 2 == 0);
                            let session = client.session(format!("s{thread}"));
                            let result = session.run(text.as_str(), options).unwrap();
                            assert_eq!(result.final_response, format!("echo: {text}"));
                            assert_eq!(seen, result.notifications.len());
                        }
                    });
                }
            });
        });
        close(&client);
    }
}

#[test]
fn runs_answer_the_runtime_each_on_its_thread() {
    let client = shared(&["ask-in-turn"]);
    client.initialize(&route()).unwrap();
    let answered = client.subscribe(Filter::all().method("got.response"), Policy::Lossless);
    within(10 * SECOND, || {
        thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let client = client.clone();
                scope.spawn(move || {
                    for _ in 0..10 {
                        let options = RunOptions::new().on_request(|_| Ok(json!({ "decision": "approved" })));
                        client.session(name).run(name, options.collect(false)).unwrap();
                    }
                });
            }
        });
    });
    for _ in 0..30 {
        let answer = answered.next_timeout(SECOND).unwrap().unwrap();
        let result = answer.notification().unwrap().params.member("result").unwrap();
        assert_eq!(result.get(), r#"{"decision":"approved"}"#);
    }
    // No run is left to answer.
    client.session("d").run("d", RunOptions::new()).unwrap();
    assert!(answered.next().unwrap().notification().unwrap().params.member("error").is_some());
    assert_eq!(client.counters().refused, 1);
    close(&client);
}

#[test]
fn runs_on_one_session_wait_for_each_other() {
    let client = shared(&["events=50"]);
    client.initialize(&route()).unwrap();
    let runs = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (client, runs) = (client.clone(), &runs);
            scope.spawn(move || {
                for _ in 0..10 {
                    let mut own = None;
                    let options = RunOptions::new().collect(false).on_notification(|_| {
                        let run = *own.get_or_insert_with(|| runs.fetch_add(1, Ordering::SeqCst));
                        assert_eq!(run + 1, runs.load(Ordering::SeqCst), "another run has begun in between");
                    });
                    let text = format!("from {thread}");
                    let result = client.session("one").run(text.as_str(), options).unwrap();
                    assert_eq!(result.final_response, format!("echo: {text}"));
                }
            });
        }
    });
    assert_eq!(runs.into_inner(), 40);
    close(&client);
    let client = shared(&["never-idle"]);
    let other = client.clone();
    let first = thread::spawn(move || other.session("s").run("hello", RunOptions::new()));
    thread::sleep(Duration::from_millis(50));
    let options = RunOptions::new().timeout(Duration::from_millis(50));
    let error = within(SECOND, || client.session("s").run("again", options)).unwrap_err();
    assert!(error.is_timeout());
    close(&client);
    closed_here(&within(SECOND, || first.join()).unwrap().unwrap_err());
}

#[test]
fn close_during_calls_from_two_threads() {
    for round in 0..10 {
        let client = shared(&["silent=quiet", "events=20"]);
        client.initialize(&route()).unwrap();
        let begin = Barrier::new(7);
        let reports = thread::scope(|scope| {
            for thread in 0..4 {
                let (client, begin) = (client.clone(), &begin);
                scope.spawn(move || {
                    begin.wait();
                    let error = loop {
                        let method = if thread == 0 { "quiet" } else { "echo" };
                        if let Err(error) = client.call(method, &json!({})) {
                            break error;
                        }
                    };
                    closed_here(&error);
                });
            }
            let (watching, begin) = (client.clone(), &begin);
            scope.spawn(move || {
                let events = watching.subscribe(Filter::all(), Policy::bounded(10));
                begin.wait();
                closed_here(&events.iter().last().unwrap().unwrap_err());
            });
            let closers: Vec<_> = (0..2)
                .map(|_| {
                    let client = client.clone();
                    scope.spawn(move || {
                        begin.wait();
                        thread::sleep(Duration::from_millis(round));
                        within(3 * SECOND, || client.close())
                    })
                })
                .collect();
            closers.into_iter().map(|closer| closer.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(reports[0].rungs, reports[1].rungs);
        assert_eq!(reports[0].exit, Some(Exit::Code(0)), "{}", reports[0]);
        close(&client);
    }
}

#[test]
fn close_may_come_during_the_handshake_and_can_be_hurried() {
    let client = shared(&["silent=initialize", "silent=shutdown", "ignore-eof", "ignore-term"]);
    let other = client.clone();
    let handshake = thread::spawn(move || other.initialize(&route()));
    thread::sleep(Duration::from_millis(20));
    let hurry = AbortToken::new("now");
    hurry.abort();
    let report = within(SECOND, || client.close_with(&hurry));
    assert_eq!((report.exit, report.rungs.len()), (Some(Exit::Signal(9)), 4), "{report}");
    closed_here(&within(SECOND, || handshake.join()).unwrap().unwrap_err());
}

#[test]
fn dropping_the_last_clone_ends_what_others_wait_for() {
    let client = shared(&["silent=quiet", "ignore-eof", "ignore-term"]);
    client.initialize(&route()).unwrap();
    let pid = client.process_id().unwrap();
    let events = client.subscribe(Filter::all().method("never"), Policy::Lossless);
    let requests = client.clone();
    let waiting = [
        thread::spawn(move || events.next().map(drop)),
        // It lets its own clone go, so that the last is dropped below.
        thread::spawn(move || requests.wait_for_request(Duration::from_millis(30)).map(drop)),
    ];
    thread::sleep(Duration::from_millis(50));
    within(SECOND, || drop(client));
    assert!(!exists(pid));
    let [events, requests] = waiting.map(|thread| within(SECOND, || thread.join()).unwrap());
    closed_here(&events.unwrap_err());
    requests.unwrap();
}

#[test]
fn a_token_of_the_client_ends_a_call_at_once() {
    let client = shared(&["silent=quiet", "never-idle"]);
    client.initialize(&route()).unwrap();
    let token = client.abort_token("enough");
    let (session, of_run) = (client.session("s"), token.clone());
    let run = thread::spawn(move || session.run("hello", RunOptions::new().token(&of_run)));
    let (other, of_call) = (client.clone(), token.clone());
    let call = thread::spawn(move || other.call_with::<JsonBuf>("quiet", &(), &CallOptions::default().token(&of_call)));
    thread::sleep(Duration::from_millis(100));
    // Less than the 20 ms in which other tokens are seen, in most rounds; what is asserted leaves room for a busy machine.
    token.abort();
    for error in [within(SECOND, || call.join()).unwrap().unwrap_err(), run.join().unwrap().unwrap_err()] {
        assert!(matches!(error.kind(), ErrorKind::Aborted(reason) if reason.as_str() == "enough"), "{error}");
    }
    // One that wakes nobody does as well.
    let token = AbortToken::new("enough");
    let (other, of_call) = (client.clone(), token.clone());
    let call = thread::spawn(move || other.call_with::<JsonBuf>("quiet", &(), &CallOptions::default().token(&of_call)));
    thread::sleep(Duration::from_millis(20));
    token.abort();
    within(SECOND, || call.join()).unwrap().unwrap_err();
    assert_eq!(client.pending_calls(), 0);
    close(&client);
}

#[test]
fn deadlines_hold_without_a_word_from_the_runtime() {
    let client = shared(&["never-read"]);
    let big = "x".repeat(1 << 20);
    let call = CallOptions::default().timeout(Duration::from_millis(200));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = within(SECOND, || client.call_with::<JsonBuf>("big", &[&big], &call)).unwrap_err();
                assert!(error.is_timeout(), "{error}");
            });
        }
    });
    assert_eq!(client.pending_calls(), 0);
    close(&client);
}

#[test]
fn death_ends_every_thread_with_its_cause() {
    let client = shared(&["kill=boom", "silent=quiet"]);
    client.initialize(&route()).unwrap();
    let events = client.subscribe(Filter::all(), Policy::Lossless);
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                begin.wait();
                assert_eq!(client.call("quiet", &()).unwrap_err().exit(), Some(Exit::Signal(9)));
            });
        }
        scope.spawn(|| {
            begin.wait();
            assert_eq!(events.iter().last().unwrap().unwrap_err().exit(), Some(Exit::Signal(9)));
        });
        begin.wait();
        thread::sleep(Duration::from_millis(20));
        let error = within(SECOND, || client.call("boom", &())).unwrap_err();
        assert_eq!(error.exit(), Some(Exit::Signal(9)));
        assert!(error.stderr().unwrap().text().contains("about to be killed"));
    });
    close(&client);
}

#[test]
fn a_slow_a_dead_and_a_fast_subscriber() {
    let client = shared(&["flood=20000", "flood-text=100", "hold-flood"]);
    let ticks = || Filter::all().method("tick");
    let (slow, fast) = (client.subscribe(ticks(), Policy::Lossless), client.subscribe(ticks(), Policy::Lossless));
    let dead = client.subscribe(ticks(), Policy::bounded(10));
    client.notify("flood", &json!({})).unwrap();
    let number = |delivery: Delivery| delivery.notification().unwrap().params.member("n").unwrap().as_u64().unwrap();
    within(30 * SECOND, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..20_000 {
                    assert_eq!(number(slow.next().unwrap()), n);
                    if n % 1000 == 0 {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            });
            for n in 0..20_000 {
                assert_eq!(number(fast.next().unwrap()), n);
            }
        });
    });
    // The slow one holds up the runtime at 1 MiB, which are some 5000.
    assert!(slow.high_water() < 12_000, "{}", slow.high_water());
    assert_eq!(dead.try_next(), Some(Delivery::Lagged(19_990)));
    close(&client);
}

#[test]
fn what_runs_on_the_pumping_thread_must_not_use_its_client() {
    let client = shared(&["flood=3"]);
    let inside = client.clone();
    let ill = client.subscribe(Filter::all().matching(move |_| inside.pending_calls() == 0), Policy::Lossless);
    let error = loop {
        // It may have been made after the last notification, and then nobody asks it.
        match client.initialize(&route()).and_then(|_| ill.next_timeout(Duration::from_millis(100))) {
            Ok(_) => drop(client.prompt("s", &[])),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::PredicatePanicked), "{error}");
    close(&client);
}

/// With a shell script as the runtime, whose stderr goes to a callback that panics.
fn with_panics(script: &str) -> HarnessClient {
    let launch = Launch::new("sh").args(["-c", script]).stderr(Stderr::callback(|_| panic!("in the callback")));
    let mut options = options();
    options.graces.shutdown = 5 * SECOND;
    HarnessClient::spawn_with(&launch, options).unwrap()
}

/// What it leaves behind says a last word on stderr when it is ended, and that is after the exit.
const SPEAKS_LAST: &str = "trap ready=1 USR1
    (trap 'echo ill >&2; exit' TERM; kill -USR1 $$; while :; do sleep 0.01; done) &
    until [ $ready ]; do sleep 0.01; done; echo '{\"method\":\"ready\"}'; read -r shutdown; exit 3";

#[test]
fn a_callback_for_last_words_must_not_use_its_client_either() {
    let inside = Arc::new(OnceLock::<SharedClient>::new());
    let [entered, returned] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let callback = {
        let (inside, entered, returned) = (Arc::clone(&inside), Arc::clone(&entered), Arc::clone(&returned));
        Stderr::callback(move |_| {
            entered.fetch_add(1, Ordering::Relaxed);
            drop(inside.get().unwrap().close());
            returned.fetch_add(1, Ordering::Relaxed);
        })
    };
    let launch = Launch::new("sh").args(["-c", SPEAKS_LAST]).stderr(callback);
    let mut client = HarnessClient::spawn_with(&launch, options()).unwrap();
    let _ready = client.subscribe(Filter::all(), Policy::Lossless).next(&mut client).unwrap();
    let client = client.into_shared().unwrap();
    inside.set(client.clone()).unwrap();
    // Where it hangs, this test should not.
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(client.close()));
    let report = told.recv_timeout(4 * SECOND * slack()).expect("the end of the client");
    assert_eq!(report.exit, Some(Exit::Code(3)));
    assert!(report.stderr.text().ends_with("ill\n"), "{report:?}");
    assert_eq!((entered.load(Ordering::Relaxed), returned.load(Ordering::Relaxed)), (1, 0));
}

#[test]
fn a_callback_that_panics_ends_the_call_and_nothing_is_kept() {
    let client = with_panics("read -r one; read -r two; echo ill >&2; cat > /dev/null").into_shared().unwrap();
    drop(client.start_call::<JsonBuf>("dropped", &json!({}), &CallOptions::default()).unwrap());
    let error = within(2 * SECOND, || client.call("waits", &json!({}))).unwrap_err();
    assert!(matches!(error.closed().unwrap().cause, Cause::Stopped(_)), "{error:?}");
    assert!(format!("{error:?}").contains("a callback has panicked: in the callback"), "{error:?}");
    assert_eq!((client.pending_calls(), client.kept_calls()), (0, 0));
    close(&client);
    assert_eq!(client.close().stderr.text(), "ill\n");
}

#[test]
fn a_callback_that_panics_over_last_words_changes_nothing_of_the_end() {
    // They come while the end of the output is told, unless the machine has other things to do.
    let client = with_panics("exec >&-; sleep 0.05; echo ill >&2; exit 3").into_shared().unwrap();
    let error = within(2 * SECOND, || client.call("waits", &json!({}))).unwrap_err();
    assert!(error.closed().is_some(), "{error:?}");
    close(&client);
    let mut client = with_panics(SPEAKS_LAST);
    let _ready = client.subscribe(Filter::all(), Policy::Lossless).next(&mut client).unwrap();
    let client = client.into_shared().unwrap();
    close(&client);
    let report = client.close();
    assert_eq!(report.exit, Some(Exit::Code(3)));
    // Its shell may have had to say that it was ended.
    assert!(report.stderr.text().ends_with("ill\n"), "{report:?}");
}

#[test]
fn a_call_that_a_panic_has_ended_is_not_waited_for_any_more() {
    let mut client = with_panics("read -r one; echo ill >&2; cat > /dev/null");
    let panicked = catch_unwind(AssertUnwindSafe(|| client.call("waits", &json!({}))));
    assert!(panicked.is_err());
    assert_eq!(client.pending_calls(), 0);
}

#[test]
fn a_call_of_before_can_be_finished_after() {
    let mut client = start(&["late=slow"]);
    let call: PendingCall<JsonBuf> = client.start_call("slow", &json!({}), &CallOptions::default()).unwrap();
    client.pump(Duration::ZERO).unwrap();
    let client = client.into_shared().unwrap();
    assert!(client.finish(call).unwrap_err().rpc().is_some());
    close(&client);
}

/// Runs the test below in a process of its own, where nobody else opens descriptors.
#[test]
fn nothing_is_left_of_a_shared_client() {
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["shared::count_what_is_left", "--exact", "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "run by nothing_is_left_of_a_shared_client"]
fn count_what_is_left() {
    let counts = || (count("fd"), count("task"));
    let mut before = None;
    for round in 0..40 {
        let client = shared(if round % 4 == 0 { &["exit=initialize"] } else { &[] });
        let _ = client.initialize(&route());
        if round % 2 == 0 {
            close(&client);
        }
        drop(client);
        assert_eq!(*before.get_or_insert_with(counts), counts());
    }
}
