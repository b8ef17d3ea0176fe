//! [`ContainerSandboxBuilder`].

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, Result};
use bollard::{
    models::{ContainerCreateBody, ContainerSummary, HostConfig, ResourcesUlimits},
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptions, ListContainersOptionsBuilder,
        RemoveContainerOptionsBuilder, StartContainerOptions,
    },
};
use tokio::time::sleep;

use super::{
    ContainerSandbox,
    engine::{Engine, is_gone, is_missing, said},
    kept::{FIRST, Kept},
    probe,
};
use crate::sandbox::{Limits, Sandbox, owner};

/// The directory for files that pass. It lies in memory.
pub(super) const TEMP: &str = "/tmp";

/// Processes that a user may have on the whole machine; those of one container are counted apart.
const MOST_OF_A_USER: u64 = 4_096;

/// How often an engine is asked that is busy with the same container, and how long after the last time.
const REMOVALS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// The label of every container of a sandbox; its value says whose it is.
const LABEL: &str = "agent.sandbox.owner";

/// Makes a [`ContainerSandbox`].
#[derive(Clone)]
pub struct ContainerSandboxBuilder {
    image: String,
    engine: Option<String>,
    root: String,
    user: Option<String>,
    env: BTreeMap<String, String>,
    limits: Limits,
    cpus: Option<f64>,
    network: bool,
}

impl ContainerSandboxBuilder {
    pub(super) fn new(image: String) -> Self {
        Self {
            image,
            engine: None,
            root: "/workspace".to_owned(),
            user: None,
            env: BTreeMap::new(),
            limits: Limits::default(),
            cpus: None,
            network: false,
        }
    }

    /// Sets where the engine listens: `unix:///run/podman/podman.sock`, say. Default: `DOCKER_HOST`, or the first socket of Docker or Podman that is there.
    #[must_use]
    pub fn engine(mut self, address: impl Into<String>) -> Self {
        self.engine = Some(address.into());
        self
    }

    /// Sets the directory that programs start in. It is made if it is not there. Default: `/workspace`.
    #[must_use]
    pub fn root(mut self, root: impl Into<String>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets the user that programs run as, by name or number. The root must be writable for it. Default: the image's.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets a variable of the environment, beside those of the image.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets what programs may use: memory and processes for all together, the others for each process. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many processors all programs together may use: `0.5` is half of one. Default: all that there are.
    #[must_use]
    pub fn cpus(mut self, cpus: f64) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Gives the container the engine's usual network. Default: none.
    #[must_use]
    pub fn allow_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Makes it: starts a container, and a program in it to see what holds.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if no engine answers, if the image is not there, has no shell, or does not let its user write into
    /// the root, and if files, processes or (unless allowed) the network are not kept.
    pub async fn build(self) -> Result<ContainerSandbox> {
        if !self.root.starts_with('/') {
            return Err(Error::config(format!("the root '{}' of a container must begin with '/'", self.root)));
        }
        if self.cpus.is_some_and(|cpus| !(0.01..=4096.0).contains(&cpus)) {
            return Err(Error::config("a container needs between 0.01 and 4096 processors"));
        }
        let engine = Engine::connect(self.engine.as_deref()).await?;
        let docker = engine.docker();
        let created = docker.create_container(None::<CreateContainerOptions>, self.container()).await;
        let id = created.map_err(|e| self.refused(e))?.id;
        // From here on the container is removed when it is not used.
        let remove = |e: Error| async {
            let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            // The error that is told is the first one; what stays is swept.
            drop(docker.remove_container(&id, Some(options)).await);
            Err(e)
        };
        let attach = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true).build();
        let attached = match docker.attach_container(&id, Some(attach)).await {
            Ok(attached) => attached,
            Err(e) => return remove(self.refused(e)).await,
        };
        if let Err(e) = docker.start_container(&id, None::<StartContainerOptions>).await {
            return remove(self.refused(e)).await;
        }
        let sandbox = ContainerSandbox {
            engine: engine.clone(),
            id: id.as_str().into(),
            root: self.root.as_str().into(),
            guarantees: crate::sandbox::Guarantees::none("a container"),
            kept: Arc::new(Kept::new(attached)),
        };
        match self.checked(sandbox).await {
            Ok(sandbox) => Ok(sandbox),
            Err(e) => remove(e).await,
        }
    }

    /// Removes the containers of applications of this machine that are gone, and stops at none that may be in use. Gives their number.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if no engine answers; [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if it does not say what it has.
    pub async fn sweep(&self) -> Result<usize> {
        let engine = Engine::connect(self.engine.as_deref()).await?;
        let found = labelled(&engine).await?;
        let mut removed = 0;
        for container in found {
            let owner = container.labels.as_ref().and_then(|labels| labels.get(LABEL));
            if let (Some(owner), Some(id)) = (owner, &container.id)
                && owner::is_gone(owner)
            {
                removed += usize::from(remove_unused(&engine, id).await?);
            }
        }
        Ok(removed)
    }

    async fn checked(&self, mut sandbox: ContainerSandbox) -> Result<ContainerSandbox> {
        let unusable = |e: Error| {
            Error::config(format!("the image '{}' cannot be a sandbox: {}", self.image, e.message())).with_source(e)
        };
        let by = format!("a container of the image {}", self.image);
        let found = probe::try_out(&sandbox, &by, &self.limits).await.map_err(unusable)?;
        if !found.is_writable {
            let what = format!("its user may not write into '{}': set another user or root", sandbox.root());
            return Err(unusable(Error::config(what)));
        }
        let holds = &found.guarantees;
        if !(holds.files && holds.processes && (holds.network || self.network)) {
            return Err(unusable(Error::config(format!("the engine does not keep its programs in\n{holds}"))));
        }
        sandbox.guarantees = found.guarantees;
        Ok(sandbox)
    }

    fn container(&self) -> ContainerCreateBody {
        let own = [("HOME", TEMP), ("TMPDIR", TEMP), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: BTreeMap<_, _> = own.into_iter().chain(self.env.clone()).collect();
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: Some(["sh", "-c", FIRST].map(str::to_owned).into()),
            cmd: Some(Vec::new()),
            user: self.user.clone(),
            working_dir: Some(self.root.clone()),
            env: Some(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
            labels: Some(HashMap::from([(LABEL.to_owned(), owner::this().unwrap_or_default())])),
            // Its input ends with the one connection that it has.
            attach_stdin: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            host_config: Some(self.host()),
            ..ContainerCreateBody::default()
        }
    }

    fn host(&self) -> HostConfig {
        let limits = &self.limits;
        let memory = signed(limits.memory);
        let ulimits = [
            ("core", 0),
            ("cpu", limits.cpu.as_secs().max(1)),
            ("fsize", limits.file),
            ("nofile", limits.open_files.into()),
            // Counted for a user of the whole machine, so it is wide; without it, some engines ask for more than their own limit.
            ("nproc", MOST_OF_A_USER.max(limits.processes.into())),
        ];
        let ulimit = |(name, most): (&str, u64)| ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(signed(most)),
            hard: Some(signed(most)),
        };
        HostConfig {
            auto_remove: Some(true),
            network_mode: (!self.network).then(|| "none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            memory: Some(memory),
            memory_swap: Some(memory),
            nano_cpus: self.cpus.map(|cpus| (cpus * 1e9) as i64),
            pids_limit: Some(limits.processes.into()),
            ulimits: Some(ulimits.map(ulimit).into()),
            tmpfs: Some(HashMap::from([(TEMP.to_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned())])),
            ..HostConfig::default()
        }
    }

    fn refused(&self, e: bollard::errors::Error) -> Error {
        let what = if is_missing(&e) {
            format!("the engine has no image '{}': pull it first", self.image)
        } else {
            format!("the engine starts no container of the image '{}': {}", self.image, said(&e))
        };
        Error::config(what).with_source(e)
    }
}

/// States of a container that an engine has and the interface knows. Podman has others: an answer with a container in one of them cannot
/// be read.
const STATES: [&str; 4] = ["created", "exited", "paused", "running"];

/// The containers of all sandboxes.
async fn labelled(engine: &Engine) -> Result<Vec<ContainerSummary>> {
    let filters = HashMap::from([("label", vec![LABEL]), ("status", STATES.to_vec())]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = engine.docker().list_containers(Some(options)).await;
    listed.map_err(|e| engine.failed("say which containers it has", e))
}

/// Removes a container that may be going by itself at this moment. False if it has gone so.
pub(super) async fn remove_unused(engine: &Engine, id: &str) -> Result<bool> {
    let mut tries = 1;
    loop {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match engine.docker().remove_container(id, Some(options)).await {
            Ok(()) => return Ok(true),
            Err(e) if is_gone(&e) => return Ok(false),
            Err(e) if tries == REMOVALS => return Err(engine.failed("remove a container that nobody uses", e)),
            Err(_) => sleep(PAUSE).await,
        }
        tries += 1;
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl fmt::Debug for ContainerSandboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSandboxBuilder")
            .field("image", &self.image)
            .field("engine", &self.engine)
            .field("root", &self.root)
            .field("user", &self.user)
            .field("env", &self.env.keys())
            .field("limits", &self.limits)
            .field("cpus", &self.cpus)
            .field("network", &self.network)
            .finish()
    }
}
