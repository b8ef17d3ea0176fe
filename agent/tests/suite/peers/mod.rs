//! Other people's agents as sub-agents: they and one of this process pass the same suite.

mod a2a;
mod acp;
mod crash;
mod real;
mod suite;
mod support;
