//! AG-UI: the projection alone, and the endpoint over real sockets.

mod any_events;
mod endpoint;
mod projection;
mod rules;
