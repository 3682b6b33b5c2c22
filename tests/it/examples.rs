//! Each example is run, offline; what needs more than this suite has is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Next to this test's executable.
fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(path.exists(), "build it with: cargo build --features cli --example {name}");
    path
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{stdout}{stderr}");
    stdout.into_owned()
}

/// Drives an example that is a runtime.
#[track_caller]
fn ask(name: &str, prompt: &str) -> String {
    run(Command::new(env!("CARGO_BIN_EXE_dsh-wire")).args(["run", prompt, "--"]).arg(example(name)))
}

/// Where each example is run.
const EXAMPLES: [(&str, &str); 12] = [
    ("client", "here"),
    ("common", "a part of others"),
    ("core_pair", "here"),
    ("faulty_runtime", "by the tests of the client"),
    ("firmware", "by .ci/no-std, in an emulator"),
    ("fuzz_server", "by .ci/run, since it needs the feature arbitrary"),
    ("idle_callback", "here"),
    ("one_poll", "here"),
    ("parrot", "here"),
    ("soak", "by tests/interop/soak, since it needs the official runtime"),
    ("wasm", "by .ci/no-std, in node"),
    ("word_counter", "here"),
];

#[test]
fn none_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().file_stem().unwrap().to_owned());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    let known: BTreeSet<_> = EXAMPLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn a_client_with_a_runtime_of_its_own_and_with_another() {
    let text = run(&mut Command::new(example("client")));
    assert!(text.contains("  turn/end\n  session.status\nhello: You said: hello (completed)\n"), "{text}");
    assert!(text.contains("and again: You said: and again (completed)\n"), "{text}");
    let text = run(Command::new(example("client")).args([env!("CARGO_BIN_EXE_dsh-wire"), "serve"]));
    assert!(text.contains("hello: echo: hello (completed)\n") && text.contains("exited with code 0"), "{text}");
}

#[test]
fn the_core_in_a_loop_of_its_own() {
    let text = run(&mut Command::new(example("core_pair")));
    assert!(text.contains("session.event ") && text.contains("parrot/says"), "{text}");
    assert!(text.contains("the prompt was answered: ") && text.contains("message"), "{text}");
}

#[test]
fn loops_of_others() {
    for name in ["one_poll", "idle_callback"] {
        for runtime in [&[][..], &[env!("CARGO_BIN_EXE_dsh-wire"), "serve"]] {
            let text = run(Command::new(example(name)).args(runtime));
            assert!(text.contains("assistant/message\n") && text.contains("turn/end\nsession.status\n"), "{text}");
        }
    }
}

#[test]
fn runtimes() {
    assert_eq!(ask("parrot", "hello"), "You said: hello\n");
    assert_eq!(ask("word_counter", "one two three"), "3 words, 3 so far\n");
}
