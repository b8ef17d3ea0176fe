//! Limits on the usage and the duration of a run, and their consequences.

mod budgets;
mod deadlines;
mod drain;
mod stored_calls;
