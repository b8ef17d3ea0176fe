//! JSON Schema of files, and the check of a file against it.

mod branch;
mod check;
mod published;
mod whole;

pub(super) use self::{check::check, published::published, whole::whole};
