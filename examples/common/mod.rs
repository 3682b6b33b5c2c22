//! What the examples of clients talk to: the program in their arguments, or else a parrot in the same process, behind
//! two pipes. So a program is tested without a runtime, a model or a key.

use std::error::Error;
use std::{env, io, thread};

use dsh_wire::stdio::turns::Turns;
use dsh_wire::stdio::{ClientOptions, HarnessClient, Launch, ServeOptions, serve};
use dsh_wire::wire::InitializeParams;

/// A client after the handshake.
pub(crate) fn client() -> Result<HarnessClient, Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut client = match args.next() {
        Some(program) => HarnessClient::spawn(&Launch::new(program).args(args))?,
        None => parrot()?,
    };
    let here = env::current_dir()?.display().to_string();
    client.initialize(&InitializeParams::new(here, "deepseek-official", "deepseek-v4-flash"))?;
    Ok(client)
}

fn parrot() -> Result<HarnessClient, Box<dyn Error>> {
    let (its_input, our_output) = io::pipe()?;
    let (our_input, its_output) = io::pipe()?;
    thread::spawn(move || {
        let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
        serve(parrot, its_input.into(), its_output.into(), ServeOptions::default())
    });
    Ok(HarnessClient::connect(our_input.into(), our_output.into(), ClientOptions::default())?)
}
