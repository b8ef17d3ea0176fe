//! Access to servers that ask for OAuth.

mod access;
mod assertion;
mod kept;
mod loopback;
mod network;
mod store;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result, async_trait, tool::Secret};

pub(super) use self::access::Access;
use self::assertion::Key;
pub use self::{
    loopback::Loopback,
    store::{FileTokens, MemoryTokens, TokenStore},
};

/// How long a user has to let the client in.
const PATIENCE: Duration = Duration::from_secs(300);

/// How a client gets access to a server that asks for OAuth 2.1: see [`Http::oauth`](super::Http::oauth).
///
/// Nothing is done before the server refuses a request. Then its authorization server is found, this client is registered there if
/// it is not [known](Self::client), and access is asked for. Tokens are renewed when they are about to end or refused, and a
/// server that wants to have more allowed is asked for that, twice in a call at most.
///
/// What the server says of its authorization server is not trusted: beside the host of the server itself, and those that are
/// [allowed](Self::allow_host), only addresses of the public internet are reached, and these by HTTPS. Redirects are not followed.
///
/// ```
/// use agent_tools::mcp::{Client, FileTokens, Http, Loopback, OAuth};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// let browser = Loopback::bind(|url| println!("Please open {url}")).await?;
/// let access = OAuth::new(browser).name("My agent").tokens(FileTokens::new("/var/lib/my-agent/tokens"));
/// let client = Client::builder("issues", Http::new("https://mcp.example.org/mcp").oauth(access)).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct OAuth {
    grant: Grant,
    name: String,
    client: Option<(String, Option<Secret>)>,
    client_metadata_url: Option<String>,
    scopes: Vec<String>,
    hosts: Vec<String>,
    patience: Duration,
    tokens: Arc<dyn TokenStore>,
}

#[derive(Clone)]
enum Grant {
    /// A user lets the client in: an authorization code, with PKCE.
    User(Arc<dyn Authorizer>),
    /// The client is known itself, by a secret.
    Secret,
    /// The client is known itself, by a key; none if what was given is none.
    Key(Option<Arc<Key>>),
}

/// Has a user let a client in. [`Loopback`] is one for programs on the user's own machine.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// The URI to which the user's browser comes back.
    fn redirect_uri(&self) -> String;

    /// Shows the user this address, and gives back the whole address to which the browser came back: the redirect URI with a query.
    ///
    /// # Errors
    /// If the user cannot be asked.
    async fn authorize(&self, url: &str) -> Result<String>;
}

impl OAuth {
    /// Access that a user allows.
    pub fn new(authorizer: impl Authorizer) -> Self {
        Self::of(Grant::User(Arc::new(authorizer)))
    }

    /// Access that this client has by its own id and secret, without a user: the grant of client credentials.
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self::of(Grant::Secret).client(id).client_secret(secret)
    }

    /// Access that this client has by its own id and what it signs with a private key, without a user: the grant of client credentials
    /// with `private_key_jwt`. The key is a text of the form PEM, as PKCS #8 has it (`BEGIN PRIVATE KEY`): of the curves P-256, P-384
    /// or Ed25519, or of RSA. It is in no log and no error. What is no such key is found when the client is built.
    pub fn private_key_jwt(id: impl Into<String>, key: impl AsRef<str>) -> Self {
        Self::of(Grant::Key(Key::from_pem(key.as_ref()).map(Arc::new))).client(id)
    }

    fn of(grant: Grant) -> Self {
        Self {
            grant,
            name: env!("CARGO_PKG_NAME").to_owned(),
            client: None,
            client_metadata_url: None,
            scopes: Vec::new(),
            hosts: Vec::new(),
            patience: PATIENCE,
            tokens: Arc::new(MemoryTokens::default()),
        }
    }

    /// Sets the name under which this client is registered, which the user is shown. Default: the name of this crate.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the id under which the authorization server knows this client. Default: the client is registered there.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>) -> Self {
        let secret = self.client.and_then(|(_, secret)| secret);
        self.client = Some((id.into(), secret));
        self
    }

    /// Sets the secret that goes with the [client](Self::client)'s id. It is in no log and no error.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<String>) -> Self {
        let id = self.client.map(|(id, _)| id).unwrap_or_default();
        self.client = Some((id, Some(Secret::from(secret))));
        self
    }

    /// Sets the HTTPS address of a document that describes this client, for authorization servers that take it as an id.
    #[must_use]
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Asks for this scope. Default: those that the server names.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Takes this host for the authorization server though it is at a private address, such as `sso.corp`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Sets how long the user has. Default: five minutes.
    #[must_use]
    pub fn patience(mut self, most: Duration) -> Self {
        self.patience = most;
        self
    }

    /// Sets where tokens are kept. Default: [`MemoryTokens`].
    #[must_use]
    pub fn tokens(mut self, tokens: impl TokenStore) -> Self {
        self.tokens = Arc::new(tokens);
        self
    }

    /// The longest that may pass until there is access.
    pub(super) fn longest(&self) -> Duration {
        match self.grant {
            Grant::User(_) => self.patience,
            Grant::Secret | Grant::Key(_) => Duration::ZERO,
        }
    }

    /// What is wrong with it, found without asking anybody.
    pub(super) fn check(&self) -> Result<()> {
        match self.grant {
            Grant::Key(None) => Err(Error::config(
                "the private key for OAuth is none: it must be PKCS #8 in PEM, of P-256, P-384, Ed25519 or RSA",
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.client.as_ref().map(|(id, _)| id);
        f.debug_struct("OAuth")
            .field("name", &self.name)
            .field("client", &id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
