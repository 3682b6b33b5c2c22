//! Other clients on the same blast: the two published Rust SDKs in this process, the official npm client and the official
//! Python SDK in processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use dsh_wire::stdio::HarnessClient;

use crate::child::SESSION;
use crate::measure::{Subject, take_turns};
use crate::raw::Raw;
use crate::{CACHED, caller_driven, launch};

/// Bytes of one blast: the slowest takes two seconds.
const BLAST: &str = "16777216";

/// What `tests/interop/setup` installs.
const INTEROP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/interop");

pub fn table() {
    // Each waits for seconds until its turn comes, and the host of a virtual machine takes back memory that waits: where all
    // frames were prepared, to read them took the fake runtime three quarters of our time.
    let args = ["child", "small", BLAST, CACHED];
    let total = Raw::spawn(&args).blast();
    let program = std::env::current_exe().expect("a path");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let _entered = tokio.enter();

    let mut ours = HarnessClient::spawn(&launch(&args)).expect("a child");
    let spec = deepseek_harness_sdk::LaunchSpec {
        program: program.clone(),
        args: args.map(Into::into).to_vec(),
        envs: Default::default(),
        cwd: None,
    };
    // As much as it takes not to lose any: it keeps 4096 otherwise.
    let first = deepseek_harness_sdk::HarnessClient::spawn_with_broadcast_capacity(spec, Default::default(), 1 << 17);
    let first = first.expect("a child");
    let mut first_events = first.subscribe_session_tree(SESSION);
    let options = deepseek_harness_sdk_rs::HarnessClientOptions {
        launch_args_override: Some([program.display().to_string()].into_iter().chain(args.map(Into::into)).collect()),
        ..Default::default()
    };
    let second = deepseek_harness_sdk_rs::HarnessClient::new(options);
    tokio.block_on(second.start()).expect("a child");
    let mut second_events = second.subscribe(None).expect("running");
    let mut node = Script::spawn("node", "receive.mjs", &[&format!("{INTEROP}/node/node_modules")], &args);
    let mut python = Script::spawn(&format!("{INTEROP}/py/bin/python"), "receive.py", &[], &args);

    let mut subjects: Vec<Subject<'_>> = vec![
        ("dsh-wire", Box::new(|| caller_driven(&mut ours))),
        (
            "deepseek-harness-sdk",
            Box::new(|| {
                tokio.block_on(async {
                    let events = async {
                        for _ in 0..total {
                            first_events.recv().await.expect("a runtime");
                        }
                    };
                    tokio::join!(first.request("blast", None), events).0.expect("an answer");
                    total
                })
            }),
        ),
        (
            "deepseek-harness-sdk-rs",
            Box::new(|| {
                tokio.block_on(async {
                    let events = async {
                        for _ in 0..total {
                            second_events.next().await.expect("a runtime");
                        }
                    };
                    tokio::join!(second.request("blast", None), events).0.expect("an answer");
                    total
                })
            }),
        ),
    ];
    for (name, script) in [("npm, node", &mut node), ("Python", &mut python)] {
        match script {
            Some(script) => subjects.push((name, Box::new(|| script.blast(total)))),
            None => println!("{name}: not here; tests/interop/setup installs it"),
        }
    }
    let names: Vec<_> = subjects.iter().map(|subject| subject.0).collect();
    let times = take_turns(7, &mut subjects);
    println!("receiving {total} small notifications, medians of 7 turns");
    for name in names {
        println!(
            "{name:24} {:8.2} µs each  {:6.1}x the time of dsh-wire",
            times.seconds(name) * 1e6 / total as f64,
            times.ratio(name, "dsh-wire"),
        );
    }
}

/// A client in another language, which takes a blast for every line that it is given.
struct Script {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Script {
    /// `None` where the interpreter, or what it needs, is not installed.
    fn spawn(interpreter: &str, script: &str, more: &[&str], args: &[&str]) -> Option<Self> {
        if !Path::new(INTEROP).join("stamp").exists() {
            return None;
        }
        let mut child = Command::new(interpreter)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
            .args(more)
            .arg(std::env::current_exe().expect("a path"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (stdin, stdout) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, stdin, stdout })
    }

    fn blast(&mut self, total: usize) -> usize {
        writeln!(self.stdin, "{total}").expect("it reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it writes");
        assert_eq!(line, "done\n");
        total
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
