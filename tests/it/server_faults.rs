//! Faults that a runtime meets, each with a bound on the time that it may take.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use dsh_wire::json::Json;
use rustix::process::Signal;

use crate::runtime::{INITIALIZE, Runtime, prompt};

/// Nothing here takes a tenth of it on an idle machine.
const BOUND: Duration = Duration::from_secs(20);

#[track_caller]
fn within_bound(what: &str, act: impl FnOnce()) {
    let started = Instant::now();
    act();
    let took = started.elapsed();
    assert!(took < BOUND, "{what}: {took:?}");
}

/// Whatever came before, the next request is answered, and nothing else is sent.
#[test]
fn lines_that_are_no_requests() {
    let deep = format!(r#"{{"id":1,"method":{}"#, "[".repeat(100_000));
    let rows: &[(&str, &str)] = &[
        ("banner", "welcome to the client v1.0"),
        ("log line", r#"{"level":"info"}"#),
        ("brace", "}"),
        ("scalar", "42"),
        ("batch", r#"[{"id":1,"method":"nope"}]"#),
        ("header framing", "Content-Length: 20"),
        ("two objects", r#"{"id":1,"method":"a"}{"id":2,"method":"b"}"#),
        ("response to nothing", r#"{"id":1,"result":{}}"#),
        ("error to nothing", r#"{"id":"x","error":{"code":1,"message":"m"}}"#),
        ("notification", r#"{"method":"shutdown"}"#),
        ("unterminated nesting", &deep),
        ("NUL", "\0"),
    ];
    let mut runtime = Runtime::ready();
    for (what, line) in rows {
        within_bound(what, || {
            runtime.says(line);
            runtime.says(r#"{"id":"next","method":"nope"}"#);
            assert!(runtime.hears().starts_with(r#"{"jsonrpc":"2.0","id":"next","error""#), "{what}");
        });
    }
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

#[test]
fn large_and_deep_requests() {
    let mut runtime = Runtime::ready();
    for (what, params) in [
        ("20 MB", format!(r#"{{"x":"{}"}}"#, "y".repeat(20 << 20))),
        ("100 000 levels", format!(r#"{{"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000))),
        ("100 000 members", format!("{{{}\"z\":1}}", "\"k\":1e400,".repeat(100_000))),
    ] {
        within_bound(what, || {
            runtime.says(&format!(r#"{{"id":"big","method":"nope","params":{params}}}"#));
            assert!(runtime.hears().contains(r#""id":"big","error""#));
        });
    }
    within_bound("over the limit", || {
        let chunk = vec![b'x'; 1 << 20];
        let stdin = runtime.stdin.as_mut().unwrap();
        (0..80).for_each(|_| stdin.write_all(&chunk).unwrap());
        runtime.says("");
        runtime.says(r#"{"id":"next","method":"nope"}"#);
        assert!(runtime.hears().contains(r#""id":"next""#));
    });
    runtime.stdin = None;
    runtime.ends_well();
}

/// Thousands of requests before the client reads, each with an answer as long: neither side waits for the other.
#[test]
fn a_client_that_writes_before_it_reads() {
    within_bound("3000 requests", || {
        let mut child = crate::runtime::command(None).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let method = "m".repeat(10_000);
        writeln!(stdin, "{INITIALIZE}").unwrap();
        for id in 0..3000 {
            writeln!(stdin, r#"{{"id":{id},"method":"{method}"}}"#).unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 3001);
    });
}

/// A flood that nobody reads is held back; signals and the end of the input are heard all the same.
#[test]
fn a_client_that_never_reads() {
    for signal in [Some(Signal::TERM), Some(Signal::INT), None] {
        within_bound("a flood", || {
            let mut child = crate::runtime::command(None).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            writeln!(stdin, "{INITIALIZE}").unwrap();
            let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
            stdout.read_line(&mut String::new()).unwrap();
            writeln!(stdin, "{}", prompt("1", "s", "@flood 1000000 1000")).unwrap();
            // Long enough for a flood that is not held back to fill the memory.
            std::thread::sleep(Duration::from_millis(500));
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let resident =
                status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB")?.trim().parse().ok());
            assert!(resident.is_none_or(|kilobytes: u64| kilobytes < 100_000), "{resident:?} kB");
            match signal {
                Some(signal) => {
                    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
                }
                None => drop(stdin),
            }
            // It gives up on the output when its time is up, and says so where nobody has told it to end.
            let code = child.wait().unwrap().code();
            let expected = [(Some(Signal::TERM), 0), (Some(Signal::INT), 130), (None, 1)];
            assert!(expected.contains(&(signal, code.unwrap())), "{signal:?}: {code:?}");
        });
    }
}

/// 20 MB through pipes of 4 KiB, the first of it read byte by byte: all of it comes, in order.
#[test]
fn narrow_pipes() {
    const EVENTS: u64 = 2000;
    within_bound("20 MB", || {
        let (answers, theirs) = std::io::pipe().unwrap();
        let mut narrow = crate::runtime::command(None);
        let mut child = narrow.stdout(theirs.try_clone().unwrap()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        #[cfg(target_os = "linux")]
        {
            rustix::pipe::fcntl_setpipe_size(&theirs, 4096).unwrap();
            rustix::pipe::fcntl_setpipe_size(&stdin, 4096).unwrap();
        }
        drop((narrow, theirs));
        let text = format!("@flood {EVENTS} 10000 {}", "y".repeat(100_000));
        let (mut first, mut bytes) = (Vec::new(), BufReader::with_capacity(1, &answers));
        // A prompt before the answer would be refused.
        writeln!(stdin, "{INITIALIZE}").unwrap();
        bytes.read_until(b'\n', &mut first).unwrap();
        writeln!(stdin, "{}", prompt("1", "s", &text)).unwrap();
        let mut next = 0;
        let mut idle = |line: &str| {
            let frame = Json::new(line).unwrap();
            if let Some(event) = frame.member("params").and_then(|params| params.member("event")) {
                assert_eq!(event.member("seq").unwrap().as_u64(), Some(next), "{line:.200}");
                next += 1;
            }
            line.contains(r#""status":"idle""#)
        };
        (0..20).for_each(|_| _ = bytes.read_until(b'\n', &mut first).unwrap());
        assert!(!str::from_utf8(&first).unwrap().lines().any(&mut idle));
        let rest = BufReader::new(&answers).lines().map(Result::unwrap).find(|line| idle(line));
        assert!(rest.is_some(), "it ends early");
        drop(stdin);
        assert!(next > EVENTS, "{next} events");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    });
}

/// Bounds of zero and of for ever.
#[test]
fn extreme_options() {
    use dsh_wire::stdio::turns::Turns;
    use dsh_wire::stdio::{ServeOptions, Served, serve};
    for bound in [Duration::ZERO, Duration::MAX] {
        within_bound("an end", || {
            let (input, mut requests) = std::io::pipe().unwrap();
            let (answers, output) = std::io::pipe().unwrap();
            let mut options = ServeOptions::default();
            (options.finish_within, options.release_within, options.max_threads) = (bound, bound, Some(0));
            writeln!(requests, "{INITIALIZE}\n{}", prompt("1", "s", "hello")).unwrap();
            drop(requests);
            let host = Turns::from_fn(|_| Ok("".into())).at_once(0);
            let served = serve(host, input.into(), output.into(), options).unwrap();
            assert!(matches!(served, Served::InputEnded | Served::CutShort { .. }), "{served:?}");
            assert!(bound.is_zero() || matches!(served, Served::InputEnded), "{served:?}");
            drop(answers);
        });
    }
}

/// A client that has died has taken both pipes with it: that is exit code 1, not a panic.
#[test]
fn nobody_hears_stdout_or_stderr() {
    let script = format!("echo '{INITIALIZE}' | '{}' serve >/dev/full 2>/dev/full", env!("CARGO_BIN_EXE_dsh-wire"));
    let status = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
    assert_eq!(status.code(), Some(1));
}
