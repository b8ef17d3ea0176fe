//! Connection to the models of a file: its own providers, and the transport.

use agent_core::{Error, Result};
use agent_llm::{HttpTransport, ModelBuilder, Providers};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    file::{FilePath, seconds},
    parts::model::RELAY,
};

/// Providers beside those that are known: a file with a list of them, or the list.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ProvidersKey {
    /// A JSON file.
    File(FilePath),
    /// Each as it would stand in such a file; one that is `like` another says only what differs.
    List(Vec<Map<String, Value>>),
}

/// Transport of requests to the file's models. Default: that of the process.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TransportKeys {
    /// The proxy: `http://`, `https://`, `socks5://` or `socks5h://`, or `none`. One with a password is best referred to, as
    /// `${env.PROXY}`. Default: that of the environment.
    proxy: Option<String>,
    /// Root certificates that are trusted as well, as files in PEM.
    roots: Vec<FilePath>,
    /// Trusts the root certificates of the operating system. Default: true.
    system_roots: Option<bool>,
    /// Client certificate, for servers that request one.
    client_certificate: Option<ClientCertificate>,
    /// Seconds until there is a connection, at most. Default: 15.
    #[schemars(range(min = 0.001))]
    connect_timeout: Option<f64>,
    /// Seconds for which a connection is kept that nobody uses. Default: 90.
    #[schemars(range(min = 0.001))]
    idle_timeout: Option<f64>,
    /// Connections that each server has at most. Default: as many as are needed.
    #[schemars(range(min = 1))]
    max_connections: Option<usize>,
}

/// Client certificate, as PEM files.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClientCertificate {
    /// The certificate, with those between it and its root.
    chain: FilePath,
    /// Its private key.
    key: FilePath,
}

/// Providers and transport of a file's models.
#[derive(Default)]
pub(super) struct Network {
    providers: Option<Providers>,
    transport: Option<HttpTransport>,
}

impl Network {
    /// # Errors
    /// Files that cannot be read, providers that do not hang together.
    pub(super) fn with_providers(mut self, key: Option<ProvidersKey>) -> Result<Self> {
        let known = Providers::of_process();
        self.providers = match key {
            None => None,
            Some(ProvidersKey::File(FilePath(path))) => Some(known.with_file(path)?),
            Some(ProvidersKey::List(list)) => {
                Some(known.with(&list.into_iter().map(Value::Object).collect::<Vec<_>>().into())?)
            }
        };
        Ok(self)
    }

    /// # Errors
    /// Files that cannot be read, and what no transport can have.
    pub(super) fn with_transport(mut self, keys: Option<TransportKeys>) -> Result<Self> {
        self.transport = keys.map(TransportKeys::transport).transpose()?;
        Ok(self)
    }

    /// The model of a name, if it is reached in another way than those of the process.
    pub(super) fn own(&self, name: &str) -> Option<ModelBuilder> {
        let is_own = self.transport.is_some() || self.providers.is_some();
        (is_own && name.contains(':') && !name.starts_with(RELAY)).then(|| self.model(name))
    }

    pub(super) fn model(&self, name: &str) -> ModelBuilder {
        let model = self.providers.clone().unwrap_or_else(Providers::of_process).model(name);
        match &self.transport {
            Some(transport) => model.network(transport.clone()),
            None => model,
        }
    }
}

impl TransportKeys {
    fn transport(self) -> Result<HttpTransport> {
        let mut builder = HttpTransport::builder();
        builder = match self.proxy.as_deref() {
            None => builder,
            Some("none") => builder.no_proxy(),
            Some(url) => builder.proxy(url),
        };
        for path in self.roots {
            builder = builder.add_roots(read(&path)?);
        }
        if self.system_roots == Some(false) {
            builder = builder.no_system_roots();
        }
        if let Some(ClientCertificate { chain, key }) = self.client_certificate {
            builder = builder.client_certificate(read(&chain)?, read(&key)?);
        }
        if let Some(time) = self.connect_timeout {
            builder = builder.connect_timeout(seconds(time)?);
        }
        if let Some(time) = self.idle_timeout {
            builder = builder.idle_timeout(seconds(time)?);
        }
        if let Some(connections) = self.max_connections {
            builder = builder.max_connections(connections);
        }
        builder.build()
    }
}

fn read(FilePath(path): &FilePath) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::config(format!("the file '{path}' cannot be read: {e}")))
}
