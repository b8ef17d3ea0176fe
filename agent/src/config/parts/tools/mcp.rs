//! `mcp`: the tools of a server of the Model Context Protocol.

use std::collections::BTreeMap;

use agent_core::{Error, Result};
use agent_exec::{AgentSoFar, ModelDefinition};
use agent_tools::{
    Stdio,
    mcp::{Client, Endpoint, Http, OAuth, Protocol},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{FilePath, ModelRef, SecretText, seconds},
    parts::change::Permission,
};

/// The tools of a server of the Model Context Protocol: a program that is started, or an address.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct McpConfig {
    /// Name of the server, and the prefix of the names of its tools.
    #[schemars(required, length(min = 1))]
    name: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// Variables of the program's environment.
    env: BTreeMap<String, String>,
    /// Variables of this process's environment that the program is given.
    pass: Vec<String>,
    /// The program's folder. Default: that of this process.
    directory: Option<FilePath>,
    /// The server's address, in the place of a program.
    url: Option<String>,
    /// Headers of each request to the address.
    headers: BTreeMap<String, String>,
    /// Prefix of the name of each tool. Default: the name of the server and `_`.
    prefix: Option<String>,
    /// Patterns of the server's tools that are offered. Default: all.
    allow: Vec<String>,
    /// Patterns of the server's tools that are not offered.
    deny: Vec<String>,
    /// Permission of calls of its tools (allow, ask, deny): a rule of the middleware `approval`.
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
    /// Seconds that a call may take. Default: 60.
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Seconds that a call of single tools may take, by the server's own names of them.
    timeouts: BTreeMap<String, f64>,
    /// OAuth credentials for the address. Default: none, only the headers.
    oauth: Option<Access>,
    /// Seconds until the server is there. Default: 30.
    #[schemars(range(min = 0.001))]
    connect_timeout: Option<f64>,
    /// Most bytes of a result. Default: 1 MiB.
    max_result: Option<usize>,
    /// Fails runs if the server cannot be reached. Default: false, which leaves its tools out.
    required: bool,
    /// Trusts the annotations of the server's tools, also where they relax a check. Default: false.
    trust_hints: bool,
    /// Digests of tools, by the server's own names. Leaves out tools with another digest, and others.
    pin: BTreeMap<String, String>,
    /// Runs calls one after the other. Default: false.
    serial: bool,
    /// Offers the model tools for the server's resources. Default: false.
    resources: bool,
    /// Lets the server ask a person. Default: false.
    elicitation: bool,
    /// The model that the server may ask, as a part of the run and from its budget. Default: none.
    sampling: Option<Sampling>,
    /// Accepts structured content that does not match the schema of its tool. Default: false.
    unchecked_output: bool,
    /// URLs of folders to announce to the server.
    roots: Vec<String>,
    /// The revision of the protocol. Default: `auto`, which probes the server.
    protocol: Revision,
}

/// Revision of the protocol.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Revision {
    /// 2026-07-28 if the server knows it, otherwise an older one.
    #[default]
    Auto,
    /// 2026-07-28.
    Stateless,
    /// 2025-11-25 or older, without a probe.
    Handshake,
}

impl From<Revision> for Protocol {
    fn from(revision: Revision) -> Self {
        match revision {
            Revision::Auto => Self::Auto,
            Revision::Stateless => Self::Stateless,
            Revision::Handshake => Self::Handshake,
        }
    }
}

/// The model that a server may ask.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Sampling {
    /// The model. Default: the agent's own.
    #[schemars(with = "Option<ModelRef>")]
    model: Option<ModelDefinition>,
    /// Most tokens of what it says at a time. Default: what the server asks for.
    #[schemars(range(min = 1))]
    max_tokens: Option<u64>,
}

/// Credentials of a program without a user (OAuth 2, client credentials).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Access {
    /// The id that the server knows the program by.
    client_id: String,
    /// Its secret.
    client_secret: SecretText,
    /// Requested scopes.
    #[serde(default)]
    scopes: Vec<String>,
}

impl Access {
    fn oauth(&self) -> OAuth {
        let access = OAuth::client_credentials(&self.client_id, &self.client_secret.0);
        self.scopes.iter().fold(access, OAuth::scope)
    }
}

pub(super) fn tools(config: McpConfig, from: AgentSoFar<'_>) -> Result<Client> {
    let endpoint = endpoint(&config)?;
    let mut client = Client::builder(config.name, endpoint).protocol(config.protocol.into());
    if let Some(prefix) = config.prefix {
        client = client.prefix(prefix);
    }
    for pattern in config.allow {
        client = client.allow(pattern);
    }
    for pattern in config.deny {
        client = client.deny(pattern);
    }
    if let Some(time) = config.timeout {
        client = client.timeout(seconds(time)?);
    }
    for (tool, time) in config.timeouts {
        client = client.timeout_of(tool, seconds(time)?);
    }
    if let Some(time) = config.connect_timeout {
        client = client.connect_timeout(seconds(time)?);
    }
    if let Some(most) = config.max_result {
        client = client.max_result(most);
    }
    if let Some(Sampling { model, max_tokens }) = config.sampling {
        client = client.sampling(match model {
            Some(model) => from.registry.make_model(&model)?,
            None => from.model.clone(),
        });
        client = max_tokens.into_iter().fold(client, agent_tools::mcp::ClientBuilder::max_sampled_tokens);
    }
    for (tool, digest) in config.pin {
        client = client.pin(tool, digest);
    }
    for root in config.roots {
        client = client.root(root);
    }
    for (wanted, set) in [
        (config.required, agent_tools::mcp::ClientBuilder::required as fn(_) -> _),
        (config.trust_hints, agent_tools::mcp::ClientBuilder::trust_hints),
        (config.serial, agent_tools::mcp::ClientBuilder::serial),
        (config.resources, agent_tools::mcp::ClientBuilder::resource_tools),
        (config.elicitation, agent_tools::mcp::ClientBuilder::elicitation),
        (config.unchecked_output, agent_tools::mcp::ClientBuilder::unchecked_output),
    ] {
        client = if wanted { set(client) } else { client };
    }
    client.build()
}

/// True for a header with the value that the client sends anyway.
///
/// # Errors
/// Another value of a header that the protocol sets.
fn is_own(name: &str, value: &str) -> Result<bool> {
    let has = |part: &str| value.split(',').any(|given| given.split(';').next().unwrap_or_default().trim() == part);
    let is_same = match name.to_ascii_lowercase().as_str() {
        "accept" => has("*/*") || has("application/json") && has("text/event-stream"),
        "content-type" => has("application/json"),
        "mcp-session-id" | "mcp-protocol-version" | "mcp-method" | "mcp-name" | "last-event-id" => false,
        _ => return Ok(false),
    };
    match is_same {
        true => Ok(true),
        false => Err(Error::config(format!("the header '{name}' is set by the protocol: leave it out"))),
    }
}

fn endpoint(config: &McpConfig) -> Result<Endpoint> {
    match (config.command.as_slice(), &config.url) {
        ([program, args @ ..], None) => {
            let mut server = Stdio::new(program).args(args);
            if let Some(directory) = &config.directory {
                server = server.directory(&directory.0);
            }
            for name in &config.pass {
                server = server.pass(name);
            }
            for (name, value) in &config.env {
                server = server.env(name, value);
            }
            Ok(server.into())
        }
        ([], Some(url)) => {
            let mut server = Http::new(url);
            for (name, value) in &config.headers {
                if is_own(name, value)? {
                    continue;
                }
                server = server.header(name, value);
            }
            if let Some(access) = &config.oauth {
                server = server.oauth(access.oauth());
            }
            Ok(server.into())
        }
        _ => Err(Error::config("a server has either a 'command' or a 'url'")),
    }
}
