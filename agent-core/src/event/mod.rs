//! What a run reports while it is under way.

mod emitter;
mod hub;
mod kind;

pub use self::{
    emitter::{Emitter, EventSink},
    hub::{EventHub, EventStream},
    kind::{CircuitState, Event, EventKind, Position},
};
