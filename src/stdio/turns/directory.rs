//! Paths of working directories.

use std::path::{Component, Path, PathBuf};
use std::string::String;

use crate::json::JsonString;

/// A path in quotes, for people.
pub(super) fn quoted(path: &Path) -> String {
    JsonString::from(&*path.to_string_lossy()).as_json_str().get().into()
}

/// The path from the root on, without `.` and `..`, by its text alone.
pub(super) fn absolute(path: &Path) -> PathBuf {
    // It fails for the empty path only, and where the process has no directory.
    let from_root = std::path::absolute(path).or_else(|_| std::env::current_dir()).unwrap_or_else(|_| "/".into());
    let mut result = PathBuf::new();
    for component in from_root.components() {
        match component {
            Component::ParentDir => _ = result.pop(),
            Component::CurDir => {}
            component => result.push(component),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        let check = |path: &str, expected: &str| assert_eq!(absolute(Path::new(path)), Path::new(expected));
        check("/a/./b//c/..", "/a/b");
        check("/a/", "/a");
        check("/../..", "/");
        assert_eq!(absolute(Path::new("")), std::env::current_dir().unwrap());
    }
}
