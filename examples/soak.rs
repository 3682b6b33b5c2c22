//! Minutes against a real runtime: two sessions, tool calls, restarts with resume. Says what it did, how long the slowest
//! turn took, and that memory, descriptors and threads stayed flat; any error ends it.
//!
//! `soak MINUTES PROGRAM [ARG…]`. The model behind the runtime should be the fake one of the interop suite, whose
//! prompts it uses; `tests/interop/soak` sets that up.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dsh_wire::stdio::{DeepSeekHarness, HarnessOptions, Launch, RunOptions, SharedClient};
use dsh_wire::wire::InitializeParams;

/// What a turn gets. The official runtime has been seen to rest for a minute between two events on a machine that gave it
/// hardly any time.
const PATIENCE: Duration = Duration::from_secs(300);

/// What came of some turns.
#[derive(Default)]
struct Done {
    turns: u64,
    tools: u64,
    notifications: u64,
    slowest: Duration,
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.tools += other.tools;
        self.notifications += other.notifications;
        self.slowest = self.slowest.max(other.slowest);
    }
}

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
    let (mut all, mut restarts, mut first) = (Done::default(), 0, None);
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
            all.add(&done.map_err(|why| format!("in round {restarts}: {why}"))?);
        }
        for session in &sessions {
            wait_until_stored(session)?;
        }
        let dropped = client.counters().dropped();
        let report = client.close();
        drop(client);
        restarts += 1;
        let left = (count("fd")?, count("task")?);
        let before = *first.get_or_insert(left);
        println!("{report}");
        println!(
            "round {restarts}: {} turns, {} tool calls, {} notifications, {dropped} lines dropped, slowest turn {:.1?}, \
             {left:?} descriptors and threads, {} kB",
            all.turns,
            all.tools,
            all.notifications,
            all.slowest,
            resident()?
        );
        if left != before {
            return Err("descriptors or threads are left".into());
        }
    }
    Ok(())
}

/// The official runtime stores a session behind its answers, and one that it is ended before cannot be resumed: on a machine
/// that gives it hardly any time that has been seen of a session that was idle.
fn wait_until_stored(session: &str) -> Result<(), Box<dyn Error>> {
    let Some(home) = std::env::var_os("DSH_HOME") else { return Ok(()) };
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let directories = fs::read_dir(Path::new(&home).join("sessions"))?.filter_map(Result::ok);
        let log = |directory: fs::DirEntry| directory.path().join(session).join("session.v4.jsonl");
        if directories.map(log).any(|log| log.metadata().is_ok_and(|log| log.len() > 0)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("the runtime has not stored {session}").into())
}

/// Runs prompts on one session.
fn talk(client: &SharedClient, session: &str, until: Instant) -> Result<Done, String> {
    let session = client.session(session);
    let mut done = Done::default();
    while Instant::now() < until {
        let turn = done.turns;
        let (prompt, answer) = match turn % 4 {
            3 => ("@bash echo $((6 * 7))".to_owned(), "The tool has answered.".to_owned()),
            n => (format!("turn {turn} of kind {n}"), format!("echo: turn {turn} of kind {n}")),
        };
        let start = Instant::now();
        let mut last = VecDeque::new();
        let options = RunOptions::new().timeout(PATIENCE).collect(false).on_notification(|n| {
            done.notifications += 1;
            last.push_back(n.event().map_or(n.method, |event| event.kind).to_string());
            if last.len() > 20 {
                last.pop_front();
            }
            done.tools += u64::from(n.event().is_some_and(|event| event.kind == "tool/result"));
        });
        let result = session.run(prompt.as_str(), options).map_err(|error| {
            format!("{error:#}; it was turn {turn} of the round, {prompt:?}, and the last to come were {last:?}")
        })?;
        if result.final_response != answer {
            return Err(format!("asked for {answer:?}, got {:?}", result.final_response));
        }
        done.turns += 1;
        done.slowest = done.slowest.max(start.elapsed());
    }
    Ok(done)
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
