//! What a run reports while it is under way.

mod compaction;
mod emitter;
mod hub;
mod kind;

pub use self::{
    compaction::{Compaction, CompactionMode},
    emitter::{Emitter, EventSink},
    hub::{EventHub, EventStream},
    kind::{CircuitState, Event, EventKind, Position},
};
