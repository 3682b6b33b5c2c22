//! `run` without a terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::{Folder, dsh_wire, exits, ready, stderr, stdout, with_runtime, with_stdin};

#[track_caller]
fn prints(args: &[&str], expected: &str) {
    let output = dsh_wire(args).output().unwrap();
    exits(&output, 0);
    assert_eq!((&*stdout(&output), &*stderr(&output)), (expected, ""));
}

#[test]
fn a_pipe_gets_the_final_text() {
    prints(&["run", "hello"], "echo: hello\n");
    prints(&["run", "@bash echo one && @say done"], "done\n");
    prints(&["run", "@say two\nlines"], "two\nlines\n");
}

#[test]
fn the_prompt_may_come_on_stdin() {
    let script = ready(r#"take; printf '%s' "$line" >&2; exit 1"#);
    let output = with_stdin(with_runtime(&["run", "-"], &script), "first\n\u{4f60}\n\n".as_bytes(), 1);
    let blocks = "\"contentBlocks\":[{\"type\":\"text\",\"text\":\"first\\n\u{4f60}\\n\"}]";
    assert!(stderr(&output).contains(blocks), "{}", stderr(&output));
    let output = with_stdin(dsh_wire(["run", "-"]), b"\xff", 1);
    exits(&output, 2);
}

/// Such as a list. Only a dash that stands alone is stdin.
#[test]
fn a_prompt_may_begin_with_a_dash() {
    prints(&["run", "- one\n- two"], "echo: - one\n- two\n");
}

#[test]
fn json_gives_a_line_a_notification_and_the_result() {
    let output = dsh_wire(["run", "--json", "--session", "s1", "say \u{1f600}"]).output().unwrap();
    exits(&output, 0);
    let rows: Vec<Value> = stdout(&output).lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let (result, rows) = rows.split_last().unwrap();
    let expected = serde_json::json!({
        "kind": "result", "sessionId": "s1", "finalResponse": "echo: say \u{1f600}", "finishReason": "completed",
    });
    assert_eq!(*result, expected);
    assert!(rows.iter().all(|row| row["kind"] == "notification" && row["params"]["sessionId"] == "s1"));
    let (first, last) = (&rows[0], rows.last().unwrap());
    assert_eq!(
        (&first["method"], &first["params"]["event"]["type"]),
        (&"session.event".into(), &"agent/inbox/spliced".into())
    );
    assert_eq!((&last["method"], &last["params"]["status"]), (&"session.status".into(), &"idle".into()));
}

#[test]
fn json_comes_as_it_happens_and_as_it_is() {
    let script = ready(
        r#"take; receipt; event x '{ "n" : 1.0, "s":"\ud83d" }'; read -r go; finish '{"kind":"completed"}'; cat > /dev/null"#,
    );
    let mut child = with_runtime(&["run", "--json", "hello"], &script).stdout(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = rows.find(|row| row.as_ref().unwrap().contains(r#""data":{ "n" : 1.0, "s":"\ud83d" }"#));
    assert!(seen.is_some(), "it came while the turn was waiting");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_session_can_be_resumed_in_another_process() {
    let home = Folder::new();
    let run = |args: &[&str]| dsh_wire(args).env("DSH_HOME", &home.0).output().unwrap();
    exits(&run(&["run", "--session", "s1", "one"]), 0);
    let again = run(&["run", "--session", "s1", "two"]);
    exits(&again, 1);
    assert!(stderr(&again).contains("already exists"), "{}", stderr(&again));
    let resumed = run(&["run", "--session", "s1", "--resume", "two"]);
    exits(&resumed, 0);
    assert_eq!(stdout(&resumed), "echo: two\n");
    exits(&run(&["run", "--session", "other", "--resume", "two"]), 1);
}

#[test]
fn the_route_is_in_the_handshake() {
    let script = ready(r#"printf '%s' "$line" >&2; exit 1"#);
    let output = with_runtime(
        &[
            "run",
            "x",
            "--cwd",
            "/",
            "--provider",
            "p",
            "--model",
            "m",
            "--max-tokens",
            "7",
            "--reasoning-effort",
            "max",
        ],
        &script,
    )
    .output()
    .unwrap();
    let params = r#""params":{"cwd":"/","provider":"p","model":"m","reasoningEffort":"max","maxTokens":7}"#;
    assert!(stderr(&output).contains(params), "{}", stderr(&output));
    let output = with_runtime(&["run", "x"], &script).current_dir("/").output().unwrap();
    let params = r#""params":{"cwd":"/","provider":"deepseek-official","model":"deepseek-v4-flash"}"#;
    assert!(stderr(&output).contains(params), "{}", stderr(&output));
}

#[test]
fn images_go_with_the_prompt() {
    let folder = Folder::new();
    let png = folder.file("a", b"\x89PNG\r\n\x1a\nrest");
    let jpeg = folder.file("b.png", b"\xff\xd8\xff\xe0");
    let script = ready(r#"take; printf '%s' "$line" >&2; exit 1"#);
    let output = with_runtime(&["run", "look", "--image", &png, "--image", &jpeg], &script).output().unwrap();
    let blocks = concat!(
        r#"[{"type":"text","text":"look"},{"type":"image","data":"iVBORw0KGgpyZXN0","mimeType":"image/png"},"#,
        r#"{"type":"image","data":"/9j/4A==","mimeType":"image/jpeg"}]"#,
    );
    assert!(stderr(&output).contains(blocks), "{}", stderr(&output));
}

#[test]
fn an_image_that_is_too_large_or_none_is_refused() {
    let folder = Folder::new();
    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize((16 << 20) + 1, 0);
    for (image, why) in [
        (folder.file("large.png", &large), "it is larger than 16 MiB"),
        ("/dev/zero".into(), "it is larger than 16 MiB"),
        (folder.file("text.png", b"text"), "it is neither PNG, JPEG, GIF nor WebP"),
    ] {
        let output = dsh_wire(["run", "look", "--image", &image]).output().unwrap();
        exits(&output, 2);
        assert_eq!(stderr(&output), format!("error: cannot use the image '{image}': {why}\n"));
    }
}

#[test]
fn the_runtime_gets_the_environment_that_was_asked_for() {
    let script = r#"env | sed 's/^/is /' >&2; exit 1"#;
    let names = |args: &[&str]| {
        let output = with_runtime(&[&["run", "x"], args].concat(), script)
            .env("DSH_WIRE_TEST_A", "1")
            .env("DSH_WIRE_TEST_B", "2")
            .output()
            .unwrap();
        let text = stderr(&output);
        let mut ours: Vec<_> =
            text.lines().filter_map(|line| line.trim().strip_prefix("is DSH_WIRE_TEST_")).map(str::to_owned).collect();
        ours.sort_unstable();
        ours.join(" ")
    };
    assert_eq!(names(&[]), "A=1 B=2");
    assert_eq!(names(&["--env", "DSH_WIRE_TEST_B=x=y", "--env", "DSH_WIRE_TEST_C="]), "A=1 B=x=y C=");
    let clean = ["--env-clean", "--pass-env", "DSH_WIRE_TEST_A", "--pass-env", "DSH_WIRE_TEST_X", "--env"];
    assert_eq!(names(&[&clean[..], &["DSH_WIRE_TEST_D=4"]].concat()), "A=1 D=4");
}

#[test]
fn stderr_is_kept_or_passed_on() {
    let script = "echo first >&2; echo last >&2; exit 1";
    let output = with_runtime(&["run", "x"], script).output().unwrap();
    assert!(stderr(&output).ends_with("  stderr of the runtime:\n    first\n    last\n"), "{}", stderr(&output));
    let script = "echo from the runtime >&2; exit 1";
    let output = with_runtime(&["run", "x"], script).output().unwrap();
    assert_eq!(
        stderr(&output).matches("from the runtime").count(),
        1,
        "a single line is told once: {}",
        stderr(&output)
    );
    let output = with_runtime(&["run", "x", "--stderr", "inherit"], script).output().unwrap();
    assert!(stderr(&output).starts_with("from the runtime\nerror: "), "{}", stderr(&output));
}

#[test]
fn verbose_tells_what_is_done() {
    let output = dsh_wire(["run", "-v", "hello"]).output().unwrap();
    exits(&output, 0);
    assert_eq!(stdout(&output), "echo: hello\n");
    let notes = stderr(&output);
    for part in
        ["note: started the embedded runtime\n", " is ready after ", "note: request shutdown: ", "exited with code 0\n"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn verbose_tells_of_answers_that_nobody_waits_for() {
    let script = ready(r#"answer '"result":{}'; take; receipt; finish '{"kind":"completed"}'; cat > /dev/null"#);
    let output = with_runtime(&["run", "-v", "hello"], &script).output().unwrap();
    exits(&output, 0);
    let notes = stderr(&output);
    assert!(notes.contains("note: responses that no call waited for: 1\n"), "{notes}");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let folder = Folder::new();
    let file = folder.file("pid", b"");
    let script = ready(&format!(
        "echo $$ > {file}; take; receipt; (while say more; do sleep 0.01; done) & cat > /dev/null; kill $!"
    ));
    let mut child = with_runtime(&["run", "--json", "hello"], &script)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    rows.read_line(&mut String::new()).unwrap();
    drop(rows);
    let output = child.wait_with_output().unwrap();
    exits(&output, 0);
    assert_eq!(stderr(&output), "");
    let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "the runtime is left behind");
}
