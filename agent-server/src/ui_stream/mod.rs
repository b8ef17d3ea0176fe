//! UI message stream of Vercel's AI SDK: `POST /ui/{agent}`, for `useChat` with its
//! `DefaultChatTransport`.
//!
//! A chat is a session. As with AG-UI, the session's own history is authoritative: only new
//! messages and answers to open questions are used. Client-side tools are passed as `tools` in the
//! transport's `body`.

mod endpoint;
mod input;
mod projection;

pub(crate) use self::endpoint::router;
pub use self::projection::UiStream;
