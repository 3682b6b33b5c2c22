//! The runtime with faults to choose from, and what its tests have in common.

use std::error::Error as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use dsh_wire::client::Graces;
use dsh_wire::stdio::{ClientOptions, Error, HarnessClient, Launch, SharedClient};
use dsh_wire::wire::InitializeParams;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The example next to this test's executable.
pub(crate) fn faulty(flags: &[&str]) -> Launch {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/faulty_runtime");
    assert!(path.exists(), "build it with: cargo build --example faulty_runtime");
    Launch::new(path).args(flags.iter().map(|flag| format!("--{flag}")))
}

pub(crate) fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.graces = Graces {
        shutdown: Duration::from_millis(300),
        stdin: Duration::from_millis(100),
        terminate: Duration::from_millis(100),
        kill: Duration::from_secs(2),
    };
    options
}

pub(crate) fn start(flags: &[&str]) -> HarnessClient {
    HarnessClient::spawn_with(&faulty(flags), options()).unwrap()
}

pub(crate) fn route() -> InitializeParams {
    InitializeParams::new("/", "none", "none")
}

/// Checks that it takes no longer than that.
#[track_caller]
pub(crate) fn within<T>(limit: Duration, what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = what();
    assert!(start.elapsed() < limit * slack(), "took {:?}", start.elapsed());
    result
}

/// So many times as long may everything take: a machine that does other things at the same time says so.
pub(crate) fn slack() -> u32 {
    std::env::var("DSH_WIRE_SLACK").map_or(1, |times| times.parse().expect("a whole number"))
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The whole text of an error.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Whether a process with this id is there, or what is left of one.
pub(crate) fn exists(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

/// Whether there is a process in the group that one with this id has led, other than what waits to be reaped.
pub(crate) fn group_exists(leader: u32) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let mut groups = stats.filter_map(|stat| {
        let mut behind_name = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, _parent, group) = (behind_name.next()?, behind_name.next()?, behind_name.next()?);
        Some((state.to_owned(), group.parse::<u32>().ok()?))
    });
    groups.any(|(state, group)| group == leader && state != "Z")
}

pub(crate) fn shared(flags: &[&str]) -> SharedClient {
    start(flags).into_shared().unwrap()
}

/// Both ends of a pseudo-terminal.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    (ours, theirs)
}

/// How many descriptors or threads this process has.
pub(crate) fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}
