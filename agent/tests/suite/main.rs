//! The suites of the facade, in one program.

mod facade;
mod files;
mod offline;
mod peers;
mod reliability;
mod sessions;
