//! The suites of agent-llm, in one program.

mod abilities;
mod anthropic;
mod bedrock;
mod cache;
mod cassette;
mod common;
mod conformance;
mod embed;
mod faults;
mod gemini;
mod http_model;
mod http_transport;
mod identity;
mod models;
mod network;
mod offline;
mod openai_chat;
mod openai_responses;
mod providers;
mod rate_limit;
mod refusals;
mod resilience;
mod samples;
mod sse;
mod xml_tools;
