//! An agent as a server of the Model Context Protocol, with the framework's own client.

use agent::{
    Tool,
    tools::mcp::{Client, Http},
};
use agent_server::{Key, Keys, Scope, Server};
use serde_json::json;

use crate::{scenes::actor, served::Served};

fn client(served: &Served, key: Option<&str>) -> Client {
    let http = Http::new(format!("http://{}/mcp/actor", served.address()));
    let http = key.into_iter().fold(http, |http, key| http.bearer(key));
    Client::builder("actor", http).elicitation_by(async |_| json!({"decision": "approve"})).build().expect("builds")
}

/// Calls the tool that the agent is, as an agent of its own does.
async fn called(client: &Client, task: &str) -> String {
    let tools = client.offered().await.expect("tools");
    let [tool] = &*tools else { panic!("one tool") };
    call(tool.as_ref(), task).await
}
