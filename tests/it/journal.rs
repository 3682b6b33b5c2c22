//! What goes to the `log` crate. The logger is one for the whole process, so this is one test.

use std::sync::Mutex;

use serde_json::json;

use crate::faulty::start;

struct Records(Mutex<Vec<String>>);

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // Other tests have clients in this process as well.
        if record.target() == "dsh_wire" && std::thread::current().name().is_some_and(|name| name.contains("journal")) {
            self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

static RECORDS: Records = Records(Mutex::new(Vec::new()));

#[test]
fn what_a_client_meets_is_told_and_never_what_frames_carry() {
    log::set_logger(&RECORDS).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let answer = "answer=noise that is secret%0A{\"id\":\"x\",\"result\":\"secret\"}%0A{\"id\":@ID@,\"result\":1}%0A";
    let mut client = start(&[answer, "ask-first=1"]);
    client.call("ask", &json!({ "text": "secret" })).unwrap();
    client.close();
    let records = RECORDS.0.lock().unwrap();
    for expected in [
        "WARN: line 2 of ",
        "DEBUG: a response that no call waits for, id \"x\"",
        "INFO: a request of the runtime was refused: \"runtime/ask\"",
        "INFO: the runtime exited with code 0",
        "DEBUG: request shutdown: ",
    ] {
        assert!(records.iter().any(|record| record.starts_with(expected)), "{expected}: {records:#?}");
    }
    assert!(!records.concat().contains("secret"), "{records:#?}");
}
