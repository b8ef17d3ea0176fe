//! The UI message stream of Vercel's AI SDK: `POST /ui/{agent}`, for `useChat` with its `DefaultChatTransport`.
//!
//! A chat is a session. As with AG-UI the messages that come are not the history: what is new in them is taken, and the answers to what
//! the run waits for. Tools of the client come as `tools` in the transport's `body`.

mod endpoint;
mod input;
mod projection;

pub(crate) use self::endpoint::router;
pub use self::projection::UiStream;
