//! [`AwsIdentity`]: signs requests with AWS credentials.

mod files;
mod kept;
mod machine;
mod metadata;
#[cfg(feature = "aws-sdk")]
mod sdk;
mod sign;
mod sources;
mod sts;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::SystemTime};

use agent_core::{Error, Result, async_trait};
use aws_credential_types::Credentials as Keys;
use bytes::Bytes;
use http::Request;

use self::{files::Profiles, kept::Kept, machine::Machine};
use crate::{Signer, Transport};

/// Signs requests to Amazon Bedrock with AWS credentials (Signature Version 4), from the first
/// source that has some:
///
/// | condition | credentials |
/// |---|---|
/// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` are set | from the environment |
/// | the profile `AWS_PROFILE`, or else `default`, exists in `~/.aws/credentials` or `~/.aws/config` | of the profile, or of the role that it assumes (`role_arn` with `source_profile`, `credential_source` or `web_identity_token_file`) |
/// | `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN` are set | of the role, for Kubernetes workloads and others that have a token |
/// | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `_FULL_URI` is set | of an ECS task or an EKS pod |
/// | none of these | of the EC2 instance's role, unless `AWS_EC2_METADATA_DISABLED` is `true` |
///
/// `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name other files. Credentials that expire
/// are refreshed five minutes before. With the feature `aws-sdk`, `AwsIdentity::sdk` uses the AWS
/// SDK's credential chain, which also supports single sign-on and credential processes.
///
/// A model of `bedrock` uses this identity if no Bedrock API key (`AWS_BEARER_TOKEN_BEDROCK`) is
/// set.
///
/// ```
/// use agent_llm::{AwsIdentity, model};
///
/// let claude = model("bedrock:us.anthropic.claude-opus-4-6-v1")
///     .option("region", "us-east-1")
///     .signer(AwsIdentity::new().profile("work"))
///     .build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct AwsIdentity {
    machine: Machine,
    profile: Option<String>,
    region: Option<String>,
    /// True if requests without credentials are sent unsigned: the transport may add a key, or
    /// replay a recording.
    may_lack: bool,
    #[cfg(feature = "aws-sdk")]
    is_sdk: bool,
    kept: Arc<Kept>,
}

impl AwsIdentity {
    /// Creates an identity from the environment. Looks for credentials at the first call.
    pub fn new() -> Self {
        Self::on(Machine::default())
    }

    /// Creates an identity from the AWS SDK's default credential chain.
    #[cfg(feature = "aws-sdk")]
    pub fn sdk() -> Self {
        Self { is_sdk: true, ..Self::new() }
    }

    fn on(machine: Machine) -> Self {
        Self {
            machine,
            profile: None,
            region: None,
            may_lack: false,
            #[cfg(feature = "aws-sdk")]
            is_sdk: false,
            kept: Arc::default(),
        }
    }

    /// Returns the identity that signs for a model created by name.
    pub(crate) fn found(region: Option<&str>, may_lack: bool) -> Self {
        #[cfg(feature = "aws-sdk")]
        let found = Self::sdk();
        #[cfg(not(feature = "aws-sdk"))]
        let found = Self::new();
        Self { region: region.map(str::to_owned), may_lack, ..found }
    }

    /// Uses this profile only. Default: the first source in the order above.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self.kept = Arc::default();
        self
    }

    /// Signs for this region. Default: the region in the request's host, or else of the environment
    /// or the profile.
    #[must_use]
    pub fn region(mut self, name: impl Into<String>) -> Self {
        self.region = Some(name.into());
        self
    }

    /// Sets the transport for AWS's credential servers. Default: the one that models without a
    /// transport use; servers of the machine itself are never contacted through a proxy. The SDK's
    /// chain does not use this transport, and contacts servers of the machine through `HTTP_PROXY`
    /// unless `NO_PROXY` names them.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.machine.transport = Some(Arc::new(transport));
        self.kept = Arc::default();
        self
    }

    async fn keys(&self) -> Result<Option<Keys>> {
        self.kept.get(|| self.fetch()).await
    }

    async fn fetch(&self) -> Result<Option<Keys>> {
        #[cfg(feature = "aws-sdk")]
        if self.is_sdk {
            return sdk::keys(self.profile.as_deref()).await;
        }
        sources::keys(&self.machine, self.profile.as_deref(), self.region.as_deref()).await
    }

    fn region_of(&self, request: &Request<Bytes>) -> Result<String> {
        let said = || self.region.clone().or_else(|| of_host(request.uri().host()?));
        let profile = self.profile.as_deref();
        let known = said().or_else(|| {
            let env = |name: &str| self.machine.variable(name);
            env("AWS_REGION").or_else(|| env("AWS_DEFAULT_REGION")).or_else(|| region_in(&self.machine, profile))
        });
        known.ok_or_else(|| Error::config("the region is not known for which AWS's keys sign: set AWS_REGION"))
    }
}

#[async_trait]
impl Signer for AwsIdentity {
    async fn sign(&self, request: &mut Request<Bytes>) -> Result<()> {
        let Some(keys) = self.keys().await? else {
            return if self.may_lack { Ok(()) } else { Err(none()) };
        };
        sign::sign(request, &keys, &self.region_of(request)?, "bedrock", SystemTime::now())
    }

    /// Different credentials may exist by now: those of roles change.
    async fn refused(&self) -> bool {
        self.kept.renewed(|| self.fetch()).await
    }
}

fn none() -> Error {
    Error::config(
        "no keys of AWS were found: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or \
         give the machine a role",
    )
}

/// Extracts the region from an AWS host name: `bedrock-runtime.eu-west-1.amazonaws.com`.
fn of_host(host: &str) -> Option<String> {
    const OF_AWS: [&str; 4] = [".vpce.amazonaws.com", ".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];
    let name = OF_AWS.iter().find_map(|end| host.strip_suffix(end))?;
    let region = name.rsplit('.').next()?;
    (region.contains('-') && region.ends_with(|c: char| c.is_ascii_digit())).then(|| region.to_owned())
}

/// Returns the region of the profile that the environment selects.
pub(crate) fn region(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let profiles = Profiles::read(env).ok()?;
    profiles.value(&profiles.chosen(None, env), "region")
}

fn region_in(machine: &Machine, profile: Option<&str>) -> Option<String> {
    let env = |name: &str| machine.variable(name);
    let profiles = Profiles::read(&env).ok()?;
    profiles.value(&profiles.chosen(profile, &env), "region")
}

impl Default for AwsIdentity {
    /// Same as [`AwsIdentity::new`].
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AwsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsIdentity")
            .field("profile", &self.profile)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
