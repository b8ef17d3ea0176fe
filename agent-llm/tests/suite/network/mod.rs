//! The transport over real sockets: TLS, HTTP/2, proxies, limits, compressed answers.
#![cfg(feature = "http")]

mod abuse;
mod arsenal;
use crate::common;
mod encoding;
mod frames;
mod garbled;
mod goodbye;
mod http2;
mod limits;
mod modes;
mod proxies;
mod proxy;
#[cfg(feature = "reqwest")]
mod reqwest;
mod server;
mod tls;
