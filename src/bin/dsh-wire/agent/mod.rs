//! The embedded runtime: sessions that answer offline and tell what the official runtime tells in its profile
//! `sdk-minimal`, event by event.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic"))]

mod event;
mod model;
mod session;
mod shell;
mod store;
mod text;
mod turn;
mod value;

use std::path::PathBuf;

use dsh_wire::server::{Opening, Refusal};
use dsh_wire::stdio::{AgentHost, Sink};
use dsh_wire::wire::InitializeParams;

use session::Session;
use store::{Log, Store};

/// The one provider.
const PROVIDER: &str = "deepseek-official";

const EFFORTS: [&str; 3] = ["low", "high", "max"];

pub(crate) struct Host {
    /// `None`: sessions are forgotten.
    store: Option<Store>,
}

impl Host {
    /// Sessions are stored under `home`, if there is one.
    pub(crate) fn new(home: Option<PathBuf>) -> Self {
        Self { store: home.map(Store::new) }
    }
}

impl AgentHost for Host {
    type Agent = Session;

    fn route(&self, route: &InitializeParams) -> Result<(), Refusal> {
        let InitializeParams { provider, model, .. } = route;
        if provider.as_json_str() != PROVIDER {
            return Err(Refusal::unknown_provider(provider));
        }
        if model.as_json_str() == "" || model.as_json_str() == "undefined" {
            return Err(Refusal::new(format!(
                "adapter returned invalid exact model metadata for provider \"{provider}\" model \"{model}\""
            )));
        }
        match &route.reasoning_effort {
            Some(effort) if !EFFORTS.iter().any(|known| effort.as_json_str() == **known) => Err(Refusal::new(format!(
                "provider \"{provider}\" model \"{model}\" does not support reasoning effort \"{effort}\""
            ))),
            _ => Ok(()),
        }
    }

    fn open(&self, how: Opening, route: &InitializeParams, sink: Sink) -> Result<Session, Refusal> {
        let (log, past) = match (how, &self.store) {
            (Opening::Create, None) => (Log::forgotten(sink), None),
            (Opening::Create, Some(store)) => (store.create(sink)?, None),
            (Opening::Resume, None) => return Err(Refusal::session_not_found(sink.session())),
            (Opening::Resume, Some(store)) => store.resume(sink).map(|(log, past)| (log, Some(past)))?,
        };
        Ok(Session::new(route, log, past))
    }
}
