//! Either client behind the same methods, so that each conversation is held with both.

use std::time::Duration;

use dsh_wire::client::{Counters, Delivery, Filter, Policy};
use dsh_wire::json::{JsonBuf, JsonString};
use dsh_wire::stdio::{
    CallOptions, CloseReport, DeepSeekHarness, Error, HarnessClient, Input, PendingCall, RunOptions, RunResult,
    SharedClient, SharedSubscription, Subscription,
};
use dsh_wire::wire::{Empty, InitializeParams, InitializeResult, Method as _, Prompt, PromptParams, PromptResult};

/// Who drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    Caller,
    Shared,
}

/// A client that is driven so.
pub(crate) enum Either {
    Caller(DeepSeekHarness),
    Shared(SharedClient),
}

/// A subscription of such a client.
pub(crate) enum Events {
    Caller(Subscription),
    Shared(SharedSubscription),
}

/// The same call on either.
macro_rules! on {
    ($either:expr, $client:ident => $call:expr) => {
        match $either {
            Either::Caller(harness) => {
                let $client = harness.client();
                $call
            }
            Either::Shared($client) => $call,
        }
    };
}

impl Either {
    pub(crate) fn new(client: HarnessClient, driver: Driver) -> Self {
        match driver {
            Driver::Caller => Self::Caller(DeepSeekHarness::with_client(client)),
            Driver::Shared => Self::Shared(client.into_shared().unwrap()),
        }
    }

    pub(crate) fn initialize(&mut self, params: &InitializeParams) -> Result<InitializeResult, Error> {
        on!(self, client => client.initialize(params))
    }

    pub(crate) fn run(
        &mut self,
        session: &str,
        input: impl Into<Input>,
        options: RunOptions<'_>,
    ) -> Result<RunResult, Error> {
        match self {
            Self::Caller(harness) => harness.session(session).run(input, options),
            Self::Shared(client) => client.session(session).run(input, options),
        }
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<PromptResult, Error> {
        self.start_prompt(session, text).and_then(|call| self.finish(call))
    }

    pub(crate) fn start_prompt(&mut self, session: &str, text: &str) -> Result<PendingCall<PromptResult>, Error> {
        let params = PromptParams::text(session, text);
        on!(self, client => client.start_call(Prompt::NAME, &params, &CallOptions::default()))
    }

    pub(crate) fn finish(&mut self, call: PendingCall<PromptResult>) -> Result<PromptResult, Error> {
        on!(self, client => client.finish(call))
    }

    pub(crate) fn call(&mut self, method: &str) -> Result<JsonBuf, Error> {
        on!(self, client => client.call(method, &()))
    }

    pub(crate) fn shutdown(&mut self) -> Result<Empty, Error> {
        on!(self, client => client.call_with("shutdown", &(), &CallOptions::default()))
    }

    pub(crate) fn resume(&mut self, session: &str) -> Result<(), Error> {
        on!(self, client => client.resume(session))
    }

    pub(crate) fn wait(&mut self, session: &str) -> Result<(), Error> {
        on!(self, client => client.wait(session))
    }

    pub(crate) fn working_directory(&mut self, session: &str) -> Result<JsonString, Error> {
        on!(self, client => client.working_directory(session))
    }

    pub(crate) fn set_working_directory(&mut self, session: &str, path: &str) -> Result<JsonString, Error> {
        on!(self, client => client.set_working_directory(session, path))
    }

    pub(crate) fn subscribe(&mut self, filter: Filter) -> Events {
        match self {
            Self::Caller(harness) => Events::Caller(harness.client().subscribe(filter, Policy::Lossless)),
            Self::Shared(client) => Events::Shared(client.subscribe(filter, Policy::Lossless)),
        }
    }

    /// The next delivery of one of its subscriptions.
    pub(crate) fn next(&mut self, events: &Events) -> Delivery {
        const PATIENCE: Duration = Duration::from_secs(30);
        let delivery = match (self, events) {
            (Self::Caller(harness), Events::Caller(events)) => events.next_timeout(harness.client(), PATIENCE),
            (Self::Shared(_), Events::Shared(events)) => events.next_timeout(PATIENCE),
            _ => panic!("a subscription of another client"),
        };
        delivery.unwrap().expect("a delivery in time")
    }

    pub(crate) fn process_id(&mut self) -> Option<u32> {
        on!(self, client => client.process_id())
    }

    pub(crate) fn counters(&mut self) -> Counters {
        on!(self, client => client.counters())
    }

    pub(crate) fn close(&mut self) -> CloseReport {
        on!(self, client => client.close())
    }
}
