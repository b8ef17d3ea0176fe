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

/// Directory for temporary files, in memory.
pub(super) const TEMP: &str = "/tmp";

/// Maximum of processes of a user on the whole machine; those of one container are limited
/// separately.
const MOST_OF_A_USER: u64 = 4_096;

/// Number of retries while the engine is busy with the same container, and delay between them.
const REMOVALS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Label of every sandbox container; its value identifies the owner.
const LABEL: &str = "agent.sandbox.owner";

/// Builds a [`ContainerSandbox`].
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

    /// Sets the address of the engine, such as `unix:///run/podman/podman.sock`. Default:
    /// `DOCKER_HOST`, or the first existing socket of Docker or Podman.
    #[must_use]
    pub fn engine(mut self, address: impl Into<String>) -> Self {
        self.engine = Some(address.into());
        self
    }

    /// Sets the working directory of programs, which is created if missing. Default: `/workspace`.
    #[must_use]
    pub fn root(mut self, root: impl Into<String>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets the user that programs run as, by name or number. The root must be writable for that
    /// user. Default: the image's.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets an environment variable, in addition to those of the image.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the resource limits: memory and processes for all programs together, the others per
    /// process. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of processors for all programs together: `0.5` is half a processor. Default:
    /// all.
    #[must_use]
    pub fn cpus(mut self, cpus: f64) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Connects the container to the engine's default network. Default: no network.
    #[must_use]
    pub fn allow_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Builds the sandbox: starts a container, and a probe in it that determines the guarantees.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if no engine responds, if the image is
    /// missing, has no shell, or does not let its user write to the root, and if files, processes
    /// or (unless allowed) the network are not isolated.
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
        // From here on the container is removed on failure.
        let remove = |e: Error| async {
            let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            // The first error is reported; a container that stays is removed by `sweep`.
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

    /// Removes the containers of applications on this machine that no longer run, and none that may
    /// be in use. Returns their number.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if no engine responds;
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if it does not list its containers.
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
            // The input ends with its only connection.
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
            // Counted per user of the whole machine, hence large; without it, some engines request
            // more than their own limit.
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

/// Container states that the client library knows. Podman has others: a response with a container
/// in one of those cannot be parsed.
const STATES: [&str; 4] = ["created", "exited", "paused", "running"];

/// Lists the containers of all sandboxes.
async fn labelled(engine: &Engine) -> Result<Vec<ContainerSummary>> {
    let filters = HashMap::from([("label", vec![LABEL]), ("status", STATES.to_vec())]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = engine.docker().list_containers(Some(options)).await;
    listed.map_err(|e| engine.failed("say which containers it has", e))
}

/// Removes a container that may be exiting at this moment. Returns false if it was already gone.
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
