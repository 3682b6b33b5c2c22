//! A row for every row of the table of faults that concerns a client. Each runs in a process of its own against a real
//! child, has a bound on the wall clock, asserts the named error or result, and leaves no call, process, thread or
//! descriptor behind. The rows that any client can be put to are data, which `tests/interop/faults` shows to others.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use dsh_wire::client::{Delivery, Filter, Policy, Rung, RungEnd};
use dsh_wire::json::JsonBuf;
use dsh_wire::peer::AbortToken;
use dsh_wire::stdio::{
    CallOptions, Cause, ClientOptions, DeepSeekHarness, Environment, Error, ErrorKind, Exit, HarnessClient, Launch,
    PendingCall, RunOptions, SpawnFault,
};
use dsh_wire::wire::{ContentBlock, InitializeParams};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use crate::faulty::{
    SECOND, count, exists, faulty, group_exists, options, route, shared, slack, start, terminal, within,
};

/// Names the row to the process that runs it.
const ROW: &str = "DSH_WIRE_ROW";

/// What the kind, the row and its bound in milliseconds are, and what is done.
type Special = (&'static str, &'static str, u64, fn());

/// The rows that need more than one call.
const SPECIAL: &[Special] = &[
    ("lone surrogate escapes", "kept, shown with U+FFFD, and sent back", 2000, lone_surrogates),
    ("huge frame", "one that never ends fails its call at once", 3000, answer_without_an_end),
    ("huge frame", "an answer over the limit fails its call at once", 3000, answer_over_the_limit),
    ("huge frame", "limit - 1, limit, limit + 1", 2000, around_the_limit),
    ("pending leak, abort races", "20 000 calls made and given up", 5000, calls_given_up),
    ("pending leak, abort races", "10 000 calls on one token", 5000, calls_on_one_token),
    ("pending leak, abort races", "given up in the middle of the write", 5000, given_up_in_mid_write),
    ("interleaved writes", "8 threads, 20 frames of 200 KB each", 20_000, interleaved_writes),
    ("child dies with calls open", "calls, a subscription, a pump: each with the cause", 2000, death_with_much_open),
    ("EPIPE", "the child closes stdin while we write 8 MB", 2000, broken_while_writing),
    ("EAGAIN, short writes", "20 MB against a reader of 1 byte/ms for 200 bytes", 10_000, short_writes),
    ("both sides write", "16 MB each way at once", 20_000, both_sides_write),
    ("child never reads", "SIGSTOP in the middle of a request", 2000, stopped_in_mid_request),
    ("stderr", "5000 lines: the tail is cut, and says so", 3000, stderr_tail),
    ("orphans", "launcher chain", 3000, launcher_chain),
    ("orphans", "double fork: told by the end of its stdin", 3000, double_fork),
    ("orphans", "our process is killed", 5000, our_process_is_killed),
    ("orphans", "our process is killed, the runtime ignores the end of stdin", 5000, dies_with_parent),
    ("orphans", "dropped without a close", 2000, dropped),
    ("ladder", "ignores EOF", 2000, ladder_eof),
    ("ladder", "ignores EOF and SIGTERM", 2000, ladder_term),
    ("ladder", "needs 4 s, which is less than it gets", 6000, ladder_slow),
    ("ladder", "close twice", 2000, close_twice),
    ("ladder", "close during the handshake, from two threads", 3000, close_from_two_threads),
    ("spawn", "missing program", 500, || spawn(&Launch::new("no-such-program"), SpawnFault::ProgramMissing)),
    ("spawn", "directory", 500, || spawn(&Launch::new("/etc"), SpawnFault::ProgramIsDirectory)),
    ("spawn", "not executable", 500, || spawn(&Launch::new("/etc/passwd"), SpawnFault::NotExecutable)),
    ("spawn", "missing cwd", 500, || spawn(&faulty(&[]).cwd("/no/such"), SpawnFault::NoDirectory)),
    ("environment", "allow-list and explicit", 2000, environment),
    ("head-of-line", "a request of the runtime waits while calls are answered", 3000, head_of_line),
    ("slow subscriber", "nobody takes while a call waits", 5000, slow_subscriber),
    ("slow subscriber", "over the backlog", 3000, over_the_backlog),
    ("stdin/stdout that are no pipe", "socket", 3000, sockets),
    ("stdin/stdout that are no pipe", "/dev/null and a file", 2000, files),
    ("stdin/stdout that are no pipe", "terminal", 5000, terminals),
    ("timers", "none, and the largest", 2000, timers),
    ("two wire revisions", "a run on each of three", 5000, revisions),
];

/// The rows that are data.
fn table() -> Vec<Value> {
    serde_json::from_str(include_str!("../interop/faults.json")).unwrap()
}

fn name(row: &Value) -> String {
    format!("{}: {}", row["kind"].as_str().unwrap(), row["row"].as_str().unwrap())
}

#[test]
fn every_fault_of_the_table() {
    let mut rows: Vec<String> = table().iter().map(name).collect();
    rows.extend(SPECIAL.iter().map(|(kind, row, ..)| format!("{kind}: {row}")));
    let rows = std::sync::Mutex::new(rows.into_iter());
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(row) = rows.lock().unwrap().next() else { break };
                    if let Some(why) = run_alone(&row) {
                        failed.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} rows failed\n{}", failed.len(), failed.join("\n"));
}

/// Runs a row in a process of its own; says how it failed, if it did.
fn run_alone(row: &str) -> Option<String> {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["client_faults::the_row", "--exact", "--ignored", "--test-threads=1", "--nocapture"])
        .env(ROW, row)
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    // The row has a bound of its own; this is for one that never gets there.
    let start = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > 60 * SECOND * slack() {
            process.kill().unwrap();
            process.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    match status {
        Some(status) if status.success() => None,
        Some(_) => Some(format!("--- {row}\n{}", reading.join().unwrap())),
        None => Some(format!("--- {row}\nhangs")),
    }
}

#[test]
#[ignore = "run by every_fault_of_the_table"]
fn the_row() {
    let Ok(wanted) = std::env::var(ROW) else { return };
    let before = (count("fd"), count("task"));
    let start = Instant::now();
    let special = SPECIAL.iter().find(|(kind, row, ..)| format!("{kind}: {row}") == wanted);
    let bound = match special {
        Some((_, _, bound, run)) => {
            run();
            *bound
        }
        None => check(&table().into_iter().find(|row| name(row) == wanted).unwrap()),
    };
    // A machine that is busy with other tests gets twice the time; no row comes near its bound on one that is not.
    let limit = 2 * Duration::from_millis(bound) * slack();
    assert!(start.elapsed() < limit, "took {:?} of {bound} ms", start.elapsed());
    assert_eq!((count("fd"), count("task")), before, "descriptors and threads");
}

/// Makes the one call of a row and compares; returns the bound.
fn check(row: &Value) -> u64 {
    let text = |member: &str| row[member].as_str().unwrap();
    let flags: Vec<&str> = row["flags"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect();
    let bound = row["within_ms"].as_u64().unwrap();
    let mut harness = DeepSeekHarness::with_client(start(&flags));
    std::thread::sleep(Duration::from_millis(row["after_ms"].as_u64().unwrap_or(0)));
    let end = match text("call") {
        "run" => run(&mut harness),
        method => {
            let mut calls = CallOptions::default();
            if let Some(timeout) = row["timeout_ms"].as_u64() {
                calls = calls.timeout(Duration::from_millis(timeout));
            }
            let size = usize::try_from(row["size"].as_u64().unwrap_or(0)).unwrap();
            let called = harness.client().call_with::<JsonBuf>(method, &json!({ "text": "x".repeat(size) }), &calls);
            called.map(|result| result.as_json().parse().unwrap_or_default())
        }
    };
    match (text("expect"), &end) {
        ("result", Ok(result)) => assert_eq!(*result, row["value"]),
        // Settled by the rule of the reference, whatever that says.
        ("settles", Ok(_)) => {}
        ("settles" | "rpc", Err(error)) => assert!(error.rpc().is_some(), "{error}"),
        ("timeout", Err(error)) => assert!(error.is_timeout(), "{error}"),
        ("closed", Err(error)) => {
            let closed = error.closed().unwrap_or_else(|| panic!("{error}"));
            assert!(closed.exit.is_some() || matches!(closed.cause, Cause::OutputEnded | Cause::Broken(_)));
        }
        (expected, end) => panic!("expected {expected}, not {end:?}"),
    }
    let client = harness.client();
    match text("after") {
        "lives" => assert!(client.call("echo", &json!({ "still": "here" })).unwrap().as_json().get().contains("here")),
        "closed" => assert!(client.call("echo", &()).unwrap_err().closed().is_some()),
        _ => {}
    }
    close(client);
    bound
}

/// The final response of a run, or what it failed with.
fn run(harness: &mut DeepSeekHarness) -> Result<Value, Error> {
    harness.client().initialize(&route())?;
    let result = harness.session("s").run("hello", RunOptions::new())?;
    Ok(result.final_response.into())
}

/// Ends the client in order, and sees that nothing of it is left but what the process may hold.
#[track_caller]
fn close(client: &mut HarnessClient) {
    let pid = client.process_id();
    assert_eq!(client.pending_calls(), 0);
    client.close();
    assert!(pid.is_none_or(|pid| !exists(pid) && !group_exists(pid)));
    assert_eq!((client.pending_calls(), client.kept_calls()), (0, 0));
}

fn within_limit(limit: usize, flags: &[&str]) -> HarnessClient {
    let mut options = options();
    options.line_limit = limit;
    HarnessClient::spawn_with(&faulty(flags), options).unwrap()
}

fn answer_over_the_limit() {
    let mut client = within_limit(1 << 20, &["answer-text=5000000"]);
    let error = client.call("ask", &()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TooLong { limit: 1_048_576 }), "{error}");
    client.call("echo", &()).unwrap();
    assert_eq!(client.counters().dropped_too_long, 1);
    close(&mut client);
}

fn lone_surrogates() {
    let mut client = start(&[]);
    let text = JsonBuf::new(r#"{"a\ud83d":"b\udc00"}"#).unwrap();
    let answer = client.call("echo", &text).unwrap();
    assert_eq!(answer, text);
    let shown: Vec<String> = answer.as_json().members().map(|(name, _)| name.to_string_lossy().into()).collect();
    assert_eq!(shown, ["a\u{fffd}"]);
    close(&mut client);
    // A request with such an id gets its answer.
    let mut client = start(&[r#"answer={"id":"a%5Cud83d","method":"x"}%0A{"id":@ID@,"result":1}%0A"#]);
    let answered = client.subscribe(Filter::all().method("got.response"), Policy::Lossless);
    client.call("ask", &()).unwrap();
    let answer = answered.next_timeout(&mut client, SECOND).unwrap().unwrap();
    assert_eq!(answer.notification().unwrap().params.member("id").unwrap().get(), r#""a\ud83d""#);
    drop(answered);
    close(&mut client);
}

fn answer_without_an_end() {
    let unending = format!("answer={{\"id\":@ID@,\"result\":\"{}", "x".repeat(3000));
    let mut client = within_limit(1000, &[&unending]);
    let error = client.call("ask", &()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TooLong { limit: 1000 }), "{error}");
    close(&mut client);
}

fn around_the_limit() {
    // The id has as many characters in every answer.
    let mut client = start(&["answer-text=1000"]);
    client.call("ask", &()).unwrap();
    let line = usize::try_from(client.bytes().read).unwrap() - 1;
    close(&mut client);
    for (limit, fits) in [(line - 1, false), (line, true), (line + 1, true)] {
        let mut client = within_limit(limit, &["answer-text=1000"]);
        assert_eq!(client.call("ask", &()).is_ok(), fits, "{limit}");
        close(&mut client);
    }
}

fn calls_given_up() {
    let mut client = start(&["silent=quiet"]);
    for n in 0..20_000 {
        let call: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
        client.abandon(call);
        if n % 1000 == 0 {
            client.pump(Duration::ZERO).unwrap();
        }
    }
    client.call("echo", &()).unwrap();
    close(&mut client);
}

fn calls_on_one_token() {
    let mut client = start(&["silent=quiet"]);
    let token = AbortToken::new("all of them");
    let options = CallOptions::default().token(&token);
    let calls: Vec<PendingCall<JsonBuf>> =
        (0..10_000).map(|_| client.start_call("quiet", &(), &options).unwrap()).collect();
    client.pump(Duration::ZERO).unwrap();
    token.abort();
    for call in calls {
        assert!(matches!(client.finish(call).unwrap_err().kind(), ErrorKind::Aborted(_)));
    }
    client.call("echo", &()).unwrap();
    close(&mut client);
}

fn given_up_in_mid_write() {
    let mut client = start(&["silent=quiet"]);
    let text = "x".repeat(512 << 10);
    for round in 0..12 {
        let call: PendingCall<JsonBuf> = client.start_call("quiet", &[&text], &CallOptions::default()).unwrap();
        for _ in 0..round {
            client.pump(Duration::ZERO).unwrap();
        }
        client.abandon(call);
        // A frame is whole or absent, or this would not be understood.
        client.call("echo", &json!({ "round": round })).unwrap();
    }
    close(&mut client);
}

fn interleaved_writes() {
    let client = shared(&[]);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            scope.spawn(move || {
                let text = format!("{thread}").repeat(200_000);
                for _ in 0..20 {
                    let answer = client.call("echo", &json!({ "text": text })).unwrap();
                    assert_eq!(answer.as_json().get().len(), text.len() + 11);
                }
            });
        }
    });
    let pid = client.process_id().unwrap();
    assert_eq!(client.pending_calls(), 0);
    assert_eq!(client.close().exit, Some(Exit::Code(0)));
    assert!(!exists(pid));
}

fn death_with_much_open() {
    let mut client = start(&["kill=boom", "silent=quiet"]);
    let events = client.subscribe(Filter::all(), Policy::Lossless);
    let quiet: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
    let killed = |error: Error| {
        assert_eq!(error.exit(), Some(Exit::Signal(9)));
        assert!(error.stderr().unwrap().text().contains("about to be killed"));
    };
    within(SECOND, || killed(client.call("boom", &()).unwrap_err()));
    killed(client.finish(quiet).unwrap_err());
    killed(events.next(&mut client).unwrap_err());
    killed(client.pump(Duration::ZERO).unwrap_err());
    drop(events);
    close(&mut client);
}

fn broken_while_writing() {
    let mut client = start(&["close-stdin"]);
    let text = "x".repeat(8 << 20);
    let error = client.call("big", &[text]).unwrap_err();
    assert!(
        matches!(&error.closed().unwrap().cause, Cause::Broken(why) if why.kind() == std::io::ErrorKind::BrokenPipe)
    );
    close(&mut client);
}

fn short_writes() {
    let mut client = start(&["slow-read=200"]);
    let text = "x".repeat(20 << 20);
    let answer = client.call("echo", &json!({ "text": text })).unwrap();
    assert_eq!(answer.as_json().get().len(), text.len() + 11);
    close(&mut client);
}

fn both_sides_write() {
    let mut client = start(&[]);
    let text = "x".repeat(1 << 20);
    let calls: Vec<PendingCall<JsonBuf>> = (0..16)
        .map(|_| client.start_call("echo", &json!({ "text": text }), &CallOptions::default()).unwrap())
        .collect();
    for call in calls {
        assert_eq!(client.finish(call).unwrap().as_json().get().len(), text.len() + 11);
    }
    close(&mut client);
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn stopped_in_mid_request() {
    let mut client = start(&[]);
    client.initialize(&route()).unwrap();
    signal(client.process_id().unwrap(), rustix::process::Signal::STOP);
    let call = CallOptions::default().timeout(Duration::from_millis(100));
    assert!(client.call_with::<JsonBuf>("echo", &["x".repeat(1 << 20)], &call).unwrap_err().is_timeout());
    close(&mut client);
}

/// Waits until a process has gone, or is a zombie of somebody else's.
#[track_caller]
fn gone(pid: u32) {
    let path = format!("/proc/{pid}/stat");
    within(3 * SECOND, || {
        while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

fn program() -> String {
    faulty(&[]).program().to_str().unwrap().to_owned()
}

fn launcher_chain() {
    // The shell exits at the end of its stdin; the runtime does not, and is ended with the group.
    let script =
        format!("{} --ignore-eof <&0 & echo '{{\"method\":\"pid\",\"params\":{{\"pid\":'$!'}}}}'; wait", program());
    let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", &script]), options()).unwrap();
    let pids = client.subscribe(Filter::all().method("pid"), Policy::Lossless);
    let delivery = pids.next_timeout(&mut client, SECOND).unwrap().unwrap();
    let pid = delivery.notification().unwrap().params.member("pid").unwrap().as_u64().unwrap();
    drop(pids);
    close(&mut client);
    gone(u32::try_from(pid).unwrap());
}

fn double_fork() {
    // The shell is gone at once, and what it has left is in another session and holds both pipes. Behind `&` descriptor 0
    // is /dev/null already.
    let left = format!("exec 3<&0; setsid {} <&3 3<&- & exec 3<&-", program());
    let script = left + "; echo '{\"method\":\"pid\",\"params\":{\"pid\":'$!'}}'";
    let mut client = HarnessClient::spawn_with(&Launch::new("sh").args(["-c", &script]), options()).unwrap();
    let pids = client.subscribe(Filter::all().method("pid"), Policy::Lossless);
    let delivery = pids.next_timeout(&mut client, SECOND).unwrap().unwrap();
    let pid = delivery.notification().unwrap().params.member("pid").unwrap().as_u64().unwrap();
    drop(pids);
    let error = loop {
        if let Err(error) = client.pump(SECOND) {
            break error;
        }
    };
    assert!(matches!(error.closed().unwrap().cause, Cause::Exited), "{error}");
    close(&mut client);
    gone(u32::try_from(pid).unwrap());
}

fn stderr_tail() {
    let mut client = start(&["stderr-lines=5000", "exit=ask"]);
    let error = client.call("ask", &()).unwrap_err();
    let tail = error.stderr().unwrap();
    assert_eq!((tail.is_cut(), tail.last_line().as_deref()), (true, Some("last words")));
    assert!((300..=401).contains(&tail.text().lines().count()));
    close(&mut client);
}

/// Runs [`hold_a_client`] in a process of its own and kills that; returns what its runtime's id was.
fn kill_a_holder(how: &str) -> u32 {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["client_faults::hold_a_client", "--exact", "--ignored", "--nocapture"])
        .env("DSH_WIRE_HOLD", how)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = holder.stdout.take().unwrap();
    let mut text = String::new();
    let pid = loop {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
        if let Some(pid) = text.split("runtime ").nth(1).and_then(|rest| rest.strip_suffix('\n')) {
            break pid.parse().unwrap();
        }
    };
    holder.kill().unwrap();
    holder.wait().unwrap();
    pid
}

#[test]
#[ignore = "run by the rows about our own death"]
fn hold_a_client() {
    let Ok(how) = std::env::var("DSH_WIRE_HOLD") else { return };
    let launch = match how.as_str() {
        "plain" => faulty(&[]),
        _ => faulty(&["ignore-eof"]).dies_with_parent(true),
    };
    let mut client = HarnessClient::spawn(&launch).unwrap();
    client.initialize(&route()).unwrap();
    println!("runtime {}", client.process_id().unwrap());
    std::thread::sleep(60 * SECOND);
}

fn our_process_is_killed() {
    gone(kill_a_holder("plain"));
}

fn dies_with_parent() {
    if Command::new("setpriv").arg("--version").output().is_ok() {
        gone(kill_a_holder("bound"));
    }
}

fn dropped() {
    let mut client = start(&["ignore-eof", "ignore-term"]);
    client.initialize(&route()).unwrap();
    let pid = client.process_id().unwrap();
    drop(client);
    assert!(!exists(pid));
}

#[track_caller]
fn ladder(flags: &[&str], last: Rung, exit: Exit) {
    let mut client = start(flags);
    client.initialize(&route()).unwrap();
    let report = client.close();
    assert_eq!(report.exit, Some(exit), "{report}");
    assert_eq!(report.rungs.last().map(|rung| (rung.rung, rung.end)), Some((last, RungEnd::Exited)));
    assert!(report.rungs.is_sorted_by(|a, b| a.rung < b.rung));
    assert_eq!(client.pending_calls(), 0);
}

fn ladder_eof() {
    ladder(&["ignore-eof"], Rung::Terminate, Exit::Signal(15));
}

fn ladder_term() {
    ladder(&["ignore-eof", "ignore-term", "silent=shutdown"], Rung::Kill, Exit::Signal(9));
}

/// With the graces that everybody has.
fn ladder_slow() {
    let mut client = HarnessClient::spawn(&faulty(&["slow-exit=4000"])).unwrap();
    client.initialize(&route()).unwrap();
    let report = client.close();
    let rungs: Vec<_> = report.rungs.iter().map(|rung| (rung.rung, rung.end)).collect();
    assert_eq!(rungs, [(Rung::RequestShutdown, RungEnd::Answered), (Rung::CloseStdin, RungEnd::Exited)]);
    assert_eq!(report.exit, Some(Exit::Code(0)));
    assert!(report.rungs[1].took > 3 * SECOND && report.took >= report.rungs[1].took, "{report}");
    assert_eq!(client.pending_calls(), 0);
}

fn close_twice() {
    let mut client = start(&[]);
    client.initialize(&route()).unwrap();
    let (first, second) = (client.close(), client.close());
    assert_eq!((first.rungs, first.exit), (second.rungs, second.exit));
    assert_eq!(client.pending_calls(), 0);
}

fn close_from_two_threads() {
    let client = shared(&["silent=initialize", "ignore-eof"]);
    std::thread::scope(|scope| {
        let handshake = scope.spawn(|| client.initialize(&route()));
        std::thread::sleep(Duration::from_millis(20));
        let closers = [scope.spawn(|| client.close()), scope.spawn(|| client.close())];
        let [first, second] = closers.map(|closer| closer.join().unwrap());
        assert_eq!((first.rungs, first.exit), (second.rungs, second.exit));
        let error = handshake.join().unwrap().unwrap_err();
        assert!(matches!(error.closed().unwrap().cause, Cause::ClosedHere));
    });
    assert!(!exists(client.process_id().unwrap()));
}

fn spawn(launch: &Launch, fault: SpawnFault) {
    let error = HarnessClient::spawn(launch).unwrap_err();
    let ErrorKind::Spawn(error) = error.into_kind() else { panic!() };
    assert_eq!(error.fault(), fault);
    // It names the program and the directory, or where a name was looked for.
    let text = error.to_string();
    assert!(text.contains(error.program().to_str().unwrap()), "{text}");
    let is_name = !error.program().to_str().unwrap().contains('/');
    let place = if is_name { "PATH" } else { "the current directory" };
    assert!(text.contains(error.cwd().map_or(place, |cwd| cwd.to_str().unwrap())), "{text}");
}

fn environment() {
    let launch = faulty(&[]).environment(Environment::Only(["PATH".into()].into())).env("SECRET", "value-of-it");
    assert!(!format!("{launch:?}").contains("value-of-it"));
    let mut client = HarnessClient::spawn_with(&launch, options()).unwrap();
    let environment: Value = client.call("env", &()).unwrap().as_json().parse().unwrap();
    assert_eq!(environment["SECRET"], "value-of-it");
    assert!(environment.as_object().unwrap().keys().all(|name| name == "PATH" || name == "SECRET"), "{environment}");
    close(&mut client);
}

fn head_of_line() {
    let mut client = start(&["ask-first=1"]);
    client.take_requests(true);
    client.initialize(&route()).unwrap();
    let request = client.next_request().unwrap();
    for _ in 0..100 {
        client.call("echo", &()).unwrap();
    }
    let answered = client.subscribe(Filter::all().method("got.response"), Policy::Lossless);
    client.answer(request.reply, &json!({})).unwrap();
    answered.next_timeout(&mut client, SECOND).unwrap().unwrap();
    drop(answered);
    close(&mut client);
}

fn slow_subscriber() {
    let mut client = start(&["flood=20000", "flood-text=100"]);
    let bounded = client.subscribe(Filter::all().method("tick"), Policy::bounded(10));
    let lossless = client.subscribe(Filter::all().method("tick"), Policy::Lossless);
    client.initialize(&route()).unwrap();
    assert_eq!(bounded.try_next(&mut client), Some(Delivery::Lagged(19_990)));
    assert_eq!(std::iter::from_fn(|| lossless.try_next(&mut client)).count(), 20_000);
    drop((bounded, lossless));
    close(&mut client);
}

fn over_the_backlog() {
    let mut options = options();
    options.max_backlog = 100_000;
    let mut client = HarnessClient::spawn_with(&faulty(&["flood=3000", "flood-text=100"]), options).unwrap();
    let events = client.subscribe_as("the log view", Filter::all(), Policy::Lossless);
    let error = client.initialize(&route()).unwrap_err();
    assert!(matches!(&error.closed().unwrap().cause, Cause::Backlog { name, .. } if name == "the log view"));
    assert!(events.next(&mut client).is_ok());
    drop(events);
    close(&mut client);
}

fn sockets() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut runtime = Command::new(program())
        .stdin(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let reader = ours.try_clone().unwrap().into();
    let mut client = HarnessClient::connect(reader, ours.into(), ClientOptions::default()).unwrap();
    let text = "x".repeat(4 << 20);
    assert!(client.call("echo", &json!({ "text": text })).unwrap().as_json().get().len() > 2);
    assert_eq!(client.pending_calls(), 0);
    client.close();
    drop(client);
    assert!(runtime.wait().unwrap().success());
}

fn files() {
    let null = || -> OwnedFd { std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into() };
    let mut client = HarnessClient::connect(null(), null(), ClientOptions::default()).unwrap();
    let error = client.call("echo", &()).unwrap_err();
    assert!(matches!(error.closed().unwrap().cause, Cause::OutputEnded), "{error}");
    close(&mut client);
    let path = std::env::temp_dir().join(format!("dsh-wire-{}", std::process::id()));
    std::fs::write(&path, "{\"method\":\"one\"}\n{\"method\":\"two\"}\n").unwrap();
    let file = std::fs::File::open(&path).unwrap().into();
    std::fs::remove_file(&path).unwrap();
    let mut client = HarnessClient::connect(file, null(), ClientOptions::default()).unwrap();
    let events = client.subscribe(Filter::all(), Policy::Lossless);
    assert_eq!(events.iter(&mut client).filter(Result::is_ok).count(), 2);
    drop(events);
    close(&mut client);
}

fn terminals() {
    let (ours, theirs) = terminal();
    let mut modes = tcgetattr(&theirs).unwrap();
    modes.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
    let mut runtime = Command::new(program())
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stdout(Stdio::from(theirs))
        .spawn()
        .unwrap();
    let mut client = HarnessClient::connect(ours.try_clone().unwrap(), ours, ClientOptions::default()).unwrap();
    // In both directions at once, and more than fits.
    let text = "x".repeat(20_000);
    let calls: Vec<PendingCall<JsonBuf>> = (0..10)
        .map(|_| client.start_call("echo", &json!({ "text": text }), &CallOptions::default()).unwrap())
        .collect();
    for call in calls {
        assert_eq!(client.finish(call).unwrap().as_json().get().len(), text.len() + 11);
    }
    close(&mut client);
    drop(client);
    assert!(runtime.wait().unwrap().success());
}

fn timers() {
    let mut client = start(&[]);
    let calls = CallOptions::default();
    for options in [calls.clone().no_timeout(), calls.clone().timeout(Duration::MAX), calls.timeout(SECOND * 86_400)] {
        client.call_with::<JsonBuf>("echo", &(), &options).unwrap();
    }
    assert_eq!(client.pump(Duration::ZERO).unwrap().read, 0);
    close(&mut client);
}

fn revisions() {
    for wire in ["wire=2026-07", "wire=0.1.1", "wire=0.2.1"] {
        let (told, _heard) = channel();
        let mut harness = DeepSeekHarness::with_client(start(&[wire]));
        harness.client().initialize(&InitializeParams::new("/", "none", "none")).unwrap();
        let options = RunOptions::new().on_notification(|n| told.send(n.method.to_string()).unwrap());
        let result = harness.session("s").run(vec![ContentBlock::text("hello")], options).unwrap();
        assert_eq!((&*result.final_response, result.finish_reason.as_deref()), ("echo: hello", Some("completed")));
        assert_eq!(harness.client().pending_calls(), 0);
        let pid = harness.client().process_id().unwrap();
        harness.close();
        assert!(!exists(pid));
    }
}
