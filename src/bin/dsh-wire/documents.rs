//! What the command says of itself to shells and to `man`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::failure::Failure;

/// Print what a shell needs to complete the arguments of this command
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire completions bash > ~/.local/share/bash-completion/completions/dsh-wire
  dsh-wire completions zsh > ~/.zfunc/_dsh-wire
  dsh-wire completions fish > ~/.config/fish/completions/dsh-wire.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    // clap_complete 4.6.12 writes the dash of our name in two ways in what it writes for bash, and completes nothing behind
    // a subcommand then.
    let mut script = String::from_utf8_lossy(&script).replace("dsh__subcmd__wire", "dsh__wire");
    if args.shell == Shell::Bash {
        script.push_str(BEHIND_DASHES);
    }
    print(script.as_bytes())
}

/// Behind `--` stands the command line of a runtime, which is completed as one.
const BEHIND_DASHES: &str = r#"
_dsh__wire_or_runtime() {
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] || continue
        if ((at + 1 == COMP_CWORD)); then
            COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        elif [[ ${COMP_WORDS[at + 1]##*/} == dsh-wire ]]; then
            COMP_WORDS=("${COMP_WORDS[@]:at + 1}")
            ((COMP_CWORD -= at + 1))
            _dsh__wire_or_runtime "${COMP_WORDS[0]}" "$2" "$3"
        else
            COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
        fi
        return
    done
    _dsh__wire "$@"
}
complete -F _dsh__wire_or_runtime -o nosort -o bashdefault -o default dsh-wire 2>/dev/null ||
    complete -F _dsh__wire_or_runtime -o bashdefault -o default dsh-wire
"#;

/// Print the manual, or write it as files
///
/// The pages of the command and of each subcommand follow one another.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire man | man -l -
  dsh-wire man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write each page to a file of its own in this directory, which is made if need be
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let subcommands: Vec<_> = command.get_subcommands().cloned().collect();
    let pages = [command].into_iter().chain(subcommands).map(page);
    let Some(directory) = &args.out else {
        return print(&pages.map(|(_, page)| page).collect::<Vec<_>>().concat());
    };
    let failed = |error: io::Error| Failure::usage(format!("cannot write to '{}': {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    for (name, page) in pages {
        fs::write(directory.join(name), page).map_err(failed)?;
    }
    Ok(())
}

/// A page and the name of its file.
fn page(mut command: Command) -> (String, Vec<u8>) {
    let extra = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    // As `--help` says it: with the values of options, which clap_mangen leaves out.
    let usage = command.render_usage().to_string();
    let (commands, versioned) = (command.has_subcommands(), command.get_version().is_some());
    // What stands behind the help goes to sections of its own.
    let page = Man::new(command.after_help(None::<&str>).after_long_help(None::<&str>)).manual("dsh-wire");
    let mut bytes = Vec::new();
    let write = || -> io::Result<()> {
        page.render_title(&mut bytes)?;
        page.render_name_section(&mut bytes)?;
        sections(&format!("Synopsis:\n  {}", usage.trim_start_matches("Usage: "))).to_writer(&mut bytes)?;
        page.render_description_section(&mut bytes)?;
        page.render_options_section(&mut bytes)?;
        if commands {
            page.render_subcommands_section(&mut bytes)?;
        }
        sections(&extra.unwrap_or_default()).to_writer(&mut bytes)?;
        if versioned { page.render_version_section(&mut bytes) } else { Ok(()) }
    };
    write().expect("a vector takes all bytes");
    (page.get_filename(), bytes)
}

/// The texts behind a help: lines with a colon at the end are headings, what is indented stays as it is.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut verbatim = false;
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|_| !line.starts_with(' '));
        let indented = line.starts_with("  ") || (verbatim && line.is_empty());
        if indented != verbatim {
            roff.control(if indented { "nf" } else { "fi" }, []);
            verbatim = indented;
        }
        match heading {
            Some(heading) => roff.control("SH", [&*heading.to_uppercase()]),
            None => roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]),
        };
    }
    if verbatim {
        roff.control("fi", []);
    }
    roff
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::output)
}
