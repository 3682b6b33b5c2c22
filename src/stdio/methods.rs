//! The protocol, method by method, once for each client that can start a call and wait for its end.

/// Implements the methods on `$client` with the receiver given. It needs `call_at_once`.
macro_rules! protocol_methods {
    ($client:ty, $this:ident, $($receiver:tt)+) => {
        impl $client {
            /// The handshake. It answers when the runtime is ready.
            ///
            /// # Errors
            /// Those of any call: [`ErrorKind::Rpc`], [`TimedOut`](ErrorKind::TimedOut), [`Closed`](ErrorKind::Closed),
            /// [`Protocol`](ErrorKind::Protocol).
            pub fn initialize($($receiver)+, params: &InitializeParams) -> Result<InitializeResult, Error> {
                $this.call_method::<Initialize>(params, &CallOptions::default())
            }

            /// Puts a message into the inbox of a session; a session that is not known is created.
            ///
            /// The events that this causes come before the answer, so subscribe first.
            ///
            /// # Errors
            /// Those of any call.
            pub fn prompt(
                $($receiver)+,
                session_id: impl Into<JsonString>,
                content_blocks: &[ContentBlock],
            ) -> Result<PromptResult, Error> {
                let params = PromptParams { session_id: session_id.into(), content_blocks: content_blocks.to_vec() };
                $this.call_method::<Prompt>(&params, &CallOptions::default()).map_err(|error| error.on(params.session_id))
            }

            /// Restores a stored session. From 0.2.1.
            ///
            /// # Errors
            /// Those of any call.
            pub fn resume($($receiver)+, session_id: impl Into<JsonString>) -> Result<(), Error> {
                $this.session_call::<Resume>(session_id).map(drop)
            }

            /// Waits until the session is idle and its sub-agents have finished. From 0.2.1.
            ///
            /// # Errors
            /// Those of any call.
            pub fn wait($($receiver)+, session_id: impl Into<JsonString>) -> Result<(), Error> {
                $this.session_call::<Wait>(session_id).map(drop)
            }

            /// The directory that a session works in. From 0.2.1.
            ///
            /// # Errors
            /// Those of any call.
            pub fn working_directory($($receiver)+, session_id: impl Into<JsonString>) -> Result<JsonString, Error> {
                $this.session_call::<WorkingDirectoryGet>(session_id).map(|result| result.cwd)
            }

            /// Moves a session to another directory, and returns its absolute path. From 0.2.1.
            ///
            /// # Errors
            /// Those of any call.
            pub fn set_working_directory(
                $($receiver)+,
                session_id: impl Into<JsonString>,
                path: impl Into<JsonString>,
            ) -> Result<JsonString, Error> {
                let params = WorkingDirectorySetParams { session_id: session_id.into(), path: path.into() };
                match $this.call_method::<WorkingDirectorySet>(&params, &CallOptions::default()) {
                    Ok(result) => Ok(result.cwd),
                    Err(error) => Err(error.on(params.session_id)),
                }
            }

            fn session_call<M: Method<Params = SessionParams>>(
                $($receiver)+,
                session_id: impl Into<JsonString>,
            ) -> Result<M::Result, Error> {
                let params = SessionParams::new(session_id);
                $this.call_method::<M>(&params, &CallOptions::default()).map_err(|error| error.on(params.session_id))
            }

            /// A call of any method; the result is the JSON text that came.
            ///
            /// # Errors
            /// Those of any call.
            pub fn call($($receiver)+, method: &str, params: &(impl Serialize + ?Sized)) -> Result<JsonBuf, Error> {
                $this.call_with(method, params, &CallOptions::default())
            }

            /// As [`call`](Self::call), with options. `R` is what the result is read as.
            ///
            /// # Errors
            /// Those of any call; [`ErrorKind::Aborted`].
            pub fn call_with<R: for<'a> Decode<'a>>(
                $($receiver)+,
                method: &str,
                params: &(impl Serialize + ?Sized),
                options: &CallOptions,
            ) -> Result<R, Error> {
                $this.call_at_once(method, params, options)
            }

            /// A call of a known method, with options.
            ///
            /// # Errors
            /// Those of any call; [`ErrorKind::Aborted`].
            pub fn call_method<M: Method>($($receiver)+, params: &M::Params, options: &CallOptions) -> Result<M::Result, Error> {
                $this.call_with(M::NAME, params, options)
            }
        }
    };
}

pub(super) use protocol_methods;
