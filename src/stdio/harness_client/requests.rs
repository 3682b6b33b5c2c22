//! The requests that the runtime makes: whether they are taken or refused, and what is said to them.

use std::sync::Arc;

use serde::Serialize;

use super::HarnessClient;
use crate::client::{Client, RuntimeRequest};
use crate::frame::INTERNAL_ERROR;
use crate::peer::Reply;
use crate::stdio::error::Error;
use crate::stdio::run::Answer;

const ANSWER: &str = "answer a request of the runtime";
const REFUSE: &str = "refuse a request of the runtime";

/// Who answers the requests of the runtime. They are taken while the user or a run will, and refused otherwise.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Whether the user takes them.
    by_user: bool,
    /// Held by each run that answers them as well.
    answering: Arc<()>,
}

impl Requests {
    fn choose(&self, client: &mut Client) {
        let take = self.by_user || Arc::strong_count(&self.answering) > 1;
        client.take_requests(take);
        while !take && let Some(request) = client.next_request() {
            let (_, mut outgoing) = client.peer_mut().split();
            // It fails only where the output has ended.
            let _ = outgoing.refuse_method(request.reply, request.method.as_json_str());
        }
    }
}

/// The requests of the runtime.
impl HarnessClient {
    /// Whether requests of the runtime are kept for [`next_request`](Self::next_request). Otherwise, and at first,
    /// they are refused with -32601, also those that have been kept and not taken.
    ///
    /// A runtime may well wait for the answer before it goes on, so during a run that blocks it is
    /// [`RunOptions::on_request`](crate::stdio::RunOptions::on_request) that answers.
    pub fn take_requests(&mut self, take: bool) {
        self.requests.by_user = take;
        self.choose_requests();
    }

    /// Requests are taken until this is dropped.
    pub(in crate::stdio) fn answering(&mut self) -> Arc<()> {
        let answering = Arc::clone(&self.requests.answering);
        self.choose_requests();
        answering
    }

    /// Has requests taken or refused, as it is by now.
    pub(in crate::stdio) fn choose_requests(&mut self) {
        self.requests.choose(&mut self.connection.client);
    }

    /// The oldest request of the runtime that has not been taken. Reads nothing, so [`pump`](Self::pump) goes with it.
    pub fn next_request(&mut self) -> Option<RuntimeRequest> {
        self.connection.client.next_request()
    }

    /// Answers a request of the runtime.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.queue_answer(reply, result)?;
        self.flush(ANSWER)
    }

    pub(in crate::stdio) fn queue_answer(
        &mut self,
        reply: Reply,
        result: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        let queued = self.connection.client.answer(reply, result);
        queued.map_err(|error| self.not_sent(ANSWER, error.why))
    }

    /// Answers a request of the runtime with an error.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Error> {
        self.queue_refusal(reply, code, message, data)?;
        self.flush(REFUSE)
    }

    /// The answer of a run to a request of the runtime.
    pub(in crate::stdio) fn queue_answer_of_run(&mut self, reply: Reply, answer: &Answer) {
        // Either fails only where the output has ended, which the run will find out.
        let _ = match answer {
            Ok(result) => self.queue_answer(reply, result),
            Err(error) => {
                let code = error.code.unwrap_or(INTERNAL_ERROR);
                self.queue_refusal(reply, code, &error.message, error.data.as_ref())
            }
        };
    }

    pub(in crate::stdio) fn queue_refusal(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Error> {
        let queued = self.connection.client.refuse(reply, code, message, data);
        queued.map_err(|error| self.not_sent(REFUSE, error.why))
    }
}
