//! What a tap costs: the round trip of a line, without one, through `dsh-wire tap`, and through `tee` on both sides, which
//! is the least that records.

use std::process::Command;

use crate::measure::{Subject, take_turns};
use crate::raw::Raw;

const TRIPS: usize = 2000;

/// A line of a usual length, in bytes.
const LINE: usize = 300;

pub fn trips(dsh_wire: &str) {
    let this = std::env::current_exe().expect("a path");
    let this = this.to_str().expect("a plain path");
    let folder = std::env::temp_dir().join(format!("dsh-wire-tap-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let pipeline = format!("tee '{}' | '{this}' child pong | tee '{}'", log("in"), log("out"));

    let mut bare = Raw::spawn(&["child", "pong"]);
    let mut tee = Raw::start(Command::new("sh").args(["-c", &pipeline]));
    let mut tap = Raw::start(Command::new(dsh_wire).args(["tap", "--log", &log("log"), "--", this, "child", "pong"]));
    let mut redacted = Raw::start(Command::new(dsh_wire).args([
        "tap",
        "--redact",
        "--log",
        &log("redacted"),
        "--",
        this,
        "child",
        "pong",
    ]));
    let trips = |raw: &mut Raw| {
        let mut line = [b'x'; LINE];
        line[LINE - 1] = b'\n';
        (0..TRIPS).for_each(|_| raw.echo(&mut line));
        TRIPS
    };
    let mut subjects: Vec<Subject<'_>> = vec![
        ("bare", Box::new(|| trips(&mut bare))),
        ("tee", Box::new(|| trips(&mut tee))),
        ("tap", Box::new(|| trips(&mut tap))),
        ("redacted", Box::new(|| trips(&mut redacted))),
    ];
    let times = take_turns(15, &mut subjects);
    println!(
        "bare {:.2} µs a trip  tee {:.2}x  tap {:.2}x  tap --redact {:.2}x  tap ÷ tee {:.2}",
        times.seconds("bare") * 1e6 / TRIPS as f64,
        times.ratio("tee", "bare"),
        times.ratio("tap", "bare"),
        times.ratio("redacted", "bare"),
        times.ratio("tap", "tee"),
    );
    drop(subjects);
    drop((bare, tee, tap, redacted));
    let _ = std::fs::remove_dir_all(folder);
}
