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
    fn close(&mut self) -> impl Future<Output = ()>;
}

struct First(deepseek_harness_sdk::HarnessClient);
struct Second(deepseek_harness_sdk_rs::HarnessClient);

impl From<deepseek_harness_sdk::Error> for End {
    fn from(error: deepseek_harness_sdk::Error) -> Self {
        use deepseek_harness_sdk::Error;
        match error {
            Error::JsonRpc { .. } => Self::Rpc,
            Error::RequestTimeout { .. } => Self::TimedOut,
            Error::TransportClosed(_) | Error::Io(_) => Self::Closed,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<deepseek_harness_sdk_rs::SdkError> for End {
    fn from(error: deepseek_harness_sdk_rs::SdkError) -> Self {
        use deepseek_harness_sdk_rs::SdkError;
        match error {
            SdkError::JsonRpcResponse { .. } => Self::Rpc,
            SdkError::RequestTimeout { .. } => Self::TimedOut,
            SdkError::TransportClosed { .. } | SdkError::Io { .. } => Self::Closed,
            error => Self::Other(error.to_string()),
        }
    }
}

impl Sdk for First {
    async fn request(&self, method: &str, params: Value) -> End {
        self.0.request(method, Some(params)).await.map_or_else(End::from, End::Result)
    }

    async fn close(&mut self) {
        // What it says of how it ended does not matter, only what is left.
        let _ = self.0.close().await;
    }
}

impl Sdk for Second {
    async fn request(&self, method: &str, params: Value) -> End {
        self.0.request(method, Some(params)).await.map_or_else(End::from, End::Result)
    }

    async fn close(&mut self) {
        self.0.close().await;
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [sdk, runtime, rows, number] = &args[..] else { panic!("see the head of faults.rs") };
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(rows).expect("the rows")).expect("JSON");
    let row = &rows[number.parse::<usize>().expect("a number")];
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let verdict = tokio.block_on(async {
        match (sdk.as_str(), row["call"] == "run") {
            ("deepseek-harness-sdk", true) => check_run(row, first_run(runtime)).await,
            ("deepseek-harness-sdk", false) => check(First(first(runtime, row)), row).await,
            (_, true) => check_run(row, second_run(runtime)).await,
            (_, false) => check(Second(second(runtime, row).await), row).await,
        }
    });
    println!("{verdict}");
    // Not in order: what is left behind is the script's to end.
    std::process::exit(0);
}

fn timeout(row: &Value) -> Option<Duration> {
    row["timeout_ms"].as_u64().map(Duration::from_millis)
}

fn first(runtime: &str, row: &Value) -> deepseek_harness_sdk::HarnessClient {
    use deepseek_harness_sdk::{ClientTimeouts, HarnessClient, LaunchSpec};
    let launch = LaunchSpec { program: runtime.into(), args: Vec::new(), envs: Default::default(), cwd: None };
    let timeouts = ClientTimeouts { request_timeout: timeout(row), ..Default::default() };
    HarnessClient::spawn(launch, timeouts).expect("a child")
}

async fn first_run(runtime: &str) -> End {
    use deepseek_harness_sdk::{Config, DeepSeekHarness, Input};
    let config = Config { dsh_bin: Some(runtime.into()), ..Default::default() };
    let harness = match DeepSeekHarness::start(config).await {
        Ok(harness) => harness,
        Err(error) => return error.into(),
    };
    let result = harness.start_session(Some("s".into())).run(Input::Text("hello".into()), None).await;
    result.map_or_else(End::from, |result| End::Result(result.final_response.into()))
}

async fn second(runtime: &str, row: &Value) -> deepseek_harness_sdk_rs::HarnessClient {
    use deepseek_harness_sdk_rs::{HarnessClient, HarnessClientOptions};
    let client = HarnessClient::new(HarnessClientOptions {
        launch_args_override: Some([runtime.into()].into()),
        request_timeout_seconds: timeout(row).map(|timeout| timeout.as_secs_f64()),
        ..Default::default()
    });
    client.start().await.expect("a child");
    client
}

async fn second_run(runtime: &str) -> End {
    use deepseek_harness_sdk_rs::{DeepSeekHarness, DeepSeekHarnessConfig, RunOptions};
    let harness = DeepSeekHarness::new(DeepSeekHarnessConfig {
        launch_args_override: Some([runtime.into()].into()),
        ..Default::default()
    });
    let result = harness.run("hello", &RunOptions::default()).await;
    result.map_or_else(End::from, |result| End::Result(result.final_response.into()))
}

/// The bound of a row.
fn bound(row: &Value) -> Duration {
    Duration::from_millis(row["within_ms"].as_u64().unwrap_or(2000))
}

/// A row about one run; what comes after is not asked.
async fn check_run(row: &Value, run: impl Future<Output = End>) -> String {
    judge(row, run).await.unwrap_or_else(|| "ok".into())
}

async fn check(mut sdk: impl Sdk, row: &Value) -> String {
    let text = |member: &str| row[member].as_str().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(row["after_ms"].as_u64().unwrap_or(0))).await;
    let size = usize::try_from(row["size"].as_u64().unwrap_or(0)).expect("a size");
    let request = sdk.request(text("call"), json!({ "text": "x".repeat(size) }));
    if let Some(wrong) = judge(row, request).await {
        return wrong;
    }
    let bound = bound(row);
    let expected = match text("after") {
        "lives" => End::Result(Value::Null),
        "closed" => End::Closed,
        "ends" => {
            let start = Instant::now();
            let closed = tokio::time::timeout(2 * bound, sdk.close()).await;
            let took = start.elapsed();
            return match closed {
                Ok(()) if took <= bound => "ok".into(),
                Ok(()) => format!("then, closed: returns, {:.1} s", took.as_secs_f64()),
                Err(_) => format!("then, closed: hangs > {:.1} s", took.as_secs_f64()),
            };
        }
        _ => return "ok".into(),
    };
    match (limited(sdk.request("echo", json!({})), bound).await, expected) {
        (End::Result(_), End::Result(_)) | (End::Closed, End::Closed) => "ok".into(),
        (End::Hangs, _) => format!("then: hangs > {:.1} s", bound.as_secs_f64()),
        (end, _) => format!("then: {}", name(&end)),
    }
}

/// Waits for the end that a row is about; says what is wrong with it.
async fn judge(row: &Value, end: impl Future<Output = End>) -> Option<String> {
    let bound = bound(row);
    let start = Instant::now();
    let end = limited(end, 2 * bound).await;
    let took = start.elapsed();
    let seconds = took.as_secs_f64();
    match (row["expect"].as_str().unwrap_or_default(), &end) {
        (_, End::Hangs) => Some(format!("hangs > {seconds:.1} s")),
        ("result", End::Result(value)) if *value != row["value"] => {
            Some(format!("another result: {value}").chars().take(80).collect())
        }
        ("result", End::Result(_))
        | ("settles", End::Result(_) | End::Rpc)
        | ("rpc", End::Rpc)
        | ("timeout", End::TimedOut)
        | ("closed", End::Closed) => (took > bound).then(|| format!("late: {seconds:.1} s")),
        _ => Some(format!("{} in {seconds:.1} s", name(&end))),
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
