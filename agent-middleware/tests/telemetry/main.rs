//! Telemetry: the names of the conventions, the shape of traces, what is captured, and how it leaves the process.

mod checklist;
mod content;
mod context;
mod ends;
mod golden;
mod otlp;
mod recorder;
mod told;
mod world;
