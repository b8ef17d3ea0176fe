//! Property tests of the contracts, against naive models.

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
