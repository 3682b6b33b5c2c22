//! One row of the table of faults on one of the published Rust SDKs: `dsh-wire-peer-faults SDK RUNTIME ROWS NUMBER`.
//! Prints one line: `ok`, or what came instead. `tests/interop/faults` runs it, and ends it where it hangs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What came of a request.
enum End {
    Result(Value),
    Rpc,
    TimedOut,
    Closed,
    Other(String),
    Hangs,
}

/// What is asked of an SDK.
trait Sdk {
    fn request(&self, method: &str, params: Value) -> impl Future<Output = End>;
}

struct First(deepseek_harness_sdk::HarnessClient);
struct Second(deepseek_harness_sdk_rs::HarnessClient);

impl Sdk for First {
    async fn request(&self, method: &str, params: Value) -> End {
        use deepseek_harness_sdk::Error;
        match self.0.request(method, Some(params)).await {
            Ok(value) => End::Result(value),
            Err(Error::JsonRpc { .. }) => End::Rpc,
            Err(Error::RequestTimeout { .. }) => End::TimedOut,
            Err(Error::TransportClosed(_) | Error::Io(_)) => End::Closed,
            Err(error) => End::Other(error.to_string()),
        }
    }
}

impl Sdk for Second {
    async fn request(&self, method: &str, params: Value) -> End {
        use deepseek_harness_sdk_rs::SdkError;
        match self.0.request(method, Some(params)).await {
            Ok(value) => End::Result(value),
            Err(SdkError::JsonRpcResponse { .. }) => End::Rpc,
            Err(SdkError::RequestTimeout { .. }) => End::TimedOut,
            Err(SdkError::TransportClosed { .. } | SdkError::Io { .. }) => End::Closed,
            Err(error) => End::Other(error.to_string()),
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [sdk, runtime, rows, number] = &args[..] else { panic!("see the head of faults.rs") };
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(rows).expect("the rows")).expect("JSON");
    let row = &rows[number.parse::<usize>().expect("a number")];
    let flags: Vec<String> = row["flags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|flag| format!("--{flag}"))
        .collect();
    let timeout = row["timeout_ms"].as_u64().map(Duration::from_millis);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let verdict = tokio.block_on(async {
        if sdk == "deepseek-harness-sdk" {
            let launch = deepseek_harness_sdk::LaunchSpec {
                program: runtime.into(),
                args: flags.iter().map(Into::into).collect(),
                envs: Default::default(),
                cwd: None,
            };
            let timeouts = deepseek_harness_sdk::ClientTimeouts { request_timeout: timeout, ..Default::default() };
            let client = deepseek_harness_sdk::HarnessClient::spawn(launch, timeouts).expect("a child");
            check(&First(client), row).await
        } else {
            let options = deepseek_harness_sdk_rs::HarnessClientOptions {
                launch_args_override: Some([runtime.clone()].into_iter().chain(flags).collect()),
                request_timeout_seconds: timeout.map(|timeout| timeout.as_secs_f64()),
                ..Default::default()
            };
            let client = deepseek_harness_sdk_rs::HarnessClient::new(options);
            client.start().await.expect("a child");
            check(&Second(client), row).await
        }
    });
    println!("{verdict}");
    // Not in order: what is left behind is the script's to end.
    std::process::exit(0);
}

async fn check(sdk: &impl Sdk, row: &Value) -> String {
    let text = |member: &str| row[member].as_str().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(row["after_ms"].as_u64().unwrap_or(0))).await;
    let big = if text("call") == "big" { "x".repeat(1 << 20) } else { String::new() };
    let bound = Duration::from_millis(row["within_ms"].as_u64().unwrap_or(2000));
    let start = Instant::now();
    let end = limited(sdk.request(text("call"), json!({ "text": big })), 2 * bound).await;
    let took = start.elapsed();
    let good = match (text("expect"), &end) {
        (_, End::Hangs) => return "hangs".into(),
        ("result", End::Result(value)) if *value != row["value"] => return format!("another result: {value}"),
        ("result", End::Result(_)) | ("settles", End::Result(_) | End::Rpc) => true,
        ("rpc", End::Rpc) | ("timeout", End::TimedOut) | ("closed", End::Closed) => true,
        _ => false,
    };
    if !good {
        return name(&end);
    }
    if took > bound {
        return format!("late: {:.1} s", took.as_secs_f64());
    }
    let expected = match text("after") {
        "lives" => End::Result(Value::Null),
        "closed" => End::Closed,
        _ => return "ok".into(),
    };
    match (limited(sdk.request("echo", json!({})), bound).await, expected) {
        (End::Result(_), End::Result(_)) | (End::Closed, End::Closed) => "ok".into(),
        (end, _) => format!("then: {}", name(&end)),
    }
}

async fn limited(request: impl Future<Output = End>, limit: Duration) -> End {
    tokio::time::timeout(limit, request).await.unwrap_or(End::Hangs)
}

fn name(end: &End) -> String {
    match end {
        End::Result(_) => "a result".into(),
        End::Rpc => "an RPC error".into(),
        End::TimedOut => "timed out".into(),
        End::Closed => "connection lost".into(),
        End::Other(text) => text.chars().take(60).collect(),
        End::Hangs => "hangs".into(),
    }
}
