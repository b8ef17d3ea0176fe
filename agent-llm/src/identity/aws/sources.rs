//! Sources of AWS credentials, in order of precedence.

use agent_core::{Error, Result};
use aws_credential_types::Credentials as Keys;

use super::{
    files::Profiles,
    machine::Machine,
    metadata,
    sts::{Role, Sts},
};

/// Maximum length of a chain of roles.
const MOST_ROLES: usize = 8;

/// Profile settings that only the SDK supports.
const OF_THE_SDK: [&str; 4] = ["sso_session", "sso_start_url", "credential_process", "login_session"];

/// Returns the credentials of the first source that has some, or those of `profile` only, if set.
/// `None` if there are no credentials.
///
/// # Errors
/// If a source is configured but returns no credentials.
pub(super) async fn keys(machine: &Machine, profile: Option<&str>, region: Option<&str>) -> Result<Option<Keys>> {
    if profile.is_none()
        && let Some(keys) = of_environment(machine)
    {
        return Ok(Some(keys));
    }
    let env = |name: &str| machine.variable(name);
    let profiles = Profiles::read(&env)?;
    let chosen = profiles.chosen(profile, &env);
    let region = region.map(str::to_owned).or_else(|| env("AWS_REGION")).or_else(|| env("AWS_DEFAULT_REGION"));
    let sts = Sts::new(machine, region.or_else(|| profiles.value(&chosen, "region")));
    if let Some(keys) = of_profile(machine, &profiles, &chosen, &sts).await? {
        return Ok(Some(keys));
    }
    if profile.is_some() {
        return Err(Error::config(format!("AWS's profile '{chosen}' has no keys")));
    }
    if let (Some(file), Some(arn)) = (env("AWS_WEB_IDENTITY_TOKEN_FILE"), env("AWS_ROLE_ARN")) {
        let role = Role { arn, session: env("AWS_ROLE_SESSION_NAME"), external_id: None };
        return sts.with_token(&role, &machine.file(&file)?).await.map(Some);
    }
    match metadata::of_container(machine).await? {
        Some(keys) => Ok(Some(keys)),
        None => metadata::of_instance(machine).await,
    }
}

fn of_environment(machine: &Machine) -> Option<Keys> {
    let (id, secret) = (machine.variable("AWS_ACCESS_KEY_ID")?, machine.variable("AWS_SECRET_ACCESS_KEY")?);
    Some(Keys::new(id, secret, machine.variable("AWS_SESSION_TOKEN"), None, "environment"))
}

/// Returns the credentials of a profile, or of the role that it assumes with another profile's
/// credentials.
async fn of_profile(machine: &Machine, profiles: &Profiles, name: &str, sts: &Sts<'_>) -> Result<Option<Keys>> {
    if !profiles.has(name) {
        return if name == "default" {
            Ok(None)
        } else {
            Err(Error::config(format!("there is no profile '{name}' in the files of AWS's profiles")))
        };
    }
    let (mut roles, mut name) = (Vec::new(), name.to_owned());
    let first = loop {
        let value = |field: &str| profiles.value(&name, field);
        let Some(arn) = value("role_arn") else { break of_keys(profiles, &name)? };
        let role = Role { arn, session: value("role_session_name"), external_id: value("external_id") };
        if let Some(file) = value("web_identity_token_file") {
            break Some(sts.with_token(&role, &machine.file(&file)?).await?);
        }
        roles.push(role);
        match (value("source_profile"), value("credential_source")) {
            (Some(source), _) if source == name => break of_keys(profiles, &name)?,
            (Some(source), _) if roles.len() < MOST_ROLES => name = source,
            (None, Some(source)) => break by_source(machine, &source).await?,
            _ => {
                return Err(Error::config(format!(
                    "AWS's profile '{name}' does not say with whose keys it takes its role"
                )));
            }
        }
    };
    let Some(mut keys) = first else {
        return if roles.is_empty() {
            Ok(None)
        } else {
            Err(Error::config(format!("AWS's profile '{name}' has no keys to take a role with")))
        };
    };
    for role in roles.iter().rev() {
        keys = sts.with_keys(role, &keys).await?;
    }
    Ok(Some(keys))
}

/// Returns the static credentials of a profile.
fn of_keys(profiles: &Profiles, name: &str) -> Result<Option<Keys>> {
    let value = |field: &str| profiles.value(name, field);
    match (value("aws_access_key_id"), value("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok(Some(Keys::new(id, secret, value("aws_session_token"), None, "profile"))),
        _ if OF_THE_SDK.iter().any(|field| value(field).is_some()) => Err(Error::config(format!(
            "AWS's profile '{name}' has its keys from a login or a program: enable the feature 'aws-sdk', or set \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ))),
        _ => Ok(None),
    }
}

async fn by_source(machine: &Machine, source: &str) -> Result<Option<Keys>> {
    match source {
        "Environment" => Ok(of_environment(machine)),
        "EcsContainer" => metadata::of_container(machine).await,
        "Ec2InstanceMetadata" => metadata::of_instance(machine).await,
        other => Err(Error::config(format!("'{other}' is no credential_source of AWS's"))),
    }
}
