//! What to start, where, and with which environment.

use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::vec::Vec;

/// The environment variable that names the runtime to [`Launch::discover`].
pub const RUNTIME_VARIABLE: &str = "DSH_RUNTIME_BIN";

/// The official runtime.
const OFFICIAL: &str = "dsh";

/// How to start a runtime. Built like a [`Command`], but it can be used many times, and its `Debug` shows the names of
/// environment variables and never their values.
///
/// A program that is only a name is looked for on `PATH`; a relative path counts from the directory of the calling
/// program, whatever [`cwd`](Self::cwd) says.
///
/// ```
/// use dsh_wire::stdio::Launch;
///
/// let launch = Launch::new("dsh").args(["--profile", "sdk"]).env("DEEPSEEK_API_KEY", "sk-secret");
/// assert!(!format!("{launch:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct Launch {
    pub(super) program: PathBuf,
    args: Vec<OsString>,
    pub(super) cwd: Option<PathBuf>,
    base: Environment,
    /// On top of `base`.
    set: BTreeMap<OsString, OsString>,
    pub(super) own_group: bool,
    dies_with_parent: bool,
    pub(super) stderr: Stderr,
}

/// What a runtime gets of the environment of the calling program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Environment {
    /// All of it.
    #[default]
    Inherit,
    /// These variables, where they are set.
    Only(Vec<OsString>),
    /// None of it.
    Clean,
}

/// What becomes of a runtime's stderr. Except for [`Stderr::Inherit`], the last 400 lines of it are kept for error
/// reports.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// It is read and kept.
    #[default]
    Tail,
    /// It goes where that of the calling program goes, and nothing is kept.
    Inherit,
    /// It is read and kept, and this gets every piece of it as it comes, on the thread that moves the bytes.
    ///
    /// A panic of it comes out of the method that reads, or ends a shared client with
    /// [`Cause::Stopped`](super::Cause::Stopped). Once the connection has ended it is only not called again.
    Callback(StderrCallback),
}

/// Gets pieces of a stream, however they are cut.
pub type StderrCallback = Arc<dyn Fn(&[u8]) + Send + Sync>;

impl Stderr {
    /// [`Stderr::Callback`] of a closure.
    pub fn callback(callback: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::Callback(Arc::new(callback))
    }
}

impl Launch {
    /// Starts a program without arguments, with the environment and in the directory of the calling program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            base: Environment::Inherit,
            set: BTreeMap::new(),
            own_group: true,
            dies_with_parent: false,
            stderr: Stderr::default(),
        }
    }

    /// The `dsh` runtime with a profile (`sdk`, `sdk-minimal`): the program given, or else the one that the variable
    /// `DSH_RUNTIME_BIN` names, or else `dsh` on `PATH`.
    #[must_use]
    pub fn discover(explicit: Option<&Path>, profile: &str) -> Self {
        let named = || std::env::var_os(RUNTIME_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let program = explicit.map(Path::to_owned).or_else(named).unwrap_or_else(|| OFFICIAL.into());
        Self::new(program).args(["--profile", profile])
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The directory to start in.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// What it gets of our environment.
    #[must_use]
    pub fn environment(mut self, base: Environment) -> Self {
        self.base = base;
        self
    }

    /// Sets a variable, whatever [`environment`](Self::environment) says of it.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.insert(name.into(), value.into());
        self
    }

    /// The directory in which the runtime keeps its sessions (`DSH_HOME`).
    #[must_use]
    pub fn dsh_home(self, home: impl Into<OsString>) -> Self {
        self.env("DSH_HOME", home)
    }

    /// Whether it leads a process group of its own, which is ended with it; it does unless told otherwise. In ours it
    /// hears Ctrl-C as we do, and what it has started is not ended with it.
    ///
    /// A descendant that has left the group is only told by the end of its stdin, if by anything.
    #[must_use]
    pub fn own_group(mut self, own: bool) -> Self {
        self.own_group = own;
        self
    }

    /// Starts it through `setpriv --pdeathsig TERM` (of util-linux), so that the kernel ends it should the calling
    /// thread die without a word. Off unless asked for.
    #[must_use]
    pub fn dies_with_parent(mut self, dies: bool) -> Self {
        self.dies_with_parent = dies;
        self
    }

    /// What becomes of its stderr.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// The program, as it was asked for.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The absolute path of the program, if there is something at it. What is only a name is looked for on the `PATH`
    /// that the program will get.
    #[must_use]
    pub fn resolve(&self) -> Option<PathBuf> {
        self.find(&self.program)
    }

    /// Starts it for a program that moves the bytes itself: stdin and stdout are pipes, and so is stderr, unless
    /// inherited.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        self.command()?.spawn().map_err(|error| self.diagnose(error))
    }

    /// The command, with the program as an absolute path.
    pub(super) fn command(&self) -> Result<Command, SpawnError> {
        let program = self.find(&self.program).ok_or_else(|| self.error(SpawnFault::ProgramMissing, None))?;
        let mut command = if self.dies_with_parent {
            let setpriv = self.find("setpriv".as_ref()).ok_or_else(|| self.error(SpawnFault::NoSetpriv, None))?;
            // What it runs into it tells to the stderr of the runtime, and nobody else.
            if let Some(fault) = obstacle(&program) {
                return Err(self.error(fault, None));
            }
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "TERM", "--"]).arg(program);
            command
        } else {
            let mut command = Command::new(program);
            command.arg0(&self.program);
            command
        };
        command.args(&self.args);
        match &self.base {
            Environment::Inherit => {}
            Environment::Clean => drop(command.env_clear()),
            Environment::Only(names) => {
                command.env_clear();
                command.envs(names.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
            }
        }
        command.envs(&self.set);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        if self.own_group {
            command.process_group(0);
        }
        let stderr = if matches!(self.stderr, Stderr::Inherit) { Stdio::inherit() } else { Stdio::piped() };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        Ok(command)
    }

    /// The absolute path of a program, if there is something at it.
    fn find(&self, program: &Path) -> Option<PathBuf> {
        if !is_looked_for(program) {
            return std::path::absolute(program).ok().filter(|path| path.exists());
        }
        let path = self.set.get(OsStr::new("PATH")).cloned().or_else(|| std::env::var_os("PATH"))?;
        let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(program));
        let found = candidates.find(|candidate| is_executable(candidate))?;
        std::path::absolute(found).ok()
    }

    /// Says what a failed start was about.
    pub(super) fn diagnose(&self, error: io::Error) -> SpawnError {
        let program = self.find(&self.program);
        let fault = if self.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir()) {
            SpawnFault::NoDirectory
        } else if let Some(fault) = program.and_then(|program| obstacle(&program)) {
            fault
        } else if error.kind() == io::ErrorKind::NotFound {
            SpawnFault::InterpreterMissing
        } else {
            SpawnFault::System
        };
        self.error(fault, Some(error))
    }

    pub(super) fn error(&self, fault: SpawnFault, source: Option<io::Error>) -> SpawnError {
        SpawnError { program: self.program.clone(), cwd: self.cwd.clone(), fault, source }
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("environment", &self.base)
            .field("variables", &self.set.keys().collect::<Vec<_>>())
            .field("own_group", &self.own_group)
            .field("dies_with_parent", &self.dies_with_parent)
            .field("stderr", &self.stderr)
            .finish()
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tail => "Tail",
            Self::Inherit => "Inherit",
            Self::Callback(_) => "Callback",
        })
    }
}

/// Whether a program is only a name, which is looked for on `PATH`.
fn is_looked_for(program: &Path) -> bool {
    !program.as_os_str().as_encoded_bytes().contains(&b'/')
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// What keeps a file from being executed, as far as it shows.
fn obstacle(program: &Path) -> Option<SpawnFault> {
    if program.is_dir() {
        Some(SpawnFault::ProgramIsDirectory)
    } else if !is_executable(program) {
        Some(SpawnFault::NotExecutable)
    } else {
        interpreter(program).filter(|interpreter| !interpreter.exists()).map(|_| SpawnFault::InterpreterMissing)
    }
}

/// What the first line of a script names, if that does not depend on the directory.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(program).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let path = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    Some(PathBuf::from(OsStr::from_bytes(path))).filter(|path| path.is_absolute())
}

/// Why a runtime could not be started.
#[derive(Debug)]
pub struct SpawnError {
    program: PathBuf,
    cwd: Option<PathBuf>,
    fault: SpawnFault,
    source: Option<io::Error>,
}

/// What a [`SpawnError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnFault {
    /// There is no such program.
    ProgramMissing,
    /// The program is a directory.
    ProgramIsDirectory,
    /// The program may not be executed.
    NotExecutable,
    /// The program is there, but what its first line says to run it with is not.
    InterpreterMissing,
    /// The directory to start in is missing, or is none.
    NoDirectory,
    /// It should die with its parent, and there is no `setpriv` to see to that.
    NoSetpriv,
    /// Anything else; the source says what.
    System,
}

impl SpawnError {
    /// The program, as it was asked for.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The directory to start in, if one was asked for.
    #[must_use]
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// What went wrong.
    #[must_use]
    pub fn fault(&self) -> SpawnFault {
        self.fault
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start {:?}", self.program)?;
        let is_nowhere = self.fault == SpawnFault::ProgramMissing && is_looked_for(&self.program);
        match &self.cwd {
            Some(cwd) => write!(f, " in {cwd:?}")?,
            None if is_nowhere => {}
            None => f.write_str(" in the current directory")?,
        }
        f.write_str(match self.fault {
            SpawnFault::ProgramMissing if is_nowhere => ": there is no such program on PATH",
            SpawnFault::ProgramMissing => ": there is no such program",
            SpawnFault::ProgramIsDirectory => ": the program is a directory",
            SpawnFault::NotExecutable => ": the program is not executable",
            SpawnFault::InterpreterMissing => ": the interpreter of the program does not exist",
            SpawnFault::NoDirectory => ": the directory to start in does not exist",
            SpawnFault::NoSetpriv => ": there is no setpriv on PATH to make it die with its parent",
            SpawnFault::System => "",
        })?;
        if is_nowhere && self.program == Path::new(OFFICIAL) {
            write!(f, "; install it, or let {RUNTIME_VARIABLE} name it (`dsh-wire doctor` looks for it)")?;
        }
        Ok(())
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_ref().filter(|_| self.fault == SpawnFault::System)?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::{String, ToString};

    use super::*;

    #[track_caller]
    fn check(launch: &Launch, fault: SpawnFault, text: &str) {
        let error = match launch.command() {
            Ok(mut command) => launch.diagnose(command.spawn().unwrap_err()),
            Err(error) => error,
        };
        assert_eq!((error.fault(), error.to_string()), (fault, text.to_string()));
    }

    #[test]
    fn an_error_says_which_of_program_and_directory_failed() {
        check(
            &Launch::new("/nonexistent/dsh"),
            SpawnFault::ProgramMissing,
            r#"cannot start "/nonexistent/dsh" in the current directory: there is no such program"#,
        );
        check(
            &Launch::new("no-such-program-anywhere").cwd("/tmp"),
            SpawnFault::ProgramMissing,
            r#"cannot start "no-such-program-anywhere" in "/tmp": there is no such program on PATH"#,
        );
        check(
            &Launch::new("dsh").env("PATH", "/nonexistent"),
            SpawnFault::ProgramMissing,
            "cannot start \"dsh\": there is no such program on PATH; install it, or let DSH_RUNTIME_BIN name it \
             (`dsh-wire doctor` looks for it)",
        );
        check(
            &Launch::new("/bin/sh").cwd("/nonexistent"),
            SpawnFault::NoDirectory,
            r#"cannot start "/bin/sh" in "/nonexistent": the directory to start in does not exist"#,
        );
        check(
            &Launch::new("/"),
            SpawnFault::ProgramIsDirectory,
            r#"cannot start "/" in the current directory: the program is a directory"#,
        );
        check(
            &Launch::new("/etc/passwd"),
            SpawnFault::NotExecutable,
            r#"cannot start "/etc/passwd" in the current directory: the program is not executable"#,
        );
    }

    #[test]
    fn the_environment_is_as_asked_and_never_shown() {
        let launch = Launch::new("/usr/bin/env")
            .environment(Environment::Only([OsString::from("PATH"), "NOT_SET_ANYWHERE".into()].into()))
            .env("SECRET", "value-of-it");
        let output = launch.command().unwrap().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["PATH", "SECRET"]);
        let shown = format!("{launch:?}");
        assert!(shown.contains("SECRET") && !shown.contains("value-of-it"), "{shown}");
        let clean = Launch::new("env").environment(Environment::Clean).command().unwrap().output().unwrap();
        assert!(clean.stdout.is_empty());
    }
}
