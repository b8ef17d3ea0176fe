//! API keys as bearer tokens; only their hashes are stored.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agent::{Error, Result};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    caller::{Caller, CallerLimits, Scope, TenantLimits},
    spending::Allowance,
    webhooks::Webhook,
};

/// Prefix of all keys, by which secret scanners detect published ones.
const PREFIX: &str = "agent_key_";

/// Row of a key file: the hash of a key, and its owner.
///
/// ```
/// use agent_server::{Key, Keys, Scope};
///
/// let (secret, key) = Key::generate("ada", "teapots")?;
/// let keys = Keys::new([key.scopes([Scope::Read, Scope::Answer])])?;
/// let caller = keys.caller(&secret).expect("it is known");
/// assert_eq!((caller.tenant(), caller.subject()), ("teapots", "ada"));
/// assert!(!serde_json::to_string(&keys).expect("JSON").contains(&secret));
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Key {
    /// Name of the owner.
    pub name: String,
    /// Tenant whose sessions the key gives access to.
    pub tenant: String,
    /// SHA-256 of the key, in hexadecimal digits. Keys are random and long, so a fast hash is
    /// sufficient.
    pub sha256: String,
    /// Scopes of the key; all scopes of its tenant if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    /// Agents that the key gives access to; all if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Limits of the owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: CallerLimits,
    /// Expiry: milliseconds since 1970, UTC; never if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Webhook for all runs that the key starts; none if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

fn is_default(limits: &CallerLimits) -> bool {
    *limits == CallerLimits::default()
}

impl Key {
    /// Generates a random key: returns the key itself, which is not stored anywhere, and its row.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the operating system provides no random
    /// numbers.
    pub fn generate(name: impl Into<String>, tenant: impl Into<String>) -> Result<(String, Self)> {
        let mut bytes = [0; 32];
        let failed = |_| Error::config("the operating system provides no random numbers");
        SystemRandom::new().fill(&mut bytes).map_err(failed)?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let key = Self::of(&secret, name, tenant);
        Ok((secret, key))
    }

    /// Creates the row of an existing key, which must be a secret of at least 16 bytes.
    pub fn of(secret: &str, name: impl Into<String>, tenant: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tenant: tenant.into(),
            sha256: hash(secret),
            scopes: None,
            agents: None,
            limits: CallerLimits::default(),
            expires: None,
            webhook: None,
        }
    }

    /// Sets the expiry: milliseconds since 1970, UTC.
    #[must_use]
    pub fn expires(mut self, at: u64) -> Self {
        self.expires = Some(at);
        self
    }

    /// Sets the scopes.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        self.scopes = Some(scopes.into_iter().collect());
        self
    }

    /// Sets the accessible agents.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the limits of the owner.
    #[must_use]
    pub fn limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    fn caller(&self) -> Caller {
        let mut caller = Caller::new(self.tenant.as_str(), self.name.as_str()).limits(self.limits);
        if let Some(scopes) = &self.scopes {
            caller = caller.scopes(scopes.iter().copied());
        }
        if let Some(agents) = &self.agents {
            caller = caller.agents(agents);
        }
        if let Some(webhook) = &self.webhook {
            caller = caller.webhook(webhook.clone());
        }
        caller
    }
}

/// API keys of a server.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct Keys {
    rows: Vec<Key>,
    /// Callers by key hash, with the expiry of the key. The lookup by hash prevents timing attacks
    /// on keys.
    callers: HashMap<String, (Caller, Option<u64>)>,
    tenants: BTreeMap<String, TenantLimits>,
    /// File that the keys were read from.
    file: Option<PathBuf>,
}

/// Format of the key file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tenants: BTreeMap<String, TenantLimits>,
}

impl Keys {
    /// Creates a key list from rows.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) for an invalid row, or two rows with the
    /// same hash.
    pub fn new(rows: impl IntoIterator<Item = Key>) -> Result<Self> {
        let mut keys = Self::default();
        for row in rows {
            keys.add(row)?;
        }
        Ok(keys)
    }

    /// Sets the limits that all keys of a tenant share.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>, limits: TenantLimits) -> Self {
        self.tenants.insert(name.into(), limits);
        self
    }

    /// Returns the spending allowances of all keys and tenants. Allowances that several rows share
    /// occur once per row.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        self.rows.iter().flat_map(|row| Allowance::of(&self.limited(row.caller()))).collect()
    }

    fn limited(&self, caller: Caller) -> Caller {
        let limits = self.tenants.get(caller.tenant()).copied().unwrap_or_default();
        caller.tenant_limits(limits)
    }

    /// Reads a key file, which the server reloads when it changes: removing a row revokes its key.
    ///
    /// The file has the form
    /// `{"keys": [{"name": "ada", "tenant": "teapots", "sha256": "..", "scopes": ["read", "run"]}]}`,
    /// optionally with `"tenants": {"teapots": {"cost_per_month": 50000000}}`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the file cannot be read or parsed, with
    /// the reason.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |e: &dyn fmt::Display| Error::config(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
        let keys: Self = serde_json::from_str(&text).map_err(|e| failed(&e))?;
        Ok(Self { file: Some(path.to_owned()), ..keys })
    }

    /// Returns the file that the keys were read from, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn add(&mut self, row: Key) -> Result<()> {
        let is_hash = row.sha256.len() == 64 && row.sha256.bytes().all(|b| b.is_ascii_hexdigit());
        let problem = if row.tenant.is_empty() || row.name.is_empty() {
            Some("a key requires a 'name' and a 'tenant'".to_owned())
        } else if !is_hash {
            Some(format!("the 'sha256' of key '{}' is not 64 hexadecimal digits", row.name))
        } else if let Err(error) = row.limits.check() {
            Some(format!("key '{}': {}", row.name, error.message()))
        } else if self.callers.insert(row.sha256.to_ascii_lowercase(), (row.caller(), row.expires)).is_some() {
            Some(format!("duplicate key '{}'", row.name))
        } else {
            None
        };
        problem.map_or(Ok(()), |problem| Err(Error::config(problem)))?;
        self.rows.push(row);
        Ok(())
    }

    /// Returns the caller with this key, unless the key has expired.
    pub fn caller(&self, secret: &str) -> Option<Caller> {
        let (caller, expires) = self.callers.get(&hash(secret))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        expires.is_none_or(|at| now < u128::from(at)).then(|| self.limited(caller.clone()))
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl TryFrom<File> for Keys {
    type Error = Error;

    fn try_from(file: File) -> Result<Self> {
        Ok(Self { tenants: file.tenants, ..Self::new(file.keys)? })
    }
}

impl From<Keys> for File {
    fn from(keys: Keys) -> Self {
        Self { keys: keys.rows, tenants: keys.tenants }
    }
}

fn hash(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.rows.iter().map(|row| &row.name).collect();
        f.debug_struct("Keys").field("names", &names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_keys_is_read_and_what_cannot_be_is_told() {
        let (secret, key) = Key::generate("ada", "t").expect("a key");
        let text = serde_json::to_string(&Keys::new([key.clone()]).expect("keys")).expect("JSON");
        let keys: Keys = serde_json::from_str(&text).expect("keys");
        assert_eq!(keys.caller(&secret).expect("known").subject(), "ada");
        assert!(keys.caller("agent_key_other").is_none() && keys.caller("").is_none());

        assert!(Keys::new([key.clone(), key.clone()]).expect_err("twice").message().contains("duplicate"));
        let limits = CallerLimits::default().requests_per_second(0.0);
        let silent = Keys::new([key.clone().limits(limits)]).expect_err("no request is allowed");
        assert!(silent.message().contains("key 'ada'") && silent.message().contains("above 0"), "{silent}");
        let short = Key { sha256: "ab".into(), ..key.clone() };
        assert!(Keys::new([short]).expect_err("no hash").message().contains("64"));
        let old = Keys::new([key.clone().expires(1)]).expect("keys");
        assert!(old.caller(&secret).is_none(), "it has expired");
        let young = Keys::new([key.clone().expires(u64::MAX)]).expect("keys");
        assert!(young.caller(&secret).is_some());
        let nobody = Key { tenant: String::new(), ..key };
        assert!(Keys::new([nobody]).expect_err("nobody's").message().contains("tenant"));
    }
}
