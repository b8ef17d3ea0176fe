//! Push notifications about tasks.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rpc::RpcError;
use crate::{
    App, FoundRun, Webhook,
    webhooks::{Authentication, Hook, Push},
};

/// Prefix of the webhook ids of this protocol, which separates them from those of other protocols.
const PREFIX: &str = "a2a:";

/// Push notification configuration of the protocol.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication>,
}

/// Parameters of `tasks/pushNotificationConfig/set`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Set {
    pub(super) task_id: String,
    pub(super) push_notification_config: PushConfig,
}

/// Parameters of the other configuration methods.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) id: String,
    #[serde(default)]
    pub(super) push_notification_config_id: Option<String>,
}

impl PushConfig {
    /// Converts the configuration into a webhook of a run. Only one configuration can be without an
    /// id.
    pub(super) fn hook(&self) -> Hook {
        let push = Push { token: self.token.clone(), authentication: self.authentication.clone() };
        let id = format!("{PREFIX}{}", self.id.as_deref().unwrap_or_default());
        Hook { push: Some(push), ..Hook::of(id, Webhook::new(self.url.clone())) }
    }

    fn of(hook: Hook) -> Option<Self> {
        let (id, push) = (hook.id.strip_prefix(PREFIX)?.to_owned(), hook.push?);
        let (token, authentication) = (push.token, push.authentication);
        Some(Self { id: Some(id).filter(|id| !id.is_empty()), url: hook.to.url, token, authentication })
    }
}

impl Set {
    /// Adds the configuration to the run.
    pub(super) async fn apply(&self, app: &App, run: &FoundRun) -> Result<Value, RpcError> {
        let hook = self.push_notification_config.hook();
        if hook.id.contains('/') || hook.id.len() > 200 {
            return Err(RpcError::params("the id of a configuration must have at most 200 bytes and no '/'"));
        }
        app.check_hook(&hook).await?;
        app.hook(run, vec![hook]).await?;
        Ok(shown(run, &self.push_notification_config))
    }
}

/// Lists all configurations of the run.
pub(super) async fn list(app: &App, run: &FoundRun) -> Result<Value, RpcError> {
    let hooks = app.hooks_of(run).await?;
    Ok(hooks.into_iter().filter_map(PushConfig::of).map(|config| shown(run, &config)).collect())
}

/// Returns the configuration of this id, or the first one.
pub(super) async fn get(app: &App, run: &FoundRun, id: Option<&str>) -> Result<Value, RpcError> {
    let configs = app.hooks_of(run).await?.into_iter().filter_map(PushConfig::of);
    let mut fitting = configs.filter(|config| id.is_none() || config.id.as_deref() == id);
    let config = fitting.next().ok_or_else(|| RpcError::params("unknown push notification configuration"))?;
    Ok(shown(run, &config))
}

/// Removes a configuration.
pub(super) async fn delete(app: &App, run: &FoundRun, id: Option<&str>) -> Result<Value, RpcError> {
    app.unhook(run, &format!("{PREFIX}{}", id.unwrap_or_default())).await?;
    Ok(Value::Null)
}

fn shown(run: &FoundRun, config: &PushConfig) -> Value {
    json!({"taskId": run.id(), "pushNotificationConfig": config})
}
