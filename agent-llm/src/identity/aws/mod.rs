//! [`AwsIdentity`].

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

/// Signs requests to Amazon Bedrock with AWS's keys (Signature Version 4), the first of these that there are:
///
/// | if these are set | keys |
/// |---|---|
/// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | of the environment |
/// | the profile `AWS_PROFILE`, or else `default`, in `~/.aws/credentials` or `~/.aws/config` | of the profile, or of the role that it takes on (`role_arn` with `source_profile`, `credential_source` or `web_identity_token_file`) |
/// | `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN` | of a role, for a workload of Kubernetes and others that have a token |
/// | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `_FULL_URI` | of a task of ECS, or a pod of EKS |
/// | nothing | of the role of the machine in EC2, unless `AWS_EC2_METADATA_DISABLED` is `true` |
///
/// `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name other files. Keys that expire are fetched anew five minutes before. With the
/// feature `aws-sdk`, `AwsIdentity::sdk` asks the AWS SDK, which knows single sign-on and programs that give keys, too.
///
/// A model of `bedrock` takes it where no key of Bedrock's own (`AWS_BEARER_TOKEN_BEDROCK`) is set.
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
    /// Whether requests without keys go as they are: the transport may bring a key, or be a recording.
    may_lack: bool,
    #[cfg(feature = "aws-sdk")]
    is_sdk: bool,
    kept: Arc<Kept>,
}

impl AwsIdentity {
    /// Whoever the environment says. Nothing is looked for before the first call.
    pub fn new() -> Self {
        Self::on(Machine::default())
    }

    /// Whoever the AWS SDK says: its own search, with all that it knows.
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

    /// Who signs for a model by its name.
    pub(crate) fn found(region: Option<&str>, may_lack: bool) -> Self {
        #[cfg(feature = "aws-sdk")]
        let found = Self::sdk();
        #[cfg(not(feature = "aws-sdk"))]
        let found = Self::new();
        Self { region: region.map(str::to_owned), may_lack, ..found }
    }

    /// Takes the keys of this profile, and no others. Default: whatever there is, in the order above.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self.kept = Arc::default();
        self
    }

    /// Signs for this region. Default: that of the address which is asked, or else of the environment or the profile.
    #[must_use]
    pub fn region(mut self, name: impl Into<String>) -> Self {
        self.region = Some(name.into());
        self
    }

    /// Sets how AWS's servers are asked for keys. Default: as models without a transport of their own ask; the servers of the machine
    /// itself never through a proxy. The SDK's search does not use it, and asks the machine through `HTTP_PROXY` unless `NO_PROXY` names it.
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

    /// There may be others by now: keys of roles change.
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

/// The region in the name of a host of AWS's: `bedrock-runtime.eu-west-1.amazonaws.com`.
fn of_host(host: &str) -> Option<String> {
    const OF_AWS: [&str; 4] = [".vpce.amazonaws.com", ".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];
    let name = OF_AWS.iter().find_map(|end| host.strip_suffix(end))?;
    let region = name.rsplit('.').next()?;
    (region.contains('-') && region.ends_with(|c: char| c.is_ascii_digit())).then(|| region.to_owned())
}

/// The region of the profile that the environment says.
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
    /// [`AwsIdentity::new`].
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
