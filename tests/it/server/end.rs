//! How a connection ends.

use dsh_wire::json::Json;
use dsh_wire::server::{NewEvent, Phase, Refusal, Task};

use super::{check, check_ready, named, prompt};

#[test]
fn shutdown_releases_then_answers() {
    check_ready(|script| {
        let session = script.session("s");
        script.calls(1, "session/prompt", &prompt("new"));
        let Some(Task::Open { session: new, .. }) = script.server.next_task() else { panic!("no opening") };
        script.server.set_running(&session, true);
        script.calls(2, "session/wait", &named("s"));
        assert_eq!(script.heard().len(), 1);

        script.calls(3, "shutdown", "{}");
        script.calls(4, "shutdown", "null");
        script.calls(5, "session/prompt", &prompt("s"));
        script.calls(6, "session/resume", &named("s2"));
        script.calls(7, "session/wait", &named("s"));
        script.calls(8, "session/working-directory/get", &named("s"));
        script.calls(9, "nope", "{}");
        script.releases("s", Ok(()));
        // Nothing is told any more, but events are numbered for the log.
        script.server.set_running(&session, false);
        let event = NewEvent::new("turn/end", &Json::EMPTY_OBJECT);
        assert_eq!(script.server.session_event(&session, &event, 1).unwrap().seq, 0);
        let going = r#""error":{"code":-32603,"message":"SDK server is shutting down"}}"#;
        script.hears(&[
            r#"{"id":2,"result":{}}"#,
            &format!(r#"{{"id":5,{going}"#),
            &format!(r#"{{"id":6,{going}"#),
            r#"{"id":7,"result":{}}"#,
            &format!(r#"{{"id":8,{going}"#),
            r#"{"id":9,"error":{"code":-32603,"message":"unknown DeepSeek Harness SDK runtime method: nope"}}"#,
        ]);
        assert_eq!(script.server.phase(), Phase::Releasing);
        // A creation is awaited, and the session released.
        script.initialize();
        script.server.opened(&new, Ok(()));
        script.releases("new", Ok(()));
        script.hears(&[
            r#"{"id":1,"error":{"code":-32603,"message":"SDK server is shutting down"}}"#,
            r#"{"id":3,"result":{}}"#,
            r#"{"id":4,"result":{}}"#,
        ]);
        assert_eq!(script.server.phase(), Phase::Released);
    });
}

#[test]
fn a_creation_during_shutdown_fails_those_who_wait() {
    for outcome in [Ok(()), Err(Refusal::new("no"))] {
        check_ready(|script| {
            script.calls(1, "session/prompt", &prompt("s"));
            let Some(Task::Open { session, .. }) = script.server.next_task() else { panic!("no opening") };
            script.calls(2, "shutdown", "{}");
            script.hears(&[]);
            script.server.opened(&session, outcome.clone());
            if outcome.is_ok() {
                script.releases("s", Ok(()));
            }
            script.hears(&[
                r#"{"id":1,"error":{"code":-32603,"message":"SDK server is shutting down"}}"#,
                r#"{"id":2,"result":{}}"#,
            ]);
        });
    }
}

#[test]
fn failures_of_releases_are_put_together() {
    for (failures, message) in
        [(&["disk full"][..], "disk full"), (&["disk full", "disk on fire"], "SDK server teardown failed")]
    {
        check_ready(|script| {
            for session in ["a", "b", "c"] {
                script.session(session);
            }
            script.calls(1, "shutdown", "{}");
            let mut failures = failures.iter();
            for session in ["a", "b", "c"] {
                script.releases(session, failures.next().map_or(Ok(()), |failure| Err((*failure).into())));
            }
            script.is_refused(1, message);
            assert_eq!(script.server.phase(), Phase::Failed);
            script.calls(2, "shutdown", "{}");
            script.is_refused(2, message);
        });
    }
}

#[test]
fn the_end_of_input_waits_for_answers_owed() {
    check_ready(|script| {
        let session = script.session("s");
        script.server.set_running(&session, true);
        script.heard();
        script.calls(1, "session/prompt", &prompt("s"));
        script.calls(2, "session/wait", &named("s"));
        script.server.push(br#"{"id":3,"method":"shutdown"}"#);
        script.server.end_input();
        let Some(Task::Prompt { reply, .. }) = script.server.next_task() else { panic!("no prompt") };
        script.hears(&[r#"{"id":2,"result":{}}"#]);
        assert_eq!(script.server.phase(), Phase::Draining);
        script.server.set_running(&session, false);
        script.server.prompted(reply, Ok("m".into()));
        script.releases("s", Err("nobody will know".into()));
        script.hears(&[
            r#"{"method":"session.status","params":{"sessionId":"s","status":"idle"}}"#,
            r#"{"id":1,"result":{"messageId":"m"}}"#,
        ]);
        assert_eq!(script.server.phase(), Phase::Failed);
    });
    check(|script| {
        script.server.end_input();
        assert_eq!(script.server.phase(), Phase::Released);
    });
}
