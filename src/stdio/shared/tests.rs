use std::io::{Write, pipe};
use std::time::Instant;

use super::*;
use crate::peer::{Event, Peer};

#[test]
fn an_answer_whose_handle_goes_is_let_go_though_nothing_else_happens() {
    let (mut its_input, our_output) = pipe().unwrap();
    let (our_input, mut its_output) = pipe().unwrap();
    let client = HarnessClient::connect(our_input.into(), our_output.into(), ClientOptions::default()).unwrap();
    let client = client.into_shared().unwrap();
    let call = client.start_call::<JsonBuf>("ask", &(), &CallOptions::default()).unwrap();
    let mut runtime: Peer<()> = Peer::new();
    let reply = loop {
        runtime.read_from(&mut its_input).unwrap();
        if let Some(Event::Request { reply, .. }) = runtime.next_event() {
            break reply;
        }
    };
    runtime.answer(reply, "yes").unwrap();
    its_output.write_all(runtime.outgoing().bytes()).unwrap();
    // Only looks, so that nothing is done but by the thread.
    let until = |done: &dyn Fn(&HarnessClient) -> bool| {
        let start = Instant::now();
        while !client.core().with(|state| done(&state.client)) {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    };
    until(&|client| client.machine().has_ended(call.id()));
    let id = call.id();
    drop(call);
    until(&|client| !client.machine().has_ended(id));
}
