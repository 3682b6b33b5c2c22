//! The comparison in the README: what its cells name is there, and runs.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names in backticks of a text.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The attributes of a function of that name, if the source has one.
fn attributes<'a>(source: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let (before, _) = source.split_once(&format!("fn {name}()"))?;
    let above = before.trim_end_matches(|c| c != '\n').lines().rev().map(str::trim);
    Some(above.take_while(|line| line.starts_with("#[") || line.starts_with("///")).collect())
}

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
}

/// A file, a module of tests, an example that is tested, or a test.
#[track_caller]
fn is_there_and_runs(name: &str, sources: &[(PathBuf, String)]) {
    let runs = |source: &str| source.matches("#[test]").count() > source.matches("#[ignore").count();
    let module = format!("/{}.rs", name.replace("::", "/"));
    let file = root().join(name).exists() && !name.is_empty();
    let modules = sources.iter().any(|(path, source)| path.to_string_lossy().ends_with(&module) && runs(source));
    let example = root().join(format!("examples/{name}.rs")).exists()
        && fs::read_to_string(root().join("tests/it/examples.rs")).unwrap().contains(&format!("\"{name}\""));
    let test = sources.iter().filter_map(|(_, source)| attributes(source, name)).any(|attributes| {
        attributes.contains(&"#[test]") && !attributes.iter().any(|attribute| attribute.starts_with("#[ignore"))
    });
    assert!(file || modules || example || test, "the README names {name}, which is not there or does not run");
}

#[test]
fn what_the_comparison_names_is_there_and_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Compared\n").unwrap();
    // The table of the faults is written by `tests/interop/faults`.
    let (section, _) = section.split_once("\n<!-- faults -->").unwrap();
    let mut found = Vec::new();
    for folder in ["tests", "src"] {
        sources(&root().join(folder), &mut found);
    }
    let comparison = fs::read_to_string(root().join("tests/interop/comparison.rs")).unwrap();
    let rows: Vec<Vec<&str>> =
        section.lines().filter(|line| line.starts_with("| ")).skip(1).map(|row| row.split('|').collect()).collect();
    assert!(rows.len() >= 8, "{rows:?}");
    for row in rows {
        let [_, what, ours, ..] = row[..] else { panic!("{row:?}") };
        // Of others, it is read off their sources.
        let tests = names(what);
        assert!(!tests.is_empty(), "nothing shows what is said of others: {what}");
        for name in tests {
            let attributes = attributes(&comparison, name).unwrap_or_else(|| panic!("there is no test {name}"));
            assert!(attributes.contains(&"#[test]"), "{name}");
            assert!(!attributes.iter().any(|attribute| attribute.starts_with("#[ignore")), "{name}");
        }
        let (_, shown) = ours.split_once('[').unwrap_or_else(|| panic!("nothing shows{ours}"));
        let tests = names(shown);
        assert!(!tests.is_empty(), "{ours}");
        tests.into_iter().for_each(|name| is_there_and_runs(name, &found));
    }
}
