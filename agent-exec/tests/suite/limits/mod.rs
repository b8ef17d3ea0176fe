//! How much a run may use and how long it may take, and what becomes of it then.

mod budgets;
mod deadlines;
mod drain;
