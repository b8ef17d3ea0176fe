//! Web tools that may reach a test's server.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{Result, Tool, async_trait};
use agent_tools::web::{Resolver, Web, WebBuilder};
use serde_json::{Value, json};

use super::{
    server::{Answer, Server, answer},
    support::call,
};

/// Starts a server with a page per path, and 404 for others.
pub(crate) async fn site(pages: impl IntoIterator<Item = (&'static str, Answer)>) -> Server {
    let pages: HashMap<_, _> = pages.into_iter().collect();
    Server::start(move |path, _| pages.get(path).cloned().unwrap_or_else(|| answer("404 Not Found", "", ""))).await
}

/// Returns tools that may reach this server, and ignore `robots.txt`.
pub(crate) fn builder(server: &Server) -> WebBuilder {
    Web::builder().allow_private(format!("127.0.0.1:{}", server.port)).ignore_robots().apart(Duration::ZERO)
}

/// Resolver with scripted answers; the last answer is repeated.
pub(crate) struct Names(pub(crate) Mutex<HashMap<&'static str, Vec<Vec<IpAddr>>>>);

impl Names {
    pub(crate) fn new(names: impl IntoIterator<Item = (&'static str, Vec<Vec<&'static str>>)>) -> Self {
        let parse = |answers: Vec<Vec<&str>>| {
            let one = |answer: Vec<&str>| answer.iter().map(|ip| ip.parse().expect("an address")).collect();
            answers.into_iter().map(one).collect()
        };
        Self(Mutex::new(names.into_iter().map(|(name, answers)| (name, parse(answers))).collect()))
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut names = self.0.lock().expect("no panic");
        let answers = names.get_mut(host.trim_end_matches('.')).ok_or_else(|| io::Error::other("not known"))?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

/// Returns the output of `web_fetch` of these tools, or its error's message.
pub(crate) async fn fetch(web: &Web, url: &str) -> Result<String, String> {
    fetch_with(web, json!({"url": url})).await
}

pub(crate) async fn fetch_with(web: &Web, args: Value) -> Result<String, String> {
    let output = call(&*tool(web, "web_fetch"), args).await;
    output.map(|output| output.to_text()).map_err(|e| e.message().to_owned())
}

pub(crate) fn tool(web: &Web, name: &str) -> Arc<dyn Tool> {
    web.tools().into_iter().find(|tool| tool.spec().name == name).expect("the tool is there")
}

/// Returns the text between the delimiters of an output.
pub(crate) fn inside(output: &str) -> &str {
    let (_, rest) = output.split_once("<untrusted id=").expect("a beginning");
    let (_, rest) = rest.split_once(">\n").expect("a line");
    rest.rsplit_once("\n</untrusted id=").expect("an end").0
}
