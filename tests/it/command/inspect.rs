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
    let expected = "  line  kind              bytes  session       id            what
     1  request             115  s1            \"req_0…cdef\"  session/prompt
     2  notification         82  s1                          turn/end
     3  notification         79  \\u{1b}[31m                  session.status  idle
     4  response             53                7             error: no\\nsuch (code -32603)
     5  dropped              21  not JSON at byte 20: more text after the value  {\"id\":7,\"result\":0} ▸x
5 lines, 355 bytes: 1 request, 2 notifications, 1 response, 1 dropped, 0 blank
";
    assert_eq!(stdout(&output), expected);
}

/// A conversation of two sessions, with all that a recording may hold.
const RECORDING: &str = r#"{"t": 0.001, "dir": "c2s", "frame": "{\"id\":1.0,\"method\":\"initialize\",\"params\":{\"provider\":\"p\",\"model\":\"m\"}}"}
{"t": 0.051, "dir": "s2c", "frame": "{\"id\":1,\"result\":{}}"}
{"t": 0.060, "dir": "c2s", "frame": "{\"id\":\"p\",\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s1\",\"contentBlocks\":[{\"type\":\"text\",\"text\":\"hello\\n\"}]}}"}
{"t": 0.061, "dir": "s2c", "frame": "{\"method\":\"session.event\",\"params\":{\"sessionId\":\"s1\",\"event\":{\"type\":\"tool/call\",\"seq\":1,\"time\":1,\"data\":{\"name\":\"bash\",\"arguments\":\"{}\"}}}}"}
{"t": 0.062, "dir": "err", "frame": "warning: disk"}
{"t": 0.063, "dir": "s2c", "frame": "noise"}
{"t": 0.064, "dir": "s2c", "frame": "{\"method\":\"subagent.started\",\"params\":{\"parentSessionId\":\"s1\",\"childSessionId\":\"s2\"}}"}
{"t": 1.5, "dir": "s2c", "frame": "{\"id\":\"\\u0070\",\"error\":{\"code\":-32603,\"message\":\"no\"}}"}
{"t": 1.6, "dir": "c2s", "frame": "  "}
{"t": 1.7, "dir": "s2c", "lost": 70000}
{"t": 1.8, "dir": "c2s", "frame": "{\"id\":2,\"method\":\"shutdown\"}"}
{"t": 1.9, "dir": "s2c", "frame": "{\"id\":2,\"re", "eol": false}
{"t": 2.0, "dir": "s2"#;

/// The table of the recording, its rows by their line numbers.
#[track_caller]
fn shows(args: &[&str], expected: &[&str]) {
    for piece in [RECORDING.len(), 100] {
        let args = ["inspect"].iter().chain(args).copied();
        let output = with_stdin(dsh_wire(args), RECORDING.as_bytes(), piece);
        exits(&output, 0);
        let table = stdout(&output);
        let rows: Vec<_> = table.lines().skip(1).filter(|row| row.starts_with(' ')).map(str::trim_start).collect();
        let numbers: Vec<_> = rows.iter().map(|row| row.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(numbers, expected, "{table}");
    }
}

#[test]
fn a_recording_is_told_with_times_sessions_and_what_each_response_answers() {
    let output = with_stdin(dsh_wire(["inspect"]), RECORDING.as_bytes(), 4096);
    exits(&output, 0);
    let expected = r#"  line       time     kind              bytes    latency  session       id            what
     1      0.001  →  request              70                           1.0           initialize  p m
     2      0.051  ←  response             20    50.0 ms                1             initialize  {}
     3      0.060  →  request             115             s1            "p"           session/prompt  hello\n
     4      0.061  ←  notification        140             s1                          tool/call  bash  {}
     5      0.062  !  stderr               13  warning: disk
     6      0.063  ←  dropped               5  not JSON at byte 1: no value begins like this  n▸oise
     7      0.064  ←  notification         85             s1                          subagent.started  s2
     8      1.500  ←  response             54     1.44 s  s1            "\u0070"      session/prompt  error: no (code -32603)
    10      1.700  ←  lost              70000  70000 bytes that the recorder could not keep
    11      1.800  →  request              28                           2             shutdown
    12      1.900  ←  dropped              11  the stream ended before the line did  {"id":2,"re
    13                damaged              21  no entry of a recording: the last line breaks off  {"t": 2.0, "dir": "s2
13 lines, BYTES bytes: 3 requests, 2 notifications, 2 responses, 2 dropped, 1 blank, 1 stderr, 1 lost, 1 damaged
"#;
    assert_eq!(stdout(&output), expected.replace("BYTES", &RECORDING.len().to_string()));
}

#[test]
fn filters_choose_rows() {
    shows(&["--kind", "request"], &["1", "3", "11"]);
    shows(&["--kind", "response"], &["2", "8"]);
    shows(&["--kind", "error", "--kind", "dropped"], &["6", "8", "12"]);
    shows(&["--kind", "stderr", "--kind", "lost", "--kind", "damaged"], &["5", "10", "13"]);
    shows(&["--method", "session/*"], &["3", "8"]);
    shows(&["--method", "session*", "--kind", "notification"], &["4"]);
    shows(&["--method", "initialize", "--method", "shut????"], &["1", "2", "11"]);
    shows(&["--session", "s1"], &["3", "4", "7", "8"]);
    shows(&["--session", "s2"], &["7"]);
    shows(&["--session", "s"], &[]);
    shows(&["--event", "tool/*"], &["4"]);
    shows(&["--event", "tool/*", "--session", "s2"], &[]);
}

#[test]
fn filters_hold_for_json_and_the_summary_tells_how_much_they_left() {
    let args = ["inspect", "--json", "--kind", "lost", "--kind", "stderr", "--method", "x"];
    let output = with_stdin(dsh_wire(&args[..6]), RECORDING.as_bytes(), 4096);
    let rows = stdout(&output);
    let (first, rest) = rows.split_once('\n').unwrap();
    assert_eq!(first, r#"{"line":5,"t":0.062000,"dir":"err","kind":"stderr","text":"warning: disk"}"#);
    let (second, summary) = rest.split_once('\n').unwrap();
    assert_eq!(second, r#"{"line":10,"t":1.700000,"dir":"s2c","kind":"lost","bytes":70000}"#);
    assert!(
        summary.ends_with(",\"dropped\":2,\"blank\":1,\"stderr\":1,\"lost\":1,\"damaged\":1,\"shown\":2}\n"),
        "{summary}"
    );
    let output = with_stdin(dsh_wire(args), RECORDING.as_bytes(), 4096);
    assert_eq!(stdout(&output).lines().count(), 1, "each option narrows");
}

/// The first line decides, and `--format` overrules it.
#[test]
fn the_format_is_found_out() {
    let kinds = |args: &[&str], stream: &str| -> Vec<String> {
        let args = ["inspect", "--json"].iter().chain(args).copied();
        let output = with_stdin(dsh_wire(args), stream.as_bytes(), 5);
        exits(&output, 0);
        let kind = |row: &str| {
            row.split_once("\"kind\":\"").and_then(|(_, rest)| rest.split_once('"')).map(|(kind, _)| kind.to_owned())
        };
        stdout(&output).lines().filter_map(kind).collect()
    };
    let entry = r#"{"dir":"s2c","frame":"{\"id\":1}","t":0}"#;
    assert_eq!(kinds(&[], entry), ["response", "summary"]);
    assert_eq!(kinds(&[], &format!("\n \r\n{entry}\n{{\"id\":1}}\n")), ["response", "damaged", "summary"]);
    assert_eq!(kinds(&[], &format!("{{\"id\":1}}\n{entry}\n")), ["response", "dropped", "summary"]);
    assert_eq!(kinds(&["--format", "raw"], &format!("{entry}\n")), ["dropped", "summary"]);
    assert_eq!(kinds(&["--format", "recording"], "{\"id\":1}\n"), ["damaged", "summary"]);
}

#[test]
fn stats_tell_latencies_sizes_and_reasons() {
    let output = with_stdin(dsh_wire(["inspect", "--stats"]), RECORDING.as_bytes(), 4096);
    exits(&output, 0);
    let expected = r#"latency of                        answered    median      90 %      99 %   longest  unanswered
initialize                               1   50.0 ms   50.0 ms   50.0 ms   50.0 ms
session/prompt                           1    1.44 s    1.44 s    1.44 s    1.44 s
shutdown                                 0                                                   1

       bytes   share      lines      mean  what
       70000  99.2 %          1   70.0 kB  lost
         140   0.2 %          1     140 B  event  tool/call
         115   0.2 %          1     115 B  request  session/prompt
          85   0.1 %          1      85 B  notification  subagent.started
          70   0.1 %          1      70 B  request  initialize
          54   0.1 %          1      54 B  response  session/prompt
          28   0.0 %          1      28 B  request  shutdown
          21   0.0 %          1      21 B  damaged
          20   0.0 %          1      20 B  response  initialize
          16   0.0 %          2       8 B  dropped
          13   0.0 %          1      13 B  stderr

       bytes       line  largest frames
         140          4  notification  tool/call
         115          3  request  session/prompt
          85          7  notification  subagent.started
          70          1  request  initialize
          54          8  response  session/prompt
          28         11  request  shutdown
          20          2  response  initialize

       bytes      lines  dropped, by reason
           5          1  not JSON: no value begins like this
          11          1  the stream ended before the line did

"#;
    let told = stdout(&output);
    let (figures, summary) = told.rsplit_once("13 lines, ").unwrap();
    assert_eq!(figures, expected);
    assert!(summary.ends_with("1 damaged\n"));
    let output = with_stdin(dsh_wire(["inspect", "--stats", "--method", "init*"]), RECORDING.as_bytes(), 4096);
    let told = stdout(&output);
    assert!(told.contains("\ninitialize") && !told.contains("shutdown") && told.ends_with("; 2 shown\n"), "{told}");
}

#[test]
fn one_line_is_no_plural() {
    let output = with_stdin(dsh_wire(["inspect"]), b"{\"id\":1}\n", 9);
    let summary = "1 line, 9 bytes: 0 requests, 0 notifications, 1 response, 0 dropped, 0 blank";
    assert_eq!(stdout(&output).lines().last(), Some(summary));
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
        assert_eq!(stdout(&output), "", "not even a heading");
    }
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = dsh_wire(["inspect"]).stdout(full).output().unwrap();
    exits(&output, 1);
    assert!(stderr(&output).starts_with("error: cannot write the output: "));
}

fn summary(recording: &[u8]) -> (String, String) {
    let output = with_stdin(dsh_wire(["inspect"]), recording, 10_000);
    exits(&output, 0);
    let text = stdout(&output);
    (text.clone(), text.lines().last().unwrap().to_owned())
}

/// The first frame is longer than what is read at once, and blank lines stand before it.
#[test]
fn a_recording_is_known_by_its_first_line_however_long_it_is() {
    let text = "x".repeat(200_000);
    let entry =
        format!(r#"{{"t":0,"dir":"c2s","frame":"{{\"id\":1,\"method\":\"m\",\"params\":{{\"a\":\"{text}\"}}}}"}}"#);
    for before in ["", "\u{feff}", "\n\n", " "] {
        let (text, summary) = summary(format!("{before}{entry}\n").as_bytes());
        assert!(text.starts_with("  line       time     kind"), "{}", &text[..200]);
        assert!(summary.contains("1 request, 0 notifications"), "{before:?}: {summary}");
    }
}

#[test]
fn a_recording_that_breaks_off_is_shown_up_to_there() {
    let entry = r#"{"t":0,"dir":"c2s","frame":"{\"id\":1,\"method\":\"m\"}"}"#;
    let (text, last) = summary(format!("{entry}\n{{\"t\":1,\"di").as_bytes());
    assert!(text.contains("no entry of a recording: the last line breaks off  {\"t\":1,\"di\n"), "{text}");
    assert!(last.contains("1 request") && last.ends_with(", 1 damaged"), "{last}");
    // The last one that is whole is good without its line end.
    let expected =
        format!("1 line, {} bytes: 1 request, 0 notifications, 0 responses, 0 dropped, 0 blank", entry.len());
    assert_eq!(summary(entry.as_bytes()).1, expected);
}

#[test]
fn pieces_of_a_line_are_one_line() {
    let pieces = r#"{"t":1,"dir":"c2s","frame":"{\"id\":1,\"meth","eol":false}
{"t":1.5,"dir":"err","frame":"between","eol":false}
{"t":2,"dir":"c2s","frame":"od\":\"m\"}"}
{"t":2.25,"dir":"s2c","frame":"{\"id\":1,\"result\":3}"}
{"t":3,"dir":"s2c","frame":"lost be","eol":false}
{"t":3,"dir":"s2c","lost":5}
{"t":3,"dir":"s2c","frame":"half","eol":false}
noise
"#;
    let (text, last) = summary(pieces.as_bytes());
    let rows: Vec<_> = text.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(rows[0].starts_with("3 2.000 → request 21") && rows[0].ends_with("1 m"), "{text}");
    assert!(rows[1].starts_with("4 2.250 ← response") && rows[1].contains("250 ms"), "{text}");
    assert!(rows[2].starts_with("5 3.000 ← dropped"), "{text}");
    assert!(rows[3].starts_with("6 3.000 ← lost 5"), "{text}");
    assert!(rows[4].starts_with("2 1.500 ! stderr") && rows[5].starts_with("7 3.000 ← dropped"), "{text}");
    assert!(rows[6].starts_with("8 damaged"), "{text}");
    assert!(last.contains("1 request, 0 notifications, 1 response, 2 dropped"), "{last}");
}

/// What a terminal would obey is written as an escape, and the JSON says the same.
#[test]
fn json_rows_command_no_terminal() {
    let params = "{\"text\":\"a\u{7f}b\u{9b}2Jc\u{202e}d\u{2028}e\"}";
    let line = format!("{{\"id\":\"\u{85}\",\"method\":\"\u{9c}\",\"params\":{params}}}\n");
    let output = with_stdin(dsh_wire(["inspect", "--json"]), line.as_bytes(), 1 << 20);
    exits(&output, 0);
    let rows = stdout(&output);
    assert!(rows.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{rows:?}");
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((row["id"].as_str(), row["method"].as_str()), (Some("\u{85}"), Some("\u{9c}")));
    assert_eq!(row["params"], serde_json::from_str::<serde_json::Value>(params).unwrap());
}
