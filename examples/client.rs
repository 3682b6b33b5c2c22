//! Drives a runtime: one prompt, with what happens shown as it happens.
//!
//! `client PROGRAM [ARG…]` starts a runtime, `client dsh --profile sdk` the official one. Without arguments it talks to
//! a parrot in the same process, behind two pipes: so a program is tested without a runtime, a model or a key.

use std::error::Error;
use std::time::Duration;
use std::{io, thread};

use dsh_wire::stdio::turns::Turns;
use dsh_wire::stdio::{ClientOptions, DeepSeekHarness, HarnessClient, Launch, RunOptions, ServeOptions, serve};
use dsh_wire::wire::InitializeParams;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut client = match args.next() {
        Some(program) => HarnessClient::spawn(&Launch::new(program).args(args))?,
        None => parrot()?,
    };
    let here = std::env::current_dir()?.display().to_string();
    client.initialize(&InitializeParams::new(here, "deepseek-official", "deepseek-v4-flash"))?;
    let mut harness = DeepSeekHarness::with_client(client);
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

/// A runtime on a thread of this process.
fn parrot() -> Result<HarnessClient, Box<dyn Error>> {
    let (its_input, our_output) = io::pipe()?;
    let (our_input, its_output) = io::pipe()?;
    thread::spawn(move || {
        let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
        serve(parrot, its_input.into(), its_output.into(), ServeOptions::default())
    });
    Ok(HarnessClient::connect(our_input.into(), our_output.into(), ClientOptions::default())?)
}
