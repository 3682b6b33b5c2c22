//! Drives a runtime: one prompt, with what happens shown as it happens.
//!
//! `client PROGRAM [ARG…]` starts a runtime, `client dsh --profile sdk` the official one. Without arguments it talks to
//! a parrot in the same process (`examples/common`).

mod common;

use std::error::Error;
use std::time::Duration;

use dsh_wire::stdio::{DeepSeekHarness, RunOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut harness = DeepSeekHarness::with_client(common::client()?);
    let mut session = harness.start_session();
    for prompt in ["hello", "and again"] {
        let options = RunOptions::new().timeout(Duration::from_secs(60)).on_notification(|notification| {
            match notification.event() {
                Some(event) => println!("  {}", event.kind),
                None => println!("  {}", notification.method),
            }
        });
        let result = session.run(prompt, options)?;
        println!("{prompt}: {} ({})", result.final_response, result.finish_reason.unwrap_or_default());
    }
    println!("{}", harness.close());
    Ok(())
}
