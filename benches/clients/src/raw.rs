//! What no client can go below: the pipe itself.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use crate::READ;

/// Every notification is longer, and every answer shorter.
const ANSWER: usize = 100;

/// A child and its pipes, without a buffer in between.
pub struct Raw {
    child: Child,
    stdin: File,
    stdout: File,
}

impl Raw {
    pub fn spawn(args: &[&str]) -> Self {
        Self::start(Command::new(std::env::current_exe().expect("a path")).args(args))
    }

    /// Any program that answers as the fake runtime does.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child");
        let stdin = OwnedFd::from(child.stdin.take().expect("piped")).into();
        let stdout = OwnedFd::from(child.stdout.take().expect("piped")).into();
        Self { child, stdin, stdout }
    }

    /// Asks for a blast, reads it, splits it at `\n` and discards it, without as much as keeping a line that a read has
    /// cut; returns how many lines there were.
    pub fn blast(&mut self) -> usize {
        self.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"raw\",\"method\":\"blast\"}\n").expect("a reader");
        let mut buffer = vec![0; READ];
        // `before`: the length of the line that the last read has cut.
        let (mut before, mut lines) = (0, 0);
        loop {
            let len = self.stdout.read(&mut buffer).expect("a child");
            assert!(len > 0, "the child has gone");
            let mut start = 0;
            for at in memchr::memchr_iter(b'\n', &buffer[..len]) {
                lines += 1;
                // Only the answer is as short as that.
                if before + at - start < ANSWER {
                    return lines - 1;
                }
                (before, start) = (0, at + 1);
            }
            before += len - start;
        }
    }

    /// Sends so many bytes and waits until they are back.
    pub fn echo(&mut self, bytes: &mut [u8]) {
        self.stdin.write_all(bytes).expect("a reader");
        self.stdout.read_exact(bytes).expect("a writer");
    }

    pub fn ping(&mut self) {
        let mut byte = [b'x'];
        self.stdin.write_all(&byte).expect("a reader");
        self.stdout.read_exact(&mut byte).expect("a writer");
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
