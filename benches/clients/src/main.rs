//! Measures the clients of dsh-wire against the pipe itself.
//!
//! - `dsh-wire-client-bench`: receiving, as ratios; repetitions take turns, and medians are shown.
//! - `… cached`: the same from a runtime whose frames stay in its processor's cache, where the pipe costs a quarter.
//! - `… trip`: round trips; pin it: `taskset -c 0 dsh-wire-client-bench trip`.
//! - `… peers`: receiving, against other clients; with `--features peers`, and `tests/interop/setup` before.
//! - `… memory`, `… paused`: peak memory, each in a process of its own.
//! - `… tap DSH_WIRE`: a round trip through `dsh-wire tap`, and through two pipelines of `tee`, ÷ one without.
//! - `… child CORPUS BYTES [PREPARED]`: the fake runtime.

mod child;
#[path = "../../peers/src/corpus.rs"]
#[allow(dead_code, reason = "shared with the other bench")]
mod corpus;
mod measure;
#[cfg(feature = "peers")]
mod peers;
#[cfg(not(feature = "peers"))]
#[path = "peers_unavailable.rs"]
mod peers;
mod raw;
mod tap;

use std::time::{Duration, Instant};

use dsh_wire::client::{Delivery, Filter, Policy};
use dsh_wire::json::JsonBuf;
use dsh_wire::stdio::{
    CallOptions, ClientOptions, DeepSeekHarness, HarnessClient, Launch, PendingCall, RunOptions, SharedClient,
    SharedSubscription,
};
use measure::{Subject, take_turns};
use raw::Raw;

/// The size of a read.
pub const READ: usize = 64 << 10;

/// Bytes of one blast.
const BLAST: &str = "33554432";

/// Bytes of frames that stay in a processor's cache.
pub const CACHED: &str = "1048576";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["child", "pong"] => child::pong(),
        ["child", corpus, bytes] => child::serve(corpus, number(bytes), usize::MAX),
        ["child", corpus, bytes, prepared] => child::serve(corpus, number(bytes), number(prepared)),
        ["trip"] => trips(),
        ["trip", which, count] => trip_loop(which, number(count)),
        ["tap", dsh_wire] => tap::trips(dsh_wire),
        ["memory"] => memory(),
        ["paused"] => paused(),
        ["peers"] => peers::table(),
        ["receive", which, corpus, turns] => receive_loop(which, corpus, number(turns)),
        [] => receive(&["small", "mix", "large"], BLAST),
        ["cached"] => receive(&["small", "mix", "large"], CACHED),
        [corpus] => receive(&[corpus], BLAST),
        _ => panic!("see the head of main.rs"),
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

pub fn launch(args: &[&str]) -> Launch {
    Launch::new(std::env::current_exe().expect("a path")).args(args)
}

/// Asks for a blast and looks at every notification; returns how many there were.
pub fn caller_driven(client: &mut HarnessClient) -> usize {
    let call: PendingCall<JsonBuf> = client.start_call("blast", &(), &CallOptions::default()).expect("open");
    let mut count = 0;
    loop {
        let wait = Duration::from_secs(10);
        client.pump_with(wait, &mut |n| count += usize::from(n.session_id().is_some())).expect("a runtime");
        if let Some(end) = client.try_finish(&call) {
            end.expect("an answer");
            return count;
        }
    }
}

/// The same through a subscription of the shared client, taken from on this thread.
fn shared(client: &SharedClient, events: &SharedSubscription, total: usize) -> usize {
    let call: PendingCall<JsonBuf> = client.start_call("blast", &(), &CallOptions::default()).expect("open");
    for _ in 0..total {
        let delivery = events.next().expect("a runtime");
        assert!(matches!(delivery, Delivery::Notification(_)));
    }
    client.finish(call).expect("an answer");
    total
}

fn receive(corpora: &[&str], prepared: &str) {
    println!("time ÷ (read, split at \\n, discard), medians of 15 turns");
    for corpus in corpora {
        let args = ["child", corpus, BLAST, prepared];
        let mut raw = Raw::spawn(&args);
        let total = raw.blast();
        let mut driven = HarnessClient::spawn(&launch(&args)).expect("a child");
        let client = SharedClient::spawn(&launch(&args)).expect("a child");
        let events = client.subscribe(Filter::all(), Policy::Lossless);
        let mut subjects: Vec<Subject<'_>> = vec![
            ("raw", Box::new(|| raw.blast())),
            ("caller", Box::new(|| caller_driven(&mut driven))),
            ("shared", Box::new(|| shared(&client, &events, total))),
        ];
        let times = take_turns(15, &mut subjects);
        println!(
            "{corpus:6} {total:7} frames  raw {:6.1} ns a frame  caller {:5.2}x  shared {:5.2}x",
            times.seconds("raw") * 1e9 / total as f64,
            times.ratio("caller", "raw"),
            times.ratio("shared", "raw"),
        );
    }
}

/// One subject alone, for a profiler.
fn receive_loop(which: &str, corpus: &str, turns: usize) {
    let args = ["child", corpus, BLAST];
    let total = Raw::spawn(&args).blast();
    let start = Instant::now();
    match which {
        "raw" => {
            let mut raw = Raw::spawn(&args);
            (0..turns).for_each(|_| assert_eq!(raw.blast(), total));
        }
        "caller" => {
            let mut client = HarnessClient::spawn(&launch(&args)).expect("a child");
            (0..turns).for_each(|_| assert_eq!(caller_driven(&mut client), total));
        }
        _ => {
            let client = SharedClient::spawn(&launch(&args)).expect("a child");
            let events = client.subscribe(Filter::all(), Policy::Lossless);
            (0..turns).for_each(|_| assert_eq!(shared(&client, &events, total), total));
        }
    }
    println!("{:.1} ns a frame", start.elapsed().as_secs_f64() * 1e9 / (total * turns) as f64);
}

const TRIPS: usize = 5000;

fn trips() {
    let mut raw = Raw::spawn(&["child", "pong"]);
    let mut driven = HarnessClient::spawn(&launch(&["child", "small", "1000"])).expect("a child");
    let client = SharedClient::spawn(&launch(&["child", "small", "1000"])).expect("a child");
    let calls = CallOptions::default().timeout(Duration::from_secs(10));
    let mut subjects: Vec<Subject<'_>> = vec![
        (
            "raw",
            Box::new(|| {
                (0..TRIPS).for_each(|_| raw.ping());
                TRIPS
            }),
        ),
        (
            "caller",
            Box::new(|| {
                (0..TRIPS).for_each(|_| drop(driven.call_with::<JsonBuf>("echo", &(), &calls).expect("an answer")));
                TRIPS
            }),
        ),
        (
            "shared",
            Box::new(|| {
                (0..TRIPS).for_each(|_| drop(client.call_with::<JsonBuf>("echo", &(), &calls).expect("an answer")));
                TRIPS
            }),
        ),
    ];
    let times = take_turns(21, &mut subjects);
    println!(
        "raw {:.2} µs a trip  caller {:.2}x  shared {:.2}x",
        times.seconds("raw") * 1e6 / TRIPS as f64,
        times.ratio("caller", "raw"),
        times.ratio("shared", "raw"),
    );
}

/// Trips of one subject, for a count of its system calls.
fn trip_loop(which: &str, count: usize) {
    let args = ["child", "small", "1000"];
    let calls = CallOptions::default().timeout(Duration::from_secs(10));
    if which == "caller" {
        let mut client = HarnessClient::spawn(&launch(&args)).expect("a child");
        (0..count).for_each(|_| drop(client.call_with::<JsonBuf>("echo", &(), &calls).expect("an answer")));
    } else {
        let client = SharedClient::spawn(&launch(&args)).expect("a child");
        (0..count).for_each(|_| drop(client.call_with::<JsonBuf>("echo", &(), &calls).expect("an answer")));
    }
}

/// Peak memory of this process, in bytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number") * 1024.0
}

/// A run over a million events without collecting.
fn memory() {
    let client = HarnessClient::spawn(&launch(&["child", "small", "2000000"])).expect("a child");
    let mut harness = DeepSeekHarness::with_client(client);
    let mut events = 0;
    let options = RunOptions::new().collect(false).on_notification(|_| events += 1);
    harness.session(child::SESSION).run("go", options).expect("a run");
    println!("{events} events, frames up to 1 MiB, not collected: peak {:.2} MB", peak() / 1e6);
}

/// A bounded subscription that is not taken from while 25 MB arrive.
fn paused() {
    const LIMIT: usize = 4 << 20;
    let args = ["child", "mix", "25000000"];
    let total = Raw::spawn(&args).blast();
    let mut client = HarnessClient::spawn_with(&launch(&args), ClientOptions::default()).expect("a child");
    let events = client.subscribe(Filter::all(), Policy::Bounded { items: usize::MAX, bytes: LIMIT });
    client.call("blast", &()).expect("an answer");
    let mut seen = 0;
    while let Some(delivery) = events.try_next(&mut client) {
        seen += match delivery {
            Delivery::Lagged(n) => n as usize,
            Delivery::Notification(_) => 1,
        };
    }
    assert_eq!(seen, total, "nothing is lost unannounced");
    println!("paused while 25 MB came, queue of {:.1} MB: peak {:.2} MB", LIMIT as f64 / 1e6, peak() / 1e6);
}
