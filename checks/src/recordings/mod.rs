//! Recorded exchanges with real servers, and what must be known of each wire to read them.

mod exchange;
mod wires;

pub(crate) use self::{
    exchange::{Exchange, Frames, Recording},
    wires::{Called, Said, WIRES, Wire},
};
