//! Containers for tests, if an engine and an image are available.

use agent_tools::sandbox::{ContainerSandbox, ContainerSandboxBuilder};

/// The variable with the name of the image. It needs a shell and the usual small programs; with perl, more is tried.
const IMAGE: &str = "CONTAINER_TEST_IMAGE";

/// A sandbox of the engine that is found, or none: then the test says that it is skipped.
pub(crate) async fn sandbox(
    set: impl FnOnce(ContainerSandboxBuilder) -> ContainerSandboxBuilder,
) -> Option<ContainerSandbox> {
    let Ok(image) = std::env::var(IMAGE) else {
        println!("skipped: {IMAGE} names no image");
        return None;
    };
    // Who names an image wants to see it run.
    Some(set(ContainerSandbox::builder(image)).build().await.expect("an engine and the image"))
}
