//! Credentials from the AWS SDK.

use agent_core::{Error, ErrorKind, Result};
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_credential_types::{
    Credentials as Keys,
    provider::{ProvideCredentials, error::CredentialsError},
};

/// Returns the credentials that the SDK finds; `None` if it finds none.
pub(super) async fn keys(profile: Option<&str>) -> Result<Option<Keys>> {
    let mut chain = DefaultCredentialsChain::builder();
    if let Some(profile) = profile {
        chain = chain.profile_name(profile);
    }
    match chain.build().await.provide_credentials().await {
        Ok(keys) => Ok(Some(keys)),
        Err(CredentialsError::CredentialsNotLoaded(_)) => Ok(None),
        Err(e) => {
            Err(Error::new(ErrorKind::Authentication, "the AWS SDK found no keys that can be used").with_source(e))
        }
    }
}
