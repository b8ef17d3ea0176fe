//! What a run reports while it is under way.

mod compaction;
pub(crate) mod emitter;
pub(crate) mod hub;
mod kind;

pub use self::{
    compaction::{Compaction, CompactionMode},
    emitter::EventSink,
    hub::EventStream,
    kind::{CircuitState, Event, EventKind, Position},
};
pub(crate) use self::{emitter::Emitter, hub::EventHub};
