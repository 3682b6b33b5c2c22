//! The least that a runtime needs: the one of the README.

use dsh_wire::stdio::turns::Turns;
use dsh_wire::stdio::{ServeOptions, serve_stdio};

fn main() -> std::io::Result<()> {
    let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
    let served = serve_stdio(parrot, ServeOptions::default())?;
    std::process::exit(served.exit_code().into())
}
