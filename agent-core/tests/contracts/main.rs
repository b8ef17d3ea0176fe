//! What the contracts promise, against naive models of the same.

mod anchors;
mod any;
mod checkpoint;
mod events;
mod fold;
mod fold_model;
mod history;
mod history_list;
mod log;
mod service;
mod storage;
