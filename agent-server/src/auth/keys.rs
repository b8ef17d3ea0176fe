//! Bearer keys, of which only hashes are kept.

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

/// How every key begins, so that scanners of secrets find one that was published.
const PREFIX: &str = "agent_key_";

/// Who has a key, and its hash: a row of a file of keys.
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
    /// Whose it is.
    pub name: String,
    /// The tenant whose sessions it opens.
    pub tenant: String,
    /// The SHA-256 of the key, in hexadecimal digits. A key is random and long, so nothing slower is needed.
    pub sha256: String,
    /// What it may be used for; everything in its tenant if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    /// The agents that it opens; all if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// What whoever has it may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: CallerLimits,
    /// From when on it is of no use: milliseconds since 1970, UTC; never if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Who is told of the runs that it starts; nobody if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

fn is_default(limits: &CallerLimits) -> bool {
    *limits == CallerLimits::default()
}

impl Key {
    /// A new random key: the key itself, which is kept nowhere, and its row.
    ///
    /// # Errors
    /// If the operating system gives no random numbers.
    pub fn generate(name: impl Into<String>, tenant: impl Into<String>) -> Result<(String, Self)> {
        let mut bytes = [0; 32];
        let failed = |_| Error::config("the operating system gives no random numbers");
        SystemRandom::new().fill(&mut bytes).map_err(failed)?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let key = Self::of(&secret, name, tenant);
        Ok((secret, key))
    }

    /// The row of a key that is there: one of at least 16 bytes that nobody guesses.
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

    /// Sets from when on it is of no use: milliseconds since 1970, UTC.
    #[must_use]
    pub fn expires(mut self, at: u64) -> Self {
        self.expires = Some(at);
        self
    }

    /// Sets what it may be used for.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        self.scopes = Some(scopes.into_iter().collect());
        self
    }

    /// Sets which agents it opens.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Sets what whoever has it may use.
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

/// The keys that a server knows.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct Keys {
    rows: Vec<Key>,
    /// Whoever comes with a key is found by its hash: how long that takes tells nothing of a key. With when the key expires.
    callers: HashMap<String, (Caller, Option<u64>)>,
    tenants: BTreeMap<String, TenantLimits>,
    /// The file that they are from.
    file: Option<PathBuf>,
}

/// As a file has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tenants: BTreeMap<String, TenantLimits>,
}

impl Keys {
    /// These keys.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) for a row that cannot be, or two with one hash.
    pub fn new(rows: impl IntoIterator<Item = Key>) -> Result<Self> {
        let mut keys = Self::default();
        for row in rows {
            keys.add(row)?;
        }
        Ok(keys)
    }

    /// Sets what all keys of a tenant may use together.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>, limits: TenantLimits) -> Self {
        self.tenants.insert(name.into(), limits);
        self
    }

    /// What all keys, and all of a tenant together, may spend. What several rows share is there for each.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        self.rows.iter().flat_map(|row| Allowance::of(&self.limited(row.caller()))).collect()
    }

    fn limited(&self, caller: Caller) -> Caller {
        let limits = self.tenants.get(caller.tenant()).copied().unwrap_or_default();
        caller.tenant_limits(limits)
    }

    /// Reads a file of keys, which a server reads again when it changes: a key whose row is gone opens nothing any more.
    ///
    /// The file is `{"keys": [{"name": "ada", "tenant": "teapots", "sha256": "..", "scopes": ["read", "run"]}]}`, and perhaps
    /// `"tenants": {"teapots": {"cost_per_month": 50000000}}`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if it cannot be read, with what is wrong.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |e: &dyn fmt::Display| Error::config(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
        let keys: Self = serde_json::from_str(&text).map_err(|e| failed(&e))?;
        Ok(Self { file: Some(path.to_owned()), ..keys })
    }

    /// The file that they are from, if they are from one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn add(&mut self, row: Key) -> Result<()> {
        let is_hash = row.sha256.len() == 64 && row.sha256.bytes().all(|b| b.is_ascii_hexdigit());
        let problem = if row.tenant.is_empty() || row.name.is_empty() {
            Some("a key has a 'name' and a 'tenant'".to_owned())
        } else if !is_hash {
            Some(format!("the 'sha256' of key '{}' is not 64 hexadecimal digits", row.name))
        } else if self.callers.insert(row.sha256.to_ascii_lowercase(), (row.caller(), row.expires)).is_some() {
            Some(format!("key '{}' is there twice", row.name))
        } else {
            None
        };
        problem.map_or(Ok(()), |problem| Err(Error::config(problem)))?;
        self.rows.push(row);
        Ok(())
    }

    /// Who comes with this key, unless it has expired.
    pub fn caller(&self, secret: &str) -> Option<Caller> {
        let (caller, expires) = self.callers.get(&hash(secret))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        expires.is_none_or(|at| now < u128::from(at)).then(|| self.limited(caller.clone()))
    }

    /// True if there is none.
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

        assert!(Keys::new([key.clone(), key.clone()]).expect_err("twice").message().contains("twice"));
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
