//! Who is in a process group.

use rustix::process::Pid;

/// How many processes of the group live, without those that only wait for their status to be taken. A signal cannot
/// tell: it reaches the leader until its status has been taken, and afterwards the number may be another group's.
pub(super) fn living(group: Pid) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    processes.flatten().filter(|entry| is_number(entry) && is_living_member(entry, group)).count()
}

fn is_number(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

fn is_living_member(entry: &std::fs::DirEntry, group: Pid) -> bool {
    let Ok(stat) = std::fs::read(entry.path().join("stat")) else { return false };
    // The name comes in parentheses and may hold anything; behind it: state, parent, group.
    let Some(name_end) = memchr::memrchr(b')', &stat) else { return false };
    let rest = std::string::String::from_utf8_lossy(stat.get(name_end + 1..).unwrap_or_default()).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let is_alive = fields.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    let number = fields.nth(1).and_then(|number| number.parse().ok());
    is_alive && number == Some(group.as_raw_nonzero().get())
}
