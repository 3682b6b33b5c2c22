//! The embedded runtime: sessions that answer offline and tell what the official runtime tells in its profile
//! `sdk-minimal`, event by event.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic"))]

mod attachment;
#[path = "../../../base64.rs"]
#[allow(dead_code, reason = "shared with the library, which also encodes")]
mod base64;
mod event;
mod model;
mod player;
mod script;
mod sha256;
mod shell;
mod store;
mod text;
mod value;

use std::path::PathBuf;
use std::sync::Arc;

use dsh_wire::json::{Json, JsonBuf};
use dsh_wire::server::{Opening, Refusal};
use dsh_wire::stdio::Sink;
use dsh_wire::stdio::turns::{NewSession, TurnHost};
use dsh_wire::wire::InitializeParams;

use player::Player;
pub(crate) use script::Script;
pub(crate) use shell::end_all as end_commands;
use store::Store;

/// The one provider.
const PROVIDER: &str = "deepseek-official";

const EFFORTS: [&str; 3] = ["low", "high", "max"];

pub(crate) struct Host {
    /// `None`: sessions are forgotten.
    store: Option<Store>,
    script: Arc<Script>,
    /// Whether prompts may run commands.
    shell: bool,
}

impl Host {
    /// Sessions are stored under `home`, if there is one.
    pub(crate) fn new(home: Option<PathBuf>, script: Script, shell: bool) -> Self {
        Self { store: home.map(Store::new), script: Arc::new(script), shell }
    }
}

impl TurnHost for Host {
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

    fn take_in(&self, content_blocks: Json<'_>) -> Result<Option<JsonBuf>, Refusal> {
        attachment::take_in(content_blocks)
    }

    fn open(&self, how: Opening, _: &InitializeParams, sink: &Sink) -> Result<NewSession, Refusal> {
        let (past, keep) = match (how, &self.store) {
            (Opening::Create, None) => (None, None),
            (Opening::Create, Some(store)) => (None, Some(store.create(sink)?)),
            (Opening::Resume, None) => return Err(Refusal::session_not_found(sink.session())),
            (Opening::Resume, Some(store)) => store.resume(sink).map(|(past, keep)| (Some(past), Some(keep)))?,
        };
        let mut new = NewSession::new(Player::new(&self.script, self.shell, past.as_ref()));
        let past = past.unwrap_or_default();
        (new.turns, new.cwd, new.keep) = (past.turn, past.cwd, keep);
        Ok(new)
    }
}
