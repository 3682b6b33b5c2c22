use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::string::String;
use std::vec::Vec;
use std::{format, thread, vec};

use super::*;
use crate::peer::Event;

const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn nonblocking(fd: impl Into<OwnedFd>) -> OwnedFd {
    let fd = fd.into();
    rustix::io::ioctl_fionbio(&fd, true).unwrap();
    fd
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = io::pipe().unwrap();
    (nonblocking(reader), nonblocking(writer))
}

fn dev_null() -> OwnedFd {
    File::options().read(true).write(true).open("/dev/null").unwrap().into()
}

/// Takes all notifications out; returns how many there were and the length of their params.
fn take(peer: &mut Peer<()>) -> (usize, usize) {
    let (mut count, mut len) = (0, 0);
    while let Some(event) = peer.next_event() {
        let Event::Notification { params, .. } = event else { panic!("{event:?}") };
        count += 1;
        len += params.get().len();
    }
    (count, len)
}

#[track_caller]
fn both_ways(a: (OwnedFd, OwnedFd), b: (OwnedFd, OwnedFd), wait: Option<Duration>) {
    const EACH: usize = 200;
    let params = [("text", "x".repeat(20_000))].into_iter().collect::<std::collections::BTreeMap<_, _>>();
    let mut ends = [a, b].map(|(reader, writer)| {
        let mut peer = Peer::<()>::new();
        (0..EACH).for_each(|_| peer.notify("n", &params).unwrap());
        (Pump::new(reader, writer).unwrap(), peer, 0)
    });
    while ends.iter().any(|(_, _, count)| *count < EACH) {
        for (pump, peer, count) in &mut ends {
            pump.turn(peer, wait).unwrap();
            *count += take(peer).0;
        }
    }
    let [(a, ..), (b, ..)] = ends;
    assert_eq!((a.total().read, a.total().written), (b.total().written, b.total().read));
    assert!(a.total().read > 4_000_000);
}

#[test]
fn both_ends_send_more_than_the_pipes_hold() {
    let ((to_a, from_b), (to_b, from_a)) = (pipe(), pipe());
    both_ways((to_a, from_a), (to_b, from_b), Some(Duration::from_millis(1)));
    // In blocking mode a turn must not block either.
    let ((to_a, from_b), (to_b, from_a)) = (io::pipe().unwrap(), io::pipe().unwrap());
    both_ways((to_a.into(), from_a.into()), (to_b.into(), from_b.into()), Some(Duration::ZERO));
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let (a, b) = (nonblocking(a), nonblocking(b));
    both_ways((a.try_clone().unwrap(), a), (b.try_clone().unwrap(), b), Some(Duration::from_millis(1)));
}

#[test]
fn files_and_dev_null_are_always_ready() {
    let path = std::env::temp_dir().join(format!("dsh-wire-pump-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file.write_all(format!("{}tail", "{\"method\":\"n\"}\n".repeat(30_000)).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut pump = Pump::new(file.into(), dev_null()).unwrap();
    let mut peer = Peer::<()>::new();
    peer.notify("n", &()).unwrap();
    let mut count = 0;
    while pump.input_open() {
        pump.turn(&mut peer, None).unwrap();
        while let Some(event) = peer.next_event() {
            count += usize::from(matches!(event, Event::Notification { .. }));
        }
    }
    assert_eq!((count, pump.total().written, pump.input_error().is_none()), (30_000, 31, true));
}

#[test]
fn a_reader_that_has_gone_ends_the_output_alone() {
    let (reader, writer) = pipe();
    drop(reader);
    let (input, mut feed) = io::pipe().unwrap();
    let mut pump = Pump::new(nonblocking(input), writer).unwrap();
    let mut peer = Peer::<()>::new();
    peer.notify("n", &()).unwrap();
    assert!(pump.turn(&mut peer, LONG).unwrap().is_nothing());
    assert!(!pump.output_open() && pump.input_open());
    assert_eq!(pump.output_error().map(io::Error::kind), Some(ErrorKind::BrokenPipe));
    feed.write_all(b"{\"method\":\"last\"}\n").unwrap();
    drop(feed);
    while pump.input_open() {
        pump.turn(&mut peer, LONG).unwrap();
    }
    assert_eq!(take(&mut peer).0, 1);
}

#[test]
fn the_waker_and_other_sources_end_a_wait() {
    let (input, _feed) = pipe();
    let mut pump = Pump::new(input, dev_null()).unwrap();
    let mut peer = Peer::<()>::new();
    let waker = pump.waker();
    let thread = thread::spawn(move || waker.wake());
    assert!(pump.turn(&mut peer, None).unwrap().is_nothing());
    thread.join().unwrap();
    let (mut other, mut feed) = io::pipe().unwrap();
    let token = Pump::FREE_TOKEN;
    pump.registry().register(&mut SourceFd(&other.as_raw_fd()), token, Interest::READABLE).unwrap();
    feed.write_all(b"x").unwrap();
    assert!(pump.turn(&mut peer, None).unwrap().is_nothing());
    assert_eq!(pump.events().map(mio::event::Event::token).collect::<Vec<_>>(), [token]);
    drop(feed);
    other.read_to_string(&mut String::new()).unwrap();
}

#[test]
fn input_that_is_not_wanted_waits_in_the_pipe() {
    let (input, mut feed) = io::pipe().unwrap();
    let mut pump = Pump::new(nonblocking(input), dev_null()).unwrap();
    let mut peer = Peer::<()>::new();
    pump.set_reading(false);
    feed.write_all(b"{\"method\":\"n\"}\n").unwrap();
    drop(feed);
    for _ in 0..3 {
        assert!(pump.turn(&mut peer, Some(Duration::ZERO)).unwrap().is_nothing());
    }
    pump.set_reading(true);
    assert_eq!(pump.turn(&mut peer, LONG).unwrap().read, 15);
    assert_eq!(take(&mut peer), (1, 2));
    assert!(pump.turn(&mut peer, LONG).unwrap().is_nothing() && !pump.input_open());
}

#[test]
fn a_poll_of_the_callers_can_host_the_pump() {
    let (input, mut feed) = io::pipe().unwrap();
    let mut pump = Pump::new(nonblocking(input), dev_null()).unwrap();
    let mut peer = Peer::<()>::new();
    while !pump.turn(&mut peer, Some(Duration::ZERO)).unwrap().is_nothing() {}
    let mut host = Poll::new().unwrap();
    host.registry().register(&mut pump, Token(7), Interest::READABLE).unwrap();
    let mut events = Events::with_capacity(1);
    for round in 1..=3 {
        feed.write_all(&vec![b' '; round]).unwrap();
        host.poll(&mut events, LONG).unwrap();
        assert_eq!(events.iter().map(mio::event::Event::token).collect::<Vec<_>>(), [Token(7)]);
        let mut read = 0;
        loop {
            let moved = pump.turn(&mut peer, Some(Duration::ZERO)).unwrap();
            if moved.is_nothing() {
                break;
            }
            read += moved.read;
        }
        assert_eq!(read, round as u64);
    }
}
