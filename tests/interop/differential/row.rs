//! One event of a peer that makes no calls, in the form of `dsh-wire inspect --json`.

use core::fmt::Write;

use dsh_wire::json::JsonStr;
use dsh_wire::peer::Event;

/// Appends the row of a frame, without its opening brace; false for a line that was dropped.
pub(crate) fn write<T: core::fmt::Debug>(out: &mut impl Write, event: Event<'_, T>) -> bool {
    let text = |string: JsonStr<'_>| string.to_buf();
    let written = match event {
        Event::Request { method, params, reply } => {
            let (id, method) = (reply.id(), text(method));
            write!(out, r#""kind":"request","id":{id:?},"method":{method:?},"params":{params}}}"#)
        }
        Event::Notification { method, params } => {
            let method = text(method);
            write!(out, r#""kind":"notification","method":{method:?},"params":{params}}}"#)
        }
        Event::Unmatched { id, outcome: Ok(result) } => {
            write!(out, r#""kind":"response","id":{id:?},"result":{result}}}"#)
        }
        Event::Unmatched { id, outcome: Err(error) } => {
            let message = error.message().map_or_else(|| "JSON-RPC error".into(), text);
            let mut written = write!(out, r#""kind":"response","id":{id:?},"error":{{"message":{message:?}"#);
            for (name, value) in [("code", error.code()), ("data", error.data())] {
                if let Some(value) = value {
                    written = written.and_then(|()| write!(out, r#","{name}":{value}"#));
                }
            }
            written.and_then(|()| write!(out, "}}}}"))
        }
        Event::Dropped(_) => return false,
        other => panic!("no call was made: {other:?}"),
    };
    written.expect("a string takes all that is written");
    true
}
