//! The methods, notifications and payloads of the SDK, typed, and open where the protocol is.
//!
//! Every payload is one type, written down once as a list of its members. Params and results own what they hold, as
//! they are kept across calls. Notifications and events are views that lend from the line they came on, and what is
//! large in them stays as it came until somebody asks: reading a notification costs one walk over its members.
//!
//! Three revisions of the protocol are in the field, and the handshake tells none of them apart, so each type reads
//! all of them; what only one of them has is marked "from 0.2.1" or "before 0.1.1". What a type does not know is
//! passed over (and is in the raw [`Json`](crate::json::Json) beside it), never an error; what it knows must be as it
//! should be. The rules are at [`Decode`].
//!
//! ```
//! use dsh_wire::json::Json;
//! use dsh_wire::wire::{EventData, Notification, Status};
//!
//! let frame = Json::new(
//!     r#"{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"s1","event":{"type":"turn/end","seq":13,
//!     "time":1796028813946,"data":{"turn":1,"reason":{"kind":"completed"}}}}}"#,
//! )?;
//! let (Some(method), Some(params)) = (frame.member("method").and_then(|m| m.as_str()), frame.member("params")) else {
//!     unreachable!("a notification has both");
//! };
//!
//! let notification = Notification::decode(method, params)?;
//! assert_eq!(notification.session_id().unwrap(), "s1");
//! let event = notification.event().unwrap();
//! assert_eq!(event.seq, 13);
//! match event.decode_data()? {
//!     EventData::TurnEnd(end) => assert_eq!(end.finish_reason().unwrap(), "completed"),
//!     EventData::AssistantMessage(message) => println!("{}", message.text()),
//!     _ => {}
//! }
//! assert_eq!(notification.status(), None::<Status>);
//!
//! // To keep it, copy the text; the view is taken again.
//! let kept = notification.to_buf();
//! assert_eq!(kept.view()?, notification);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#[macro_use]
mod payload;

pub mod agent;
mod content;
mod decode;
pub mod message;
mod notification;
mod request;
pub mod session;
mod session_event;
pub mod stream;
pub mod turn;

pub use content::{Block, Blocks, ContentBlock, Dimensions, FileAttachment, ImageAttachment};
pub use decode::{Decode, DecodeError, Expected, Lazy, List, ListIter, Nullable, Problem};
pub use notification::*;
pub use request::*;
pub use session_event::{EventData, SessionEvent, SurfaceOp};
