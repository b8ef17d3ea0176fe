//! Events that a running run reports.
//!
//! Applications read [`Event`]s from a run's [`EventStream`], or attach an [`EventSink`] to it;
//! authors of middlewares emit custom events ([`EventKind::Custom`]).
//!
//! ```
//! use agent_core::event::{Event, EventKind, EventSink};
//!
//! /// Prints the warnings of a run.
//! fn warnings() -> impl EventSink {
//!     |event: &Event| {
//!         if let EventKind::Warning { message } = &event.kind {
//!             eprintln!("{}: {message}", event.ids.agent);
//!         }
//!     }
//! }
//! # let _ = warnings();
//! ```

mod compaction;
mod cut;
pub(crate) mod emitter;
mod held;
pub(crate) mod hub;
mod kind;

pub use self::{
    compaction::{Compaction, CompactionMode},
    emitter::EventSink,
    hub::EventStream,
    kind::{CircuitState, Event, EventKind, Position},
};
pub(crate) use self::{emitter::Emitter, hub::EventHub};
