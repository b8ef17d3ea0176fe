//! AG-UI: the projection, and the endpoint over real sockets.

mod any_events;
mod endpoint;
mod projection;
mod rules;
