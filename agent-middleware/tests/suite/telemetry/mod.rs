//! Telemetry: the names of the conventions, the structure of traces, captured content, and the
//! export.

mod checklist;
mod content;
mod context;
mod ends;
mod golden;
mod otlp;
mod recorder;
mod told;
mod world;
