//! Push notifications about tasks.

use agent::run::new_id;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{endpoint::read, rpc::RpcError, task::of_view, version::Version};
use crate::{
    App, FoundRun, RunView, Webhook,
    webhooks::{Authentication, Hook, Push},
};

/// Prefix of the webhook ids of this protocol, which separates them from those of other protocols.
const PREFIX: &str = "a2a:";

/// Push notification configuration, of either version.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authentication: Option<Said>,
}

/// Authentication of a configuration: version 0.3 names several schemes, version 1.0 one.
#[derive(Clone, Deserialize, Serialize)]
struct Said {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    schemes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// Parameters that set a configuration.
pub(super) struct Set {
    pub(super) task_id: String,
    config: PushConfig,
}

/// Parameters that name a configuration, or all of a task.
pub(super) struct Named {
    pub(super) task: String,
    pub(super) config: Option<String>,
}

impl PushConfig {
    /// Converts the configuration into a webhook of a run. Only one configuration can be without an
    /// id.
    pub(super) fn hook(&self, version: Version) -> Hook {
        let authentication = self.authentication.clone().map(|said| Authentication {
            schemes: said.scheme.into_iter().chain(said.schemes).collect(),
            credentials: said.credentials,
        });
        let push = Push { token: self.token.clone(), authentication, version };
        let id = format!("{PREFIX}{}", self.id.as_deref().unwrap_or_default());
        Hook { push: Some(push), ..Hook::of(id, Webhook::new(self.url.clone())) }
    }

    fn of(hook: Hook, version: Version) -> Option<Self> {
        let (id, push) = (hook.id.strip_prefix(PREFIX)?.to_owned(), hook.push?);
        let authentication = push.authentication.map(|known| match version {
            Version::V03 => Said { schemes: known.schemes, scheme: None, credentials: known.credentials },
            Version::V10 => {
                Said { schemes: Vec::new(), scheme: known.schemes.into_iter().next(), credentials: known.credentials }
            }
        });
        Some(Self { id: Some(id).filter(|id| !id.is_empty()), url: hook.to.url, token: push.token, authentication })
    }

    fn shown(&self, run: &FoundRun, version: Version) -> Value {
        let mut config = json!(self);
        match version {
            Version::V03 => json!({"taskId": run.id(), "pushNotificationConfig": config}),
            Version::V10 => {
                config["taskId"] = run.id().into();
                config["id"] = self.id.as_deref().unwrap_or_default().into();
                config
            }
        }
    }
}

impl Set {
    pub(super) fn read(params: &Value, version: Version) -> Result<Self, RpcError> {
        let task_id = text(params, "taskId").ok_or_else(|| RpcError::params("'taskId' is missing"))?;
        let mut config: PushConfig = match version {
            Version::V03 => read(&params["pushNotificationConfig"])?,
            Version::V10 => read(params)?,
        };
        if version == Version::V10 {
            config.id = config.id.filter(|id| !id.is_empty()).or_else(|| Some(new_id()));
        }
        Ok(Self { task_id, config })
    }

    /// Adds the configuration to the run.
    pub(super) async fn apply(&self, app: &App, run: &FoundRun, version: Version) -> Result<Value, RpcError> {
        let hook = self.config.hook(version);
        if hook.id.contains('/') || hook.id.len() > 200 {
            return Err(RpcError::params("the id of a configuration must have at most 200 bytes and no '/'"));
        }
        app.check_hook(&hook).await?;
        app.hook(run, vec![hook]).await?;
        Ok(self.config.shown(run, version))
    }
}

impl Named {
    pub(super) fn read(params: &Value, version: Version) -> Result<Self, RpcError> {
        let (task, config) = match version {
            Version::V03 => ("id", "pushNotificationConfigId"),
            Version::V10 => ("taskId", "id"),
        };
        let missing = || RpcError::params(format!("'{task}' is missing"));
        Ok(Self { task: text(params, task).ok_or_else(missing)?, config: text(params, config) })
    }
}

fn text(params: &Value, name: &str) -> Option<String> {
    params.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Lists all configurations of the run.
pub(super) async fn list(app: &App, run: &FoundRun, version: Version) -> Result<Value, RpcError> {
    let hooks = app.hooks_of(run).await?.into_iter().filter_map(|hook| PushConfig::of(hook, version));
    let configs: Vec<_> = hooks.map(|config| config.shown(run, version)).collect();
    Ok(match version {
        Version::V03 => configs.into(),
        Version::V10 => json!({"configs": configs, "nextPageToken": ""}),
    })
}

/// Returns the configuration of this id, or the first one.
pub(super) async fn get(app: &App, run: &FoundRun, id: Option<&str>, version: Version) -> Result<Value, RpcError> {
    let configs = app.hooks_of(run).await?.into_iter().filter_map(|hook| PushConfig::of(hook, version));
    let mut fitting = configs.filter(|config| id.is_none() || config.id.as_deref() == id);
    let unknown = || match version {
        Version::V03 => RpcError::params("unknown push notification configuration"),
        Version::V10 => RpcError::not_found("unknown push notification configuration"),
    };
    Ok(fitting.next().ok_or_else(unknown)?.shown(run, version))
}

/// Removes a configuration.
pub(super) async fn delete(app: &App, run: &FoundRun, id: Option<&str>, version: Version) -> Result<Value, RpcError> {
    app.unhook(run, &format!("{PREFIX}{}", id.unwrap_or_default())).await?;
    Ok(if version == Version::V10 { json!({}) } else { Value::Null })
}

/// Returns the body of a notification about a run.
pub(crate) fn notification(view: &RunView, version: Version) -> Value {
    version.payload(of_view(view))
}
