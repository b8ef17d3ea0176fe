//! JSON Schema of files, and the check of files against it.

mod branch;
mod check;
mod whole;

pub(super) use self::{check::check, whole::whole};
