//! What a run reports while it is under way.
//!
//! Applications read [`Event`]s from a run's [`EventStream`], or attach an [`EventSink`] to it; authors of middlewares send kinds
//! of their own ([`EventKind::Custom`]).
//!
//! ```
//! use agent_core::event::{Event, EventKind, EventSink};
//!
//! /// Says what went wrong and was got over.
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
