//! Features that users of Haystack's Agent know by name: prompts and run inputs, confirmation,
//! snapshots, agents as data.

mod confirmation;
mod definitions;
mod lifecycle;
mod prompts;
mod results;
mod snapshots;
