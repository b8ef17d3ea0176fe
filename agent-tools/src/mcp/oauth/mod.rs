//! OAuth for MCP servers.

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

/// Default time for a user to authorise the client.
const PATIENCE: Duration = Duration::from_secs(300);

/// OAuth 2.1 flow of a client: see [`Http::oauth`](super::Http::oauth).
///
/// The flow starts when the server rejects a request. The client then discovers the authorization
/// server, registers there unless it is [known](Self::client), and requests access. Tokens are
/// renewed when they are about to expire or are rejected; a scope that the server demands later is
/// requested too, at most twice per call.
///
/// The server's statements about its authorization server are not trusted: apart from the host of
/// the server itself and [allowed](Self::allow_host) hosts, only addresses of the public internet
/// are reached, and only with HTTPS. Redirects are not followed.
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
    /// A user authorises the client: authorization code grant with PKCE.
    User(Arc<dyn Authorizer>),
    /// The client authenticates with a secret.
    Secret,
    /// The client authenticates with a key; `None` if the given key is invalid.
    Key(Option<Arc<Key>>),
}

/// Asks a user to authorise a client. [`Loopback`] is the implementation for programs on the user's
/// own machine.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// Returns the redirect URI of the user's browser.
    fn redirect_uri(&self) -> String;

    /// Shows the user this address, and returns the complete address that the browser was
    /// redirected to: the redirect URI with a query.
    ///
    /// # Errors
    /// If the user cannot be asked.
    async fn authorize(&self, url: &str) -> Result<String>;
}

impl OAuth {
    /// Creates a flow in which a user grants access.
    pub fn new(authorizer: impl Authorizer) -> Self {
        Self::of(Grant::User(Arc::new(authorizer)))
    }

    /// Creates a flow without a user: the client credentials grant with an id and a secret.
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self::of(Grant::Secret).client(id).client_secret(secret)
    }

    /// Creates a flow without a user: the client credentials grant with an id and an assertion that
    /// a private key signs (`private_key_jwt`). The key is PEM text in PKCS #8 form (`BEGIN PRIVATE
    /// KEY`): P-256, P-384, Ed25519 or RSA. It appears in no log and no error. Building the client
    /// fails if the key is invalid.
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

    /// Sets the name under which this client registers, and which the user sees. Default: the name
    /// of this crate.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the id of this client at the authorization server. Default: the client registers there.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>) -> Self {
        let secret = self.client.and_then(|(_, secret)| secret);
        self.client = Some((id.into(), secret));
        self
    }

    /// Sets the secret of the [client](Self::client). It appears in no log and no error.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<String>) -> Self {
        let id = self.client.map(|(id, _)| id).unwrap_or_default();
        self.client = Some((id, Some(Secret::from(secret))));
        self
    }

    /// Sets the HTTPS address of this client's metadata document, for authorization servers that
    /// accept it as a client id.
    #[must_use]
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Requests this scope. Default: the scopes that the server names.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Allows an authorization server at this host, such as `sso.corp`, even at a private address.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Sets the time for the user to grant access. Default: five minutes.
    #[must_use]
    pub fn patience(mut self, most: Duration) -> Self {
        self.patience = most;
        self
    }

    /// Sets the token store. Default: [`MemoryTokens`].
    #[must_use]
    pub fn tokens(mut self, tokens: impl TokenStore) -> Self {
        self.tokens = Arc::new(tokens);
        self
    }

    /// Returns the maximum duration of the whole flow.
    pub(super) fn longest(&self) -> Duration {
        match self.grant {
            Grant::User(_) => self.patience,
            Grant::Secret | Grant::Key(_) => Duration::ZERO,
        }
    }

    /// Validates the settings without sending a request.
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
