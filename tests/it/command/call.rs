//! `call`: one request, its result verbatim.

use super::{RUNTIME, dsh_wire, exits, stderr, stdout, with_runtime, with_stdin};

#[test]
fn the_embedded_runtime_answers() {
    let output =
        dsh_wire(["call", "--initialize", "--cwd", "/", "session/working-directory/get", r#"{"sessionId":"s"}"#])
            .output()
            .unwrap();
    exits(&output, 0);
    assert_eq!((&*stdout(&output), &*stderr(&output)), ("{\"cwd\":\"/\"}\n", ""));
}

#[test]
fn the_result_is_the_text_that_came() {
    let script = format!(r#"{RUNTIME} take; answer '"result":{{ "n" : 1.0e0, "s":"\ud83d\u0041" }}'; cat > /dev/null"#);
    let output = with_runtime(&["call", "m"], &script).output().unwrap();
    exits(&output, 0);
    assert_eq!(stdout(&output), "{ \"n\" : 1.0e0, \"s\":\"\\ud83d\\u0041\" }\n");
}

/// What the runtime reads, given back to us as it is.
#[track_caller]
fn sends(args: &[&str], stdin: &str, request: &str) {
    let script =
        format!(r#"{RUNTIME} take; text=$(printf '%s' "$line" | sed 's/[\\"]/\\&/g'); answer "\"result\":\"$text\"""#);
    let output = with_stdin(with_runtime(args, &script), stdin.as_bytes(), 10);
    exits(&output, 0);
    let came = stdout(&output);
    let at = came.find(r#"\"method\""#).unwrap();
    assert_eq!(came[at..], format!("{}\"\n", request.replace('"', "\\\"")));
}

#[test]
fn params_are_sent_as_they_are_written() {
    sends(&["call", "m"], "", r#""method":"m"}"#);
    sends(&["call", "m", "[ 1.0, 2 ]"], "", r#""method":"m","params":[ 1.0, 2 ]}"#);
    sends(&["call", "m", "-"], "{\n\"a\":1\r\n}\r\n", r#""method":"m","params":{ "a":1  }}"#);
    sends(&["call", "\u{4f60}\n", r#"{"a":"b"}"#], "", "\"method\":\"\u{4f60}\\\\n\",\"params\":{\"a\":\"b\"}}");
}

#[test]
fn an_error_is_told_with_its_members() {
    let output = dsh_wire(["call", "nope"]).output().unwrap();
    exits(&output, 1);
    let expected = "error: cannot call nope: the runtime answered with an error
  code: -32603
  message: unknown DeepSeek Harness SDK runtime method: nope
";
    assert_eq!((&*stdout(&output), &*stderr(&output)), ("", expected));

    let script =
        format!(r#"{RUNTIME} take; answer '"error":{{"message":"two\nlines","data":[1, 2]}}'; cat > /dev/null"#);
    let output = with_runtime(&["call", "m"], &script).output().unwrap();
    exits(&output, 1);
    let expected = "error: cannot call m: the runtime answered with an error
  message: two\\nlines
  data: [1, 2]
";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn the_code_of_an_error_is_told_as_it_came() {
    for code in ["1.5", "1e30", "\"E_NO\""] {
        let script = format!(r#"{RUNTIME} take; answer '"error":{{"code":{code},"message":"no"}}'; cat > /dev/null"#);
        let output = with_runtime(&["call", "m"], &script).output().unwrap();
        exits(&output, 1);
        let expected =
            format!("error: cannot call m: the runtime answered with an error\n  code: {code}\n  message: no\n");
        assert_eq!(stderr(&output), expected);
    }
}

#[test]
fn lines_that_are_no_frames_are_not_passed_over_in_silence() {
    let script = format!(r#"{RUNTIME} echo welcome; take; echo '{{}}'; answer '"result":1'; cat > /dev/null"#);
    let output = with_runtime(&["call", "m"], &script).output().unwrap();
    exits(&output, 0);
    assert_eq!(stdout(&output), "1\n");
    assert_eq!(stderr(&output), "note: lines of the runtime's output that were no frames and were dropped: 2\n");
}
