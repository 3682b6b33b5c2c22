//! How a runtime is found and started, each in a process whose environment the test chooses.

use std::path::Path;
use std::process::{Command, Output};

use dsh_wire::stdio::{Environment, HarnessClient, Launch, Stderr};
use serde_json::{Value, json};

use crate::faulty::{exists, faulty, group_exists, options, start};

/// Says to the process that runs [`alone`] what to do.
const WHAT: &str = "DSH_WIRE_LAUNCH";

/// Does one thing of [`alone`] in a process of its own, with these variables.
fn in_a_process(what: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["launch::alone", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env_remove(dsh_wire::stdio::RUNTIME_VARIABLE)
        .env(WHAT, what)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

#[test]
#[ignore = "run by the tests of this file"]
fn alone() {
    match std::env::var(WHAT).as_deref() {
        Ok("explicit") => println!("{:?}", Launch::discover(Some(Path::new("/given")), "sdk")),
        Ok("discover") => println!("{:?}", Launch::discover(None, "sdk")),
        Ok("start") => {
            let mut client = HarnessClient::spawn_with(&Launch::discover(None, "sdk"), options()).unwrap();
            client.call("echo", &json!({})).unwrap();
            client.close();
            println!("it was found");
        }
        Ok("stderr") => {
            let launch = faulty(&["exit=ask"]).stderr(Stderr::Inherit);
            let error = HarnessClient::spawn(&launch).unwrap().call("ask", &()).unwrap_err();
            assert!(error.exit().is_some() && error.stderr().is_none());
        }
        _ => {}
    }
}

#[track_caller]
fn check(what: &str, variables: &[(&str, &str)], said: &str) {
    let output = in_a_process(what, variables);
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains(said), "{text}");
}

#[test]
fn a_runtime_is_looked_for_in_order() {
    let named = [("DSH_RUNTIME_BIN", "/named")];
    check("explicit", &named, r#"program: "/given""#);
    check("discover", &named, r#"program: "/named""#);
    check("discover", &named, r#"args: ["--profile", "sdk"]"#);
    check("discover", &[("DSH_RUNTIME_BIN", "")], r#"program: "dsh""#);
    check("discover", &[], r#"program: "dsh""#);
    let folder = std::env::temp_dir().join(format!("dsh-wire-launch-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(faulty(&[]).program(), folder.join("dsh")).unwrap();
    check("start", &[("PATH", folder.to_str().unwrap())], "it was found");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn stderr_can_go_where_ours_goes() {
    check("stderr", &[], "last words");
}

#[test]
fn the_home_and_the_group_are_as_asked() {
    let launch = faulty(&["spawn=ask"]).environment(Environment::Clean).dsh_home("/home/of/it").own_group(false);
    let mut client = HarnessClient::spawn_with(&launch, options()).unwrap();
    let environment: Value = client.call("env", &()).unwrap().as_json().parse().unwrap();
    assert_eq!(environment, json!({ "DSH_HOME": "/home/of/it" }));
    let pid = client.process_id().unwrap();
    // In our group, and so it leads none.
    assert!(!group_exists(pid));
    client.close();
    assert!(!exists(pid));
    let mut client = start(&[]);
    assert!(group_exists(client.process_id().unwrap()));
    client.close();
}
