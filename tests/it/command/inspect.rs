//! `inspect` on real bytes. That it agrees with the reference transport is shown by the interop suite.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::{dsh_wire, exits, stderr, stdout, with_stdin};

/// The stream, as it is cut in no way and in the worst way, gives these rows.
#[track_caller]
fn check(stream: &[u8], expected: &[&str]) {
    for piece in [stream.len().max(1), 1] {
        let output = with_stdin(dsh_wire(["inspect", "--json", "--limit", "100"]), stream, piece);
        exits(&output, 0);
        let rows = stdout(&output);
        let (rows, summary) = rows.trim_end().rsplit_once('\n').unwrap_or(("", rows.trim_end()));
        assert!(summary.starts_with(r#"{"kind":"summary","#), "{summary}");
        assert_eq!(rows.split('\n').filter(|row| !row.is_empty()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn frames_come_out_as_they_are_on_the_wire() {
    check(
        b"{\"id\":1.0,\"method\":\"\\u0061\\ud83d\",\"params\":{ \"x\" : 1e2 }}\n\
          {\"method\":\"m\",\"params\":[1]}\r\n\
          {\"id\":\"\\u0041\",\"result\":[1,\r 2]}\n\
          {\"id\":-0}\n",
        &[
            r#"{"line":1,"kind":"request","id":1.0,"method":"a\ud83d","params":{ "x" : 1e2 }}"#,
            r#"{"line":2,"kind":"notification","method":"m","params":{}}"#,
            "{\"line\":3,\"kind\":\"response\",\"id\":\"\\u0041\",\"result\":[1,\r 2]}",
            r#"{"line":4,"kind":"response","id":-0,"result":null}"#,
        ],
    );
}

#[test]
fn error_members_are_read_as_the_reference_does() {
    check(
        br#"{"id":1,"error":{"code":-32603,"message":"\u006eo\n","data":{"a":"\u0061"}}}
{"id":1,"error":{"code":"x","message":7,"data":null,"more":1}}
{"id":1,"error":[]}
{"id":1,"error":"no","result":2}
"#,
        &[
            r#"{"line":1,"kind":"response","id":1,"error":{"code":-32603,"message":"no\n","data":{"a":"\u0061"}}}"#,
            r#"{"line":2,"kind":"response","id":1,"error":{"message":"JSON-RPC error","data":null}}"#,
            r#"{"line":3,"kind":"response","id":1,"error":{"message":"JSON-RPC error"}}"#,
            r#"{"line":4,"kind":"response","id":1,"result":2}"#,
        ],
    );
}

#[test]
fn dropped_lines_are_told_with_a_reason() {
    let long = "x".repeat(101);
    let stream = format!(
        "hello\n\n  \t\n[{{\"id\":1}}]\nContent-Length: 20\n{{\"id\":1,}}\n\u{feff}{{\"id\":1}}{{\"id\":2}}\n{long}\n{{\"id\":1}}"
    );
    let dropped = |line: u8, reason: &str, bytes: usize, prefix: &str| {
        format!(r#"{{"line":{line},"kind":"dropped","reason":"{reason}","bytes":{bytes},"prefix":"{prefix}"}}"#)
    };
    check(
        stream.as_bytes(),
        &[
            &dropped(1, "not JSON at byte 0: no value begins like this", 5, "hello"),
            &dropped(4, "a JSON array; batches are not part of this protocol", 10, r#"[{\"id\":1}]"#),
            &dropped(5, "a header of another framing; frames are lines of JSON here", 18, "Content-Length: 20"),
            &dropped(6, "not JSON at byte 8: a member name in double quotes belongs here", 9, r#"{\"id\":1,}"#),
            &dropped(7, "not JSON at byte 11: more text after the value", 19, "\u{feff}{\\\"id\\\":1}{\\\"id\\\":2}"),
            &dropped(8, "longer than the line limit of 100 bytes", 101, &long[..100]),
            &dropped(9, "the stream ended before the line did", 8, r#"{\"id\":1}"#),
        ],
    );
}

#[test]
fn broken_utf8_is_repaired() {
    check(
        b"{\"method\":\"\xff\xfe\"}\n\xff{}\n",
        &[
            "{\"line\":1,\"kind\":\"notification\",\"method\":\"\u{fffd}\u{fffd}\",\"params\":{}}",
            "{\"line\":2,\"kind\":\"dropped\",\"reason\":\"not JSON at byte 0: no value begins like this\",\"bytes\":3,\
             \"prefix\":\"\u{fffd}{}\"}",
        ],
    );
}

#[test]
fn nothing_is_no_failure() {
    check(b"", &[]);
    check(b"\n \r\n", &[]);
}

#[test]
fn the_summary_counts() {
    let output = with_stdin(
        dsh_wire(["inspect", "--json"]),
        b"{\"id\":1}\n\n{\"method\":\"m\"}\nx\n{\"id\":1,\"method\":\"\"}\n",
        9,
    );
    let summary =
        r#"{"kind":"summary","bytes":48,"lines":5,"requests":1,"notifications":1,"responses":1,"dropped":1,"blank":1}"#;
    assert_eq!(stdout(&output).lines().last(), Some(summary));
}

#[test]
fn people_get_a_table_that_cannot_command_their_terminal() {
    let stream = br#"{"jsonrpc":"2.0","id":"req_0123456789abcdef0123456789abcdef","method":"session/prompt","params":{"sessionId":"s1"}}
{"method":"session.event","params":{"sessionId":"s1","event":{"type":"turn/end"}}}
{"method":"session.status","params":{"sessionId":"\u001b[31m","status":"idle"}}
{"id":7,"error":{"code":-32603,"message":"no\nsuch"}}
{"id":7,"result":0} x
"#;
    let output = with_stdin(dsh_wire(["inspect", "-"]), stream, 7);
    exits(&output, 0);
    let expected = "  line  kind              bytes  id                  what
     1  request             115  \"req_0123…9abcdef\"  session/prompt  s1
     2  notification         82                      session.event  s1  turn/end
     3  notification         79                      session.status  \\u{1b}[31m  idle
     4  response             53  7                   error: no\\nsuch (code -32603)
     5  dropped              21                      not JSON at byte 20: more text after the value  {\"id\":7,\"result\":0} x
5 lines, 355 bytes: 1 requests, 2 notifications, 1 responses, 1 dropped, 0 blank
";
    assert_eq!(stdout(&output), expected);
}

#[test]
fn rows_come_out_while_the_input_is_open() {
    let mut child = dsh_wire(["inspect", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    for line in 1..=3 {
        stdin.write_all(b"{\"id\":1}\n").unwrap();
        let mut row = String::new();
        rows.read_line(&mut row).unwrap();
        assert_eq!(row, format!("{{\"line\":{line},\"kind\":\"response\",\"id\":1,\"result\":null}}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = dsh_wire(["inspect", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    while stdin.write_all(b"{\"id\":1}\n").is_ok() {}
    let output = child.wait_with_output().unwrap();
    exits(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn an_input_that_cannot_be_read_is_named() {
    for (file, message) in [("/no/such/file", "cannot open '/no/such/file'"), ("/", "cannot read '/'")] {
        let output = dsh_wire(["inspect", file]).output().unwrap();
        exits(&output, 2);
        assert!(stderr(&output).starts_with(&format!("error: {message}: ")), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1);
    }
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = dsh_wire(["inspect"]).stdout(full).output().unwrap();
    exits(&output, 1);
    assert!(stderr(&output).starts_with("error: cannot write the output: "));
}
