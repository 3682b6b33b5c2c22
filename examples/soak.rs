//! Minutes against a real runtime: two sessions, tool calls, restarts with resume. Says what it did, and that memory,
//! descriptors and threads stayed flat; any error ends it.
//!
//! `soak MINUTES PROGRAM [ARG…]`. The model behind the runtime should be the fake one of the interop suite, whose
//! prompts it uses; `tests/interop/soak` sets that up.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use dsh_wire::stdio::{DeepSeekHarness, HarnessOptions, Launch, RunOptions, SharedClient};
use dsh_wire::wire::InitializeParams;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let minutes: f64 = args.next().ok_or("how many minutes?")?.parse()?;
    let launch = Launch::new(args.next().ok_or("which program?")?).args(args);
    let here = std::env::current_dir()?.display().to_string();
    let route = InitializeParams::new(here, "deepseek-official", "deepseek-v4-flash");
    let options = HarnessOptions::new(launch, route);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let run = std::process::id();
    let sessions = [format!("soak-{run}-a"), format!("soak-{run}-b")];
    let (mut turns, mut tools, mut restarts, mut events) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut first = None;
    while Instant::now() < end {
        let client = DeepSeekHarness::start(&options)?.into_shared()?;
        if restarts > 0 {
            for session in &sessions {
                client.resume_session(session.as_str())?;
            }
        }
        let period = end.min(Instant::now() + Duration::from_secs(45));
        let done = std::thread::scope(|scope| {
            let each = sessions.each_ref().map(|session| scope.spawn(|| talk(&client, session, period)));
            each.map(|talk| talk.join().unwrap_or_else(|_| Err("a thread has panicked".into())))
        });
        for done in done {
            let done = done.map_err(|why| format!("in round {restarts}: {why}"))?;
            (turns, tools, events) = (turns + done.0, tools + done.1, events + done.2);
        }
        let dropped = client.counters().dropped();
        let report = client.close();
        drop(client);
        restarts += 1;
        let left = (count("fd")?, count("task")?);
        let before = *first.get_or_insert(left);
        println!("{report}");
        println!(
            "round {restarts}: {turns} turns, {tools} tool calls, {events} notifications, {dropped} lines dropped, \
             {left:?} descriptors and threads, {} kB",
            resident()?
        );
        if left != before {
            return Err("descriptors or threads are left".into());
        }
    }
    Ok(())
}

/// Runs prompts on one session; returns turns, tool calls and notifications.
fn talk(client: &SharedClient, session: &str, until: Instant) -> Result<(u64, u64, u64), String> {
    let session = client.session(session);
    let (mut turns, mut tools, mut events) = (0, 0, 0);
    while Instant::now() < until {
        let (prompt, answer) = match turns % 4 {
            3 => ("@bash echo $((6 * 7))".to_owned(), "The tool has answered.".to_owned()),
            n => (format!("turn {turns} of kind {n}"), format!("echo: turn {turns} of kind {n}")),
        };
        let mut last = VecDeque::new();
        let options = RunOptions::new().timeout(Duration::from_secs(60)).collect(false).on_notification(|n| {
            events += 1;
            last.push_back(n.event().map_or(n.method, |event| event.kind).to_string());
            if last.len() > 20 {
                last.pop_front();
            }
            tools += u64::from(n.event().is_some_and(|event| event.kind == "tool/result"));
        });
        let result = session.run(prompt.as_str(), options).map_err(|error| {
            format!("{error:#}; it was turn {turns} of the round, {prompt:?}, and the last to come were {last:?}")
        })?;
        if result.final_response != answer {
            return Err(format!("asked for {answer:?}, got {:?}", result.final_response));
        }
        turns += 1;
    }
    Ok((turns, tools, events))
}

fn count(what: &str) -> std::io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/self/{what}"))?.count())
}

/// Memory of this process, in kB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
