//! `doctor`: each kind of fault, on a real process, told in words and with its exit code.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;

use crate::faulty::slack;

use super::{Folder, RUNTIME, dsh_wire, exits, ready, stderr, stdout};

/// A machine on which all is well, apart from what a test does to it.
struct Machine {
    folder: Folder,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    fn new() -> Self {
        let folder = Folder::new();
        let variables = vec![("HOME", folder.0.display().to_string()), ("DEEPSEEK_API_KEY", "sk-secret".into())];
        Self { folder, variables }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn program(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.file(name, bytes);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Nothing of it ever tells the value of a variable.
    #[track_caller]
    fn doctor(&self, args: &[&str]) -> Output {
        let mut command = dsh_wire(["doctor"].iter().chain(args));
        command.env_remove("DSH_RUNTIME_BIN").envs(self.variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        assert!(!(stdout(&output) + &stderr(&output)).contains("sk-secret"));
        output
    }

    /// Examines a shell script.
    #[track_caller]
    fn examine(&self, script: &str) -> Output {
        self.doctor(&["--timeout", "10", "--", "sh", "-c", script])
    }
}

/// Seconds to wait for one that will not answer: enough for a shell to start.
fn within() -> String {
    (2 * slack()).to_string()
}

/// A program that `dsh` might be.
fn dsh() -> Vec<u8> {
    let serve = env!("CARGO_BIN_EXE_dsh-wire");
    format!("#!/bin/sh\n[ \"$1\" = --version ] && echo 9.8.7-rc.1 && exit\nexec '{serve}' serve \"$@\"\n").into()
}

/// It fails at this check, with this code, and says so in these words.
#[track_caller]
fn fails(output: &Output, check: &str, code: i32, words: &[&str]) {
    exits(output, code);
    assert_eq!(stderr(output), format!("error: a check has failed: {check}\n"));
    tells(output, &format!("✗ {check}"), words);
}

/// The check that starts with this, up to the next one, says all these words.
#[track_caller]
fn tells(output: &Output, check: &str, words: &[&str]) {
    let text = stdout(output);
    let start = text.find(check).unwrap_or_else(|| panic!("{check} is not in: {text}"));
    let rest = &text[start..];
    let end =
        rest.match_indices('\n').find(|(at, _)| !rest[at + 1..].starts_with(' ')).map_or(rest.len(), |(at, _)| at);
    for words in words {
        assert!(rest[..end].contains(words), "{words} is not in: {}", &rest[..end]);
    }
}

#[test]
fn a_runtime_that_is_well() {
    let machine = Machine::new().with("DSH_ODD_SETTING", "sk-secret");
    let output = machine.doctor(&["--", env!("CARGO_BIN_EXE_dsh-wire"), "serve"]);
    exits(&output, 0);
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    let checks: Vec<_> =
        text.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    let expected = ["✓ program", "✓ environment", "✓ home", "✓ handshake", "✓ methods", "✓ end", "all is"];
    assert_eq!(checks, expected, "{text}");
    tells(&output, "✓ environment", &["DEEPSEEK_API_KEY", "DSH_ODD_SETTING"]);
    tells(&output, "✓ handshake", &["deepseek-harness-sdk-runtime", "ready after"]);
    tells(&output, "✓ methods", &["as from 0.2.1", "session/resume"]);
    assert!(!text.contains('\x1b'), "colours are for terminals");
}

#[test]
fn machines_get_a_line_a_check() {
    let machine = Machine::new();
    let rows = |output: &Output| -> Vec<Value> {
        stdout(output).lines().map(|row| serde_json::from_str(row).unwrap()).collect()
    };
    let output = machine.doctor(&["--json", "--", env!("CARGO_BIN_EXE_dsh-wire"), "serve"]);
    exits(&output, 0);
    let all = rows(&output);
    let row = |name: &str| all.iter().find(|row| row["name"] == name).unwrap();
    assert!(all.iter().rev().skip(1).all(|row| row["kind"] == "check" && row["state"] == "ok"), "{all:?}");
    assert_eq!(row("program")["path"], env!("CARGO_BIN_EXE_dsh-wire"));
    assert_eq!(row("handshake")["server"]["name"], "deepseek-harness-sdk-runtime");
    assert!(row("handshake")["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(row("methods")["missing"], serde_json::json!([]));
    assert!(row("environment")["names"].as_array().unwrap().contains(&"DEEPSEEK_API_KEY".into()));
    assert_eq!(*all.last().unwrap(), serde_json::json!({"kind": "result", "exit": 0, "faults": [], "warnings": 0}));

    let output = machine.doctor(&["--json", "--", "sh", "-c", "echo no >&2; exit 7"]);
    exits(&output, 3);
    let all = rows(&output);
    let fault = all.iter().find(|row| row["state"] == "fault").unwrap();
    assert_eq!((&fault["name"], &fault["stderr"]), (&"handshake".into(), &serde_json::json!(["no"])));
    assert!(fault["advice"].is_string());
    assert_eq!(all.last().unwrap()["exit"], 3);
}

#[test]
fn a_runtime_is_found_as_the_clients_find_it() {
    let machine = Machine::new();
    let named = machine.program("named", &dsh());
    let on_path = machine.program("dsh", &dsh());
    let path = format!("{}:{}", machine.folder.0.display(), std::env::var("PATH").unwrap());
    let machine = machine.with("PATH", path);
    let output = machine.doctor(&[]);
    exits(&output, 0);
    tells(&output, "✓ program", &[&on_path, "found on PATH", "version 9.8.7-rc.1"]);
    let machine = machine.with("DSH_RUNTIME_BIN", &*named);
    let output = machine.doctor(&[]);
    exits(&output, 0);
    tells(&output, "✓ program", &[&named, "named by DSH_RUNTIME_BIN", "version 9.8.7-rc.1"]);
    let output = machine.doctor(&["--", "dsh", "--profile", "sdk"]);
    exits(&output, 0);
    tells(&output, "✓ program", &[&on_path, "as given", "version 9.8.7-rc.1"]);
}

#[test]
fn no_runtime_anywhere() {
    let machine = Machine::new().with("PATH", "/nonexistent");
    fails(&machine.doctor(&[]), "program", 2, &["no `dsh` on PATH", "→ install the runtime", "DSH_RUNTIME_BIN"]);
    fails(&machine.doctor(&["--", "/no/such"]), "program", 2, &["there is no program /no/such", "→ check the name"]);
    let machine = machine.with("DSH_RUNTIME_BIN", "/no/such/runtime");
    let words = ["DSH_RUNTIME_BIN names /no/such/runtime, and there is no such program", "→ correct DSH_RUNTIME_BIN"];
    fails(&machine.doctor(&[]), "program", 2, &words);
}

#[test]
fn a_program_that_does_not_start() {
    let machine = Machine::new();
    let plain = machine.folder.file("plain", &dsh());
    fails(&machine.doctor(&["--", &plain]), "program", 2, &["may not be executed", &format!("→ chmod +x '{plain}'")]);
    fails(&machine.doctor(&["--", "/"]), "program", 2, &["is a directory", "→ name the program in it"]);
    let script = machine.program("script", b"#!/no/such/interpreter -x\n");
    let words = ["what its first line names is missing: #!/no/such/interpreter -x", "→ install that"];
    fails(&machine.doctor(&["--", &script]), "program", 2, &words);
}

/// Linux runs both, or says ENOEXEC; other systems read other formats.
#[cfg(target_os = "linux")]
#[test]
fn a_program_for_another_machine() {
    let machine = Machine::new();
    // An executable of 64 bits, big-endian, for machine number 21: a header and nothing else.
    let mut elf = vec![0; 64];
    elf[..20].copy_from_slice(b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x15");
    let foreign = machine.program("foreign", &elf);
    let words = ["is a program for powerpc64, and this machine is", "→ install the runtime for this machine"];
    fails(&machine.doctor(&["--", &foreign]), "program", 2, &words);
    let page = machine.program("page", b"\x01<html>Not found</html>\n");
    fails(&machine.doctor(&["--", &page]), "program", 2, &["is neither a program", "→ check that it is whole"]);
}

#[test]
fn one_that_exits_at_once() {
    let output = Machine::new().examine("echo one >&2; echo 'error: --profile <name> is required' >&2; exit 1");
    let words = [
        "the runtime exited with code 1 before it was ready",
        "| one",
        "| error: --profile <name> is required",
        "→ see what it wrote to stderr",
    ];
    fails(&output, "handshake", 3, &words);
    let output = Machine::new().examine("kill -9 $$");
    let words = ["was killed by signal 9 (SIGKILL) before it was ready", "→ it wrote nothing to stderr"];
    fails(&output, "handshake", 3, &words);
    assert!(!stdout(&output).contains("see what it wrote"));
    let inherited = Machine::new().doctor(&["--stderr", "inherit", "--", "sh", "-c", "exit 1"]);
    tells(&inherited, "✗ handshake", &["→ see what it wrote to stderr"]);
    let output = Machine::new().examine("exec >&-; cat > /dev/null");
    fails(&output, "handshake", 3, &["has closed its output"]);
}

/// What it is to read is more than a pipe holds.
#[test]
fn one_that_closes_its_input() {
    let provider = "x".repeat(100_000);
    let output = Machine::new().doctor(&["--provider", &provider, "--", "sh", "-c", "exec <&-; sleep 60"]);
    fails(&output, "handshake", 3, &["has closed its input before it was ready", "→ a runtime reads its stdin"]);
}

#[test]
fn lines_on_stdout_that_are_no_frames() {
    let script = ready(
        r#"while take; do answer '"error":{"code":-32603,"message":"unknown"}'; case $line in *shutdown*) exit 0;; esac; done"#,
    );
    let output =
        Machine::new().examine(&format!("echo Welcome to the runtime; echo; echo 'ready: \x1b[1m9'; {script}"));
    exits(&output, 0);
    tells(&output, "! stdout", &["2 lines are no frames, the last one, line 3: ready: \\u{1b}[1m9", "→ "]);
    assert!(stdout(&output).ends_with("it works, with 3 warnings\n"), "{}", stdout(&output));
    tells(&output, "! handshake", &["does not say what it is"]);
    tells(&output, "! methods", &["as before 0.2.1"]);
}

#[test]
fn one_that_never_answers() {
    let output =
        Machine::new().doctor(&["--timeout", &within(), "--", "sh", "-c", "echo starting up >&2; cat > /dev/null"]);
    let in_time = format!("no answer to initialize within {}s", within());
    fails(&output, "handshake", 4, &[&in_time, "| starting up", "→ it may need longer"]);
    let output = Machine::new().doctor(&["--timeout", &within(), "--", "sh", "-c", "echo '> '; cat > /dev/null"]);
    fails(&output, "handshake", 4, &["→ what it writes is not the protocol"]);
}

#[test]
fn one_that_answers_with_an_error() {
    let machine = Machine::new();
    let dsh = machine.program("dsh", &dsh());
    let output = machine.doctor(&["--provider", "nobody", "--", &dsh, "--profile", "sdk"]);
    let words = ["answered with an error (-32603): no adapter registered for provider \"nobody\"", "→ it says"];
    fails(&output, "handshake", 1, &words);
    assert!(!tells_of_a_key(&output), "another provider's key has a name that nobody knows");
}

fn tells_of_a_key(output: &Output) -> bool {
    stdout(output).lines().any(|line| line.split_whitespace().nth(1) == Some("key"))
}

#[test]
fn another_protocol() {
    let unknown = format!(r#"{RUNTIME} take; answer '"error":{{"code":-32601,"message":"no"}}'; cat > /dev/null"#);
    fails(&Machine::new().examine(&unknown), "handshake", 1, &["→ it speaks JSON-RPC, but does not know initialize"]);
    let odd = format!(r#"{RUNTIME} take; answer '"result":[1]'; cat > /dev/null"#);
    fails(&Machine::new().examine(&odd), "handshake", 5, &["what the protocol does not allow", "came [1]"]);
    let headers = r#"printf 'Content-Length: 2\r\n\r\n{}\n'; cat > /dev/null"#;
    let output = Machine::new().doctor(&["--timeout", &within(), "--", "sh", "-c", headers]);
    fails(&output, "handshake", 5, &["headers like Content-Length", "→ it speaks the protocol of language servers"]);
}

#[test]
fn a_key_that_is_missing() {
    let machine = Machine::new().with("DEEPSEEK_API_KEY", "");
    let dsh = machine.program("dsh", &dsh());
    let runtime = ["--", &*dsh, "--profile", "sdk"];
    let output = machine.doctor(&runtime);
    exits(&output, 0);
    tells(&output, "! key", &["DEEPSEEK_API_KEY is not set", "→ set DEEPSEEK_API_KEY"]);
    assert!(stdout(&output).ends_with("it works, with 1 warning\n"));
    let with_key = machine.doctor(&[&["--env", "DEEPSEEK_API_KEY=sk-secret"][..], &runtime].concat());
    tells(&with_key, "✓ key", &["DEEPSEEK_API_KEY is set"]);
    let another = machine.doctor(&["--", env!("CARGO_BIN_EXE_dsh-wire"), "serve"]);
    assert!(!tells_of_a_key(&another) && stdout(&another).ends_with("all is well\n"), "{}", stdout(&another));
    fs::create_dir(machine.folder.0.join(".dsh")).unwrap();
    machine.folder.file(".dsh/.env", b"A=1\nDEEPSEEK_API_KEY=sk-secret\n");
    tells(&machine.doctor(&runtime), "✓ key", &["in the .env of the home"]);
    let clean = machine.doctor(&[&["--env-clean"][..], &runtime].concat());
    exits(&clean, 0);
    tells(&clean, "! home", &["neither DSH_HOME nor HOME is set"]);
}

#[test]
fn a_home_that_cannot_be_written_to() {
    let machine = Machine::new();
    let file = machine.folder.file("file", b"");
    for home in [file.clone(), format!("{file}/below")] {
        let machine = Machine::new().with("DSH_HOME", home);
        let output = machine.doctor(&["--", "sh", "-c", &ready("cat > /dev/null")]);
        assert_ne!(output.status.code(), Some(0));
        tells(&output, "✗ home", &["the directory that DSH_HOME names cannot be written to", "→ set DSH_HOME"]);
        assert!(stderr(&output).contains("home"));
    }
}

#[test]
fn one_that_does_not_end_well() {
    let script = ready(
        r#"while take; do
            case $line in *shutdown*) exit 3;; esac; answer '"error":{"code":-32603,"message":"unknown"}'; done"#,
    );
    let output = Machine::new().examine(&script);
    exits(&output, 0);
    tells(&output, "! end", &["exited with code 3", "→ after `shutdown` a runtime exits with code 0"]);
}

#[test]
fn one_that_dies_after_the_handshake() {
    let output = Machine::new().examine(&ready("take; echo overworked >&2; exit 7"));
    fails(&output, "methods", 3, &["the runtime exited with code 7", "| overworked"]);
    tells(&output, "! handshake", &["ready after"]);
}

/// The time that is left is less than a refusal may take.
#[test]
fn one_that_answers_nothing_after_the_handshake() {
    let output = Machine::new().doctor(&["--timeout", "2.5", "--", "sh", "-c", &ready("cat > /dev/null")]);
    fails(&output, "methods", 4, &["timed out after 2.5s, while it was asked for methods", "→ it may need longer"]);
    tells(&output, "! handshake", &["ready after"]);
}

#[test]
fn one_that_refuses_nothing() {
    let output = Machine::new().examine(&ready(r#"while take; do answer '"result":{}'; done"#));
    tells(&output, "! methods", &["it answers the method dsh-wire/doctor, which nobody has", "→ an unknown method"]);
}

#[test]
fn one_that_leaves_a_method_without_an_answer() {
    let script = ready(
        r#"while take; do
            case $line in *session/wait*) ;; *) answer '"error":{"code":-32603,"message":"unknown"}';; esac; done"#,
    );
    let output = Machine::new().examine(&script);
    tells(&output, "! methods", &["no answer within 3s to session/wait", "→ what lacks its params"]);
}

#[test]
fn a_folder_is_no_program() {
    let output = dsh_wire(["doctor"]).env("DSH_RUNTIME_BIN", std::env::temp_dir()).output().unwrap();
    exits(&output, 2);
    let said = stdout(&output);
    assert!(said.starts_with("✗ program"), "{said}");
    assert!(said.contains(" is a directory\n") && !said.contains('✓'), "{said}");
}
