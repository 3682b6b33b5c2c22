//! What the command says of itself: help, completions, the manual. Every example of a help is run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{Folder, dsh_wire, exits, stderr, stdout, with_stdin};

fn help(args: &[&str]) -> String {
    let output = dsh_wire(args.iter().chain(&["--help"])).output().unwrap();
    exits(&output, 0);
    stdout(&output)
}

/// The names of all subcommands, as `--help` lists them.
fn subcommands() -> Vec<String> {
    let help = help(&[]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() >= 7, "{help}");
    names
}

/// The lines of the paragraph "Example:" or "Examples:".
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| !matches!(*line, "Example:" | "Examples:")).skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect()
}

/// A place in which the examples find what they name: `dsh` is the embedded runtime, and other programs are stand-ins.
fn place() -> Folder {
    let folder = Folder::new();
    let program = |name: &str, script: &str| {
        let path = folder.file(name, format!("#!/bin/sh\n{script}\n").as_bytes());
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    let this = env!("CARGO_BIN_EXE_dsh-wire");
    fs::create_dir(folder.0.join("bin")).unwrap();
    program("bin/dsh-wire", &format!("exec '{this}' \"$@\""));
    program("bin/dsh", &format!("[ \"$1\" = --version ] && echo 0.2.1 && exit\nexec '{this}' serve \"$@\""));
    program("bin/git", "echo 'a difference'");
    program("bin/jq", "cat");
    program("bin/man", "cat");
    let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0sum.\0\0\0\0IENDsum.";
    folder.file("photo.png", pixel);
    let initialize = r#"{"cwd":"/","provider":"deepseek-official","model":"deepseek-v4-flash"}"#;
    folder.file("params.json", initialize.as_bytes());
    let request = format!("{{\"id\":1,\"method\":\"initialize\",\"params\":{initialize}}}\n");
    folder.file("requests.jsonl", request.as_bytes());
    folder.file("captured.bin", request.as_bytes());
    let frame = serde_json::json!({"t": 0, "dir": "c2s", "frame": request.trim_end()});
    folder.file("session.jsonl", format!("{frame}\n").as_bytes());
    for directory in [".local/share/bash-completion/completions", ".config/fish/completions", ".zfunc"] {
        fs::create_dir_all(folder.0.join(directory)).unwrap();
    }
    folder
}

#[test]
fn every_help_has_examples_and_each_of_them_runs() {
    let place = place();
    let path = format!("{}:{}", place.0.join("bin").display(), std::env::var("PATH").unwrap());
    for name in subcommands() {
        let help = help(&[&name]);
        let examples = examples(&help);
        assert!(examples.iter().any(|example| example.contains(&format!("dsh-wire {name}"))), "{name}: {help}");
        for example in examples {
            let mut bash = Command::new("bash");
            bash.args(["-o", "pipefail", "-c", example]).current_dir(&place.0).env("PATH", &path);
            let output = bash.env("HOME", &place.0).env_remove("DSH_HOME").output().unwrap();
            // What an example needs stands in `place`.
            assert!(output.status.success(), "{example}\n{}{}", stdout(&output), stderr(&output));
            assert!(!stderr(&output).contains("error"), "{example}\n{}", stderr(&output));
        }
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let help = help(&[]);
    for code in ["0  ", "1  ", "2  ", "3  ", "4  ", "5  ", "130  "] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(code)), "{code}: {help}");
    }
}

fn completions(shell: &str) -> String {
    let output = dsh_wire(["completions", shell]).output().unwrap();
    exits(&output, 0);
    stdout(&output)
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("{program} is not installed, so this is not tested");
    }
    there
}

/// As bash calls it when the tab key is pressed behind the last of these words.
#[test]
fn bash_completes() {
    let call = r#"
        registered=$(complete -p dsh-wire) || exit 1
        function=${registered#*-F }
        "${function%% *}" dsh-wire "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        echo "${COMPREPLY[@]}""#;
    let script = completions("bash") + call;
    let complete = |words: &[&str]| {
        let set = format!("COMP_WORDS=(dsh-wire {}); COMP_CWORD={}\n{script}", words.join(" "), words.len());
        let output = Command::new("bash").args(["--norc", "-c", &set]).output().unwrap();
        exits(&output, 0);
        stdout(&output).lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(complete(&["ins"]), "inspect");
    assert_eq!(complete(&["run", "--max"]), "--max-tokens");
    assert_eq!(complete(&["run", "--stderr", "in"]), "inherit");
    assert!(complete(&["completions", "''"]).contains("zsh"));
    // Behind `--` stands a command line of its own.
    assert_eq!(complete(&["run", "x", "--", "dsh-wire", "re"]), "replay");
    assert_eq!(complete(&["tap", "--log", "x", "--", "dsh-wire", "replay", "--lo"]), "--loose");
    assert_eq!(complete(&["run", "x", "--", "dsh-wire", "tap", "--", "/bin/dsh-wire", "serve", "--prof"]), "--profile");
    assert!(complete(&["run", "x", "--", "gre"]).split(' ').any(|word| word == "grep"));
}

#[test]
fn the_scripts_of_other_shells_are_whole() {
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = completions(shell);
        assert!(script.contains("dsh-wire") && script.contains("max-tokens"), "{shell}");
        if matches!(shell, "zsh" | "fish") && is_there(shell) {
            exits(&with_stdin(command(shell, &["-n"]), script.as_bytes(), 1 << 16), 0);
        }
    }
    exits(&dsh_wire(["completions", "csh"]).output().unwrap(), 2);
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Formats it as `man` does, without bold and underlined; anything that it finds fault with is on stderr.
#[track_caller]
fn formatted(page: &[u8]) -> String {
    let output: Output = with_stdin(command("groff", &["-man", "-Tutf8", "-ww", "-rHY=0", "-P-cbou"]), page, 1 << 16);
    exits(&output, 0);
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

#[test]
fn the_manual() {
    let output = dsh_wire(["man"]).output().unwrap();
    exits(&output, 0);
    assert!(output.stdout.starts_with(b".") || stdout(&output).contains(".TH"));
    if is_there("groff") {
        let text = formatted(&output.stdout);
        for part in [
            "EXIT CODES",
            "dsh-wire-run",
            "--max-tokens",
            "       git diff | dsh-wire run --json - -- dsh",
            "DIRECTIVES",
            "       dsh-wire tap [OPTIONS] --log <FILE> [-- <RUNTIME>...]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn the_manual_as_files() {
    let folder = Folder::new();
    let directory = folder.0.join("made/man1");
    exits(&dsh_wire(["man", "--out", directory.to_str().unwrap()]).output().unwrap(), 0);
    let pages =
        ["dsh-wire.1".to_owned()].into_iter().chain(subcommands().into_iter().map(|name| format!("dsh-wire-{name}.1")));
    let mut count = 0;
    for page in pages {
        let bytes = fs::read(directory.join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        if is_there("groff") {
            formatted(&bytes);
        }
        count += 1;
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), count);
    let file = folder.file("file", b"");
    let output = dsh_wire(["man", "--out", &file]).output().unwrap();
    exits(&output, 2);
    assert!(stderr(&output).starts_with(&format!("error: cannot write to '{file}': ")), "{}", stderr(&output));
    assert!(Path::new(&file).is_file());
}
