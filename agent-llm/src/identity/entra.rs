//! [`EntraIdentity`]: Microsoft Entra access tokens.

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, async_trait};
use azure_core::credentials::{Secret, TokenCredential};
use azure_identity::{
    ClientSecretCredential, DeveloperToolsCredential, ManagedIdentityCredential, WorkloadIdentityCredential,
};
use tokio::sync::OnceCell;

use crate::Credentials;

/// OAuth scope of Azure's models.
const SCOPE: &str = "https://cognitiveservices.azure.com/.default";

/// Microsoft Entra access tokens, from the first source that is available:
///
/// | condition | identity |
/// |---|---|
/// | `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET` are set | an application with a secret |
/// | `AZURE_FEDERATED_TOKEN_FILE` is set | a Kubernetes workload |
/// | `IDENTITY_ENDPOINT` or `AZURE_CLIENT_ID` is set | the machine's managed identity |
/// | none of these | the user signed in to `az` or `azd` |
///
/// Tokens are cached until shortly before they expire. A model of `azure` uses this identity if no
/// key is set. It contacts Microsoft's token servers directly, not through the model's transport.
///
/// ```
/// use agent_llm::{Auth, EntraIdentity, model};
///
/// let gpt = model("azure:gpt-5").option("resource", "acme").credentials(EntraIdentity::new()).auth(Auth::Bearer).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct EntraIdentity(Arc<OnceCell<Arc<dyn TokenCredential>>>);

impl EntraIdentity {
    /// Creates an identity from the environment. Looks for credentials at the first call.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Selects the credential for the environment.
fn found(env: impl Fn(&str) -> Option<String>) -> azure_core::Result<Arc<dyn TokenCredential>> {
    let client = env("AZURE_CLIENT_ID");
    if let (Some(tenant), Some(client), Some(secret)) = (env("AZURE_TENANT_ID"), &client, env("AZURE_CLIENT_SECRET")) {
        return Ok(ClientSecretCredential::new(&tenant, client.clone(), Secret::new(secret), None)?);
    }
    if env("AZURE_FEDERATED_TOKEN_FILE").is_some() {
        return Ok(WorkloadIdentityCredential::new(None)?);
    }
    if env("IDENTITY_ENDPOINT").is_some() || client.is_some() {
        let id = client.map(azure_identity::UserAssignedId::ClientId);
        let options = azure_identity::ManagedIdentityCredentialOptions { user_assigned_id: id, ..Default::default() };
        return Ok(ManagedIdentityCredential::new(Some(options))?);
    }
    Ok(DeveloperToolsCredential::new(None)?)
}

#[async_trait]
impl Credentials for EntraIdentity {
    async fn key(&self) -> Result<String> {
        let of_process = async || found(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let identity = self.0.get_or_try_init(of_process).await.map_err(|e| {
            Error::config("the identity for Microsoft Entra cannot be used: see the variables AZURE_..").with_source(e)
        })?;
        let token = identity.get_token(&[SCOPE], None).await;
        token
            .map(|token| token.token.secret().to_owned())
            .map_err(|e| Error::new(ErrorKind::Authentication, "Microsoft Entra gave no access token").with_source(e))
    }
}

impl fmt::Debug for EntraIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntraIdentity").finish_non_exhaustive()
    }
}
