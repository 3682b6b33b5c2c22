//! `run` and `inspect` on a terminal: a pseudo-terminal of ours.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Running, dsh_wire, ready, with_runtime};

/// Both ends of a pseudo-terminal with 80 columns.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let (ours, theirs) = crate::faulty::terminal();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(ours), theirs)
}

/// Starts a command with all three streams on a terminal.
fn on_terminal(mut command: Command) -> (Running, Screen) {
    let (ours, theirs) = terminal();
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    (Running(command.env("TERM", "xterm").spawn().unwrap()), Screen::new(ours))
}

/// What a terminal is sent.
struct Screen {
    ours: File,
    /// They come in pieces, which may end within a character.
    bytes: Vec<u8>,
    seen: String,
}

impl Screen {
    fn new(ours: File) -> Self {
        Self { ours, bytes: Vec::new(), seen: String::new() }
    }

    /// Reads until the text has come, or to the end.
    fn read_until(&mut self, text: &str) -> &str {
        let mut piece = [0; 4096];
        while !self.seen.contains(text) {
            match self.ours.read(&mut piece) {
                Ok(0) => break,
                Ok(len) => {
                    self.bytes.extend(&piece[..len]);
                    self.seen = String::from_utf8_lossy(&self.bytes).into_owned();
                }
                // Linux says EIO once nobody holds the other end.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        &self.seen
    }

    /// All that stays on the screen: without the lines that were cleared.
    fn at_the_end(mut self) -> String {
        self.read_until("\0 never");
        let lines = self.seen.split("\r\n").map(|line| line.rsplit("\r\x1b[K").next().unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    }
}

const TURN: &str = r#"
    take; receipt; event step/start '{"turn":1,"step":1}'; say 'Let me look.\nOnce.'
    event tool/call '{"turn":1,"step":1,"callId":"c","name":"bash","arguments":"{\"command\":\"ls\\u001b[2J\"}"}'
    event tool/result '{"turn":1,"step":1,"message":{"role":"tool","source":{"kind":"tool","callId":"c"},"toolCallId":"c",
        "content":[{"type":"text","text":"\na file\nanother"}],"isError":false,"id":"t"}}' | tr -d '\n'; echo
    n=0; while [ ! -e "$GO" ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done
    say 'It is \u001b[31mred\u001b[0m.'
    finish '{"kind":"completed"}'; cat > /dev/null
"#;

#[test]
fn the_answer_and_the_tools_are_seen_as_they_come() {
    let folder = super::Folder::new();
    let go = folder.0.join("go");
    let mut command = with_runtime(&["run", "x"], &ready(TURN));
    command.env("GO", &go);
    let (mut running, mut screen) = on_terminal(command);
    let seen = screen.read_until("running bash 1 s");
    assert!(seen.contains("Let me look.\r\nOnce.\r\n"), "{seen:?}");
    assert!(seen.contains("\x1b[2m"), "colours, and the status line: {seen:?}");
    File::create(&go).unwrap();
    let end = screen.at_the_end();
    assert!(running.0.wait().unwrap().success());
    let cyan = "\x1b[36m●\x1b[0m \x1b[1mbash\x1b[0m";
    let expected = format!(
        "Let me look.\nOnce.\n{cyan} {{\"command\":\"ls\\u001b[2J\"}}\n  \x1b[2ma file …\x1b[0m\nIt is \\u{{1b}}[31mred\\u{{1b}}[0m.\n"
    );
    assert_eq!(end, expected);
}

#[test]
fn text_that_is_streamed_is_shown_once() {
    let chunk = |text: &str| {
        format!(
            r#"event assistant/chunk '{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}';"#
        )
    };
    let script = ready(&format!(
        "take; receipt; {} sleep 0.5; {} say 'Hello world.'; {} say 'Bye.'; finish '{{\"kind\":\"completed\"}}'; cat > /dev/null",
        chunk("Hello "),
        chunk("world."),
        chunk("Bye."),
    ));
    let (mut running, screen) = on_terminal(with_runtime(&["run", "x"], &script));
    assert_eq!(screen.at_the_end(), "Hello world.\nBye.\n");
    assert!(running.0.wait().unwrap().success());
}

#[test]
fn no_colours_where_none_are_wanted() {
    let mut command = dsh_wire(["run", "@bash exit 3"]);
    command.env("NO_COLOR", "1");
    let (mut running, screen) = on_terminal(command);
    let end = screen.at_the_end();
    assert!(running.0.wait().unwrap().success());
    assert_eq!(
        end,
        "● bash {\"command\": \"exit 3\"}\n  [Command finished with exit code 3]\nThe tool has answered.\n"
    );
}

#[test]
fn an_unfinished_line_is_ended_before_an_error() {
    let script = ready(
        r#"take; receipt; event assistant/chunk '{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"half"}}'; exit 4"#,
    );
    let (mut running, screen) = on_terminal(with_runtime(&["run", "x", "--session", "s"], &script));
    let end = screen.at_the_end();
    assert!(
        end.starts_with("half\nerror: cannot finish the run on session \"s\": the runtime exited with code 4\n"),
        "{end:?}"
    );
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
}

/// A session of its own, so that the terminal sends the signal.
#[cfg(target_os = "linux")]
#[test]
fn the_key_ctrl_c_is_an_interruption() {
    let mut command = Command::new("setsid");
    command.args(["--ctty", env!("CARGO_BIN_EXE_dsh-wire"), "run", "@slow 60 never"]);
    let (mut running, mut screen) = on_terminal(command);
    screen.read_until("waiting for the model");
    screen.ours.write_all(b"\x03").unwrap();
    let end = screen.at_the_end();
    assert!(end.contains("aborted: interrupted\n"), "{end:?}");
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
}

/// A session of its own, so that the tap holds the terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_reaches_the_runtime_behind_the_tap_once() {
    let folder = super::Folder::new();
    let log = folder.file("log", b"");
    let script = "n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n -lt 1 ]; do sleep 0.02; done
        sleep 0.1; sleep 0.1; sleep 0.1; exit $((40 + n))";
    type Send = fn(&Running, &mut Screen);
    let sent: [(&str, Send); 3] = [
        ("by the key", |_, screen| screen.ours.write_all(b"\x03").unwrap()),
        ("to the tap", |tap, _| kill_process(Pid::from_child(&tap.0), Signal::INT).unwrap()),
        ("to its group", |tap, _| kill_process_group(Pid::from_child(&tap.0), Signal::INT).unwrap()),
    ];
    for (how, send) in sent {
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_dsh-wire"), "tap", "--log", &log, "--", "sh", "-c", script]);
        let (mut running, mut screen) = on_terminal(command);
        screen.read_until("ready");
        send(&running, &mut screen);
        screen.at_the_end();
        assert_eq!(running.0.wait().unwrap().code(), Some(41), "{how}");
    }
}

const ANSWER: &str = r#"{"id":"a","error":{"code":1,"message":"no"}}"#;

#[test]
fn the_view_of_the_tap_has_colours_where_they_are_wanted() {
    let folder = super::Folder::new();
    let log = folder.file("log", b"");
    for (name, value, colours) in [("UNSET", "", true), ("NO_COLOR", "1", false), ("TERM", "dumb", false)] {
        let (ours, theirs) = terminal();
        let mut command = dsh_wire(["tap", "--print", "--log", &log, "--", "sh", "-c", &format!("echo '{ANSWER}'")]);
        // stdout is not the terminal: what passes is for the client.
        command.env("TERM", "xterm").env(name, value).stdout(Stdio::piped()).stderr(theirs);
        let mut running = Running(command.spawn().unwrap());
        drop(command);
        let end = Screen::new(ours).at_the_end();
        let mut passed = String::new();
        running.0.stdout.take().unwrap().read_to_string(&mut passed).unwrap();
        assert!(running.0.wait().unwrap().success());
        assert_eq!(passed, format!("{ANSWER}\n"));
        let row = end.lines().nth(1).unwrap();
        assert_eq!(row.contains("\x1b[31mresponse    \x1b[0m"), colours, "{name}: {row:?}");
        assert_eq!(end.contains('\x1b'), colours, "{name}: {end:?}");
        assert!(row.contains("error: no"), "{row:?}");
        assert!(colours || row.chars().count() <= 80, "{row}");
    }
}

#[test]
fn the_checklist_of_the_doctor_has_colours() {
    let mut command = dsh_wire(["doctor", "--timeout", "10", "--", "sh", "-c", "exit 1"]);
    command.env("DEEPSEEK_API_KEY", "k");
    let (mut running, screen) = on_terminal(command);
    let end = screen.at_the_end();
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
    assert!(end.contains("\x1b[32m✓\x1b[0m program"), "{end:?}");
    assert!(end.contains("\x1b[31m✗\x1b[0m handshake"), "{end:?}");
}

const DROPPED: &[u8] = b"{\"method\":\"session.status\",\"params\":{\"sessionId\":\"a-session-with-a-long-id\",\"status\":\"\xe4\xbd\xa0\xe5\xa5\xbd\"}}\n\
    {\"id\":\"req_0123456789abcdef\",\"error\":{\"message\":\"no\"}}\nnoise\n";

#[test]
fn a_table_has_colours_and_fits_the_terminal() {
    let folder = super::Folder::new();
    let file = folder.file("stream", DROPPED);
    let (mut running, screen) = on_terminal(dsh_wire(["inspect", &file]));
    let end = screen.at_the_end();
    assert!(running.0.wait().unwrap().success());
    let expected = "\x1b[1m  line  kind            bytes  session   what\x1b[0m
     1  notification       95  a-se…-id  session.status  你好
     2  \x1b[31mresponse    \x1b[0m       54            \x1b[31merror: no\x1b[0m
     3  \x1b[31mdropped     \x1b[0m        5  \x1b[31mnot JSON at byte 1: no value begins like this\x1b[0m  n\x1b[31m▸\x1b[0moise
3 lines, 157 bytes: 0 requests, 1 notification, 1 response, 1 dropped, 0 blank
";
    assert_eq!(end, expected);
}

#[test]
fn a_table_without_colours_where_none_are_wanted() {
    let folder = super::Folder::new();
    let file = folder.file("stream", DROPPED);
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (ours, theirs) = terminal();
        let mut command = dsh_wire(["inspect", &file]);
        command.env("TERM", "xterm").env(name, value).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let mut running = Running(command.spawn().unwrap());
        drop(command);
        let end = Screen::new(ours).at_the_end();
        assert!(running.0.wait().unwrap().success());
        assert!(end.contains("     3  dropped") && !end.contains('\x1b'), "{end:?}");
    }
}

#[test]
fn rows_are_cut_to_the_terminal() {
    let folder = super::Folder::new();
    let line = format!("{{\"method\":\"m\",\"params\":{{\"status\":\"{}\"}}}}\n", "\u{4f60}".repeat(100));
    let file = folder.file("stream", line.as_bytes());
    let (mut running, screen) = on_terminal(dsh_wire(["inspect", &file]));
    let end = screen.at_the_end();
    assert!(running.0.wait().unwrap().success());
    let row = end.lines().nth(1).unwrap();
    let columns = row.chars().count() + row.matches('\u{4f60}').count();
    assert!(row.ends_with('…') && (79..=80).contains(&columns), "{columns} columns: {row}");
}

/// The figures come at the end, so until then there is a line that tells how far it is.
#[test]
fn progress_is_seen_on_a_terminal_only() {
    let (ours, theirs) = terminal();
    let mut command = dsh_wire(["inspect", "--stats"]);
    command.env("TERM", "xterm").stdin(Stdio::piped()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut running = Running(command.spawn().unwrap());
    drop(command);
    let mut stdin = running.0.stdin.take().unwrap();
    let mut screen = Screen::new(ours);
    let feeding = std::thread::spawn(move || {
        // Until the line has been seen, which closes the pipe's other end with the command.
        let start = std::time::Instant::now();
        while start.elapsed() < super::bound() && stdin.write_all(b"{\"id\":1}\n").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let seen = screen.read_until("B/s");
    assert!(seen.starts_with("\r\x1b[K\x1b[2m") && seen.contains(" read, "), "{seen:?}");
    running.0.kill().unwrap();
    feeding.join().unwrap();

    let mut command = dsh_wire(["inspect", "--stats"]);
    command.stdin(Stdio::piped());
    let output = super::with_stdin(command, &b"{\"id\":1}\n".repeat(60), 9);
    assert_eq!(super::stderr(&output), "");
}
