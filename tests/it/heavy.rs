//! What takes minutes at its full size: `cargo test --release --test it heavy -- --ignored --nocapture --test-threads=1`.
//! The same at a size for every day is in `client` and `shared`.

use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use dsh_wire::client::{Delivery, Filter, Policy};
use dsh_wire::json::JsonBuf;
use dsh_wire::stdio::{CallOptions, Exit, HarnessClient, PendingCall, SharedClient};
use dsh_wire::wire::ContentBlock;
use serde_json::json;

use crate::faulty::{SECOND, count, faulty, options, route, shared, slack, start};

/// Kills a process after some microseconds.
fn kill_later(pid: u32, micros: u64) -> std::thread::JoinHandle<()> {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_micros(micros));
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    })
}

/// The slowest end that was seen, after the kill.
#[derive(Default)]
struct Slowest(Duration);

impl Slowest {
    #[track_caller]
    fn note(&mut self, killed: Instant) {
        let took = killed.elapsed();
        assert!(took < SECOND * slack(), "{took:?} after the kill");
        self.0 = self.0.max(took);
    }
}

fn random(below: u64) -> u64 {
    std::hash::RandomState::new().hash_one(0) % below
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills_at_random_moments() {
    let mut slowest = Slowest::default();
    for round in 0..500 {
        kill_caller_driven(&mut slowest);
        kill_shared(&mut slowest);
        if round % 100 == 99 {
            println!("{} kills, slowest end {:?} after the kill", (round + 1) * 2, slowest.0);
        }
    }
}

fn kill_caller_driven(slowest: &mut Slowest) {
    let mut client = start(&["silent=quiet", "events=50"]);
    let events = client.subscribe(Filter::all(), Policy::bounded(100));
    let quiet: PendingCall<JsonBuf> = client.start_call("quiet", &(), &CallOptions::default()).unwrap();
    let killer = kill_later(client.process_id().unwrap(), random(20_000));
    let error = loop {
        if let Err(error) = client.prompt("s", &[ContentBlock::text("hello")]) {
            break error;
        }
    };
    killer.join().unwrap();
    let killed = Instant::now();
    let ends = [Some(error), client.finish(quiet).err(), events.iter(&mut client).last().and_then(Result::err)];
    slowest.note(killed);
    assert!(ends.iter().all(|error| error.as_ref().unwrap().exit() == Some(Exit::Signal(9))), "{ends:?}");
    assert_eq!(client.pending_calls(), 0);
    client.close();
}

fn kill_shared(slowest: &mut Slowest) {
    let client = shared(&["silent=quiet", "events=50"]);
    let events = client.subscribe(Filter::all(), Policy::bounded(100));
    let killer = kill_later(client.process_id().unwrap(), random(20_000));
    let ends = std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| client.call("quiet", &()).unwrap_err()),
            scope.spawn(|| events.iter().last().unwrap().unwrap_err()),
            scope.spawn(|| {
                loop {
                    if let Err(error) = client.prompt("s", &[ContentBlock::text("hello")]) {
                        break error;
                    }
                }
            }),
        ];
        killer.join().unwrap();
        let killed = Instant::now();
        let ends = waits.map(|wait| wait.join().unwrap());
        slowest.note(killed);
        ends
    });
    assert!(ends.iter().all(|error| error.exit() == Some(Exit::Signal(9))), "{ends:?}");
    assert_eq!(client.pending_calls(), 0);
    let _ = client.close();
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_starts_and_closes() {
    let counts = || (count("fd"), count("task"));
    let mut before = None;
    for round in 0..200 {
        let mut client = start(&[]);
        client.initialize(&route()).unwrap();
        if round % 2 == 0 {
            assert_eq!(client.close().exit, Some(Exit::Code(0)));
        }
        drop(client);
        let client = shared(&[]);
        client.initialize(&route()).unwrap();
        if round % 2 == 1 {
            assert_eq!(client.close().exit, Some(Exit::Code(0)));
        }
        drop(client);
        assert_eq!(*before.get_or_insert_with(counts), counts());
    }
    println!("200 cycles of both clients: {:?} descriptors and threads", counts());
}

#[test]
#[ignore = "takes minutes"]
fn sixty_four_megabytes_each_way() {
    let text = "x".repeat(1 << 20);
    let params = json!({ "text": text });
    let start_all =
        |mut make: Box<dyn FnMut() -> PendingCall<JsonBuf> + '_>| (0..64).map(|_| make()).collect::<Vec<_>>();
    let mut driven = start(&[]);
    let calls = start_all(Box::new(|| driven.start_call("echo", &params, &CallOptions::default()).unwrap()));
    for call in calls {
        assert!(driven.finish(call).unwrap().as_json().get().len() > text.len());
    }
    let client = shared(&[]);
    let calls = start_all(Box::new(|| client.start_call("echo", &params, &CallOptions::default()).unwrap()));
    for call in calls {
        assert!(client.finish(call).unwrap().as_json().get().len() > text.len());
    }
    assert!(client.bytes().read > 64 << 20 && client.bytes().written > 64 << 20);
    drop((driven, client));
}

#[test]
#[ignore = "takes minutes"]
fn a_million_notifications_for_a_slow_a_dead_and_a_fast_subscriber() {
    const ALL: u64 = 1_000_000;
    let client = HarnessClient::spawn_with(&faulty(&["flood=1000000", "flood-text=20"]), options()).unwrap();
    let client: SharedClient = client.into_shared().unwrap();
    let ticks = || Filter::all().method("tick");
    let slow = client.subscribe(ticks(), Policy::Lossless);
    let fast = client.subscribe(ticks(), Policy::Lossless);
    let dead = client.subscribe(ticks(), Policy::bounded(1000));
    let number = |delivery: Delivery| delivery.notification().unwrap().params.member("n").unwrap().as_u64().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ALL {
                assert_eq!(number(slow.next().unwrap()), n);
                if n % 10_000 == 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        for n in 0..ALL {
            assert_eq!(number(fast.next().unwrap()), n);
        }
    });
    assert_eq!(dead.try_next(), Some(Delivery::Lagged(ALL - 1000)));
    // 1 MiB, and what comes with one read.
    assert!(client.counters().most_queued < 3 << 20, "{}", client.counters().most_queued);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("a million to each; {}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
    let _ = client.close();
}
