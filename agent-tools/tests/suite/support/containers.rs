//! Containers for tests, if an engine and an image are available.

use agent_tools::sandbox::{ContainerSandbox, ContainerSandboxBuilder};

/// Environment variable with the name of the image. It needs a shell and the usual utilities; with
/// perl, more is tested.
const IMAGE: &str = "CONTAINER_TEST_IMAGE";

/// Returns a sandbox of the engine that is found, or `None`: the test then reports that it is
/// skipped.
pub(crate) async fn sandbox(
    set: impl FnOnce(ContainerSandboxBuilder) -> ContainerSandboxBuilder,
) -> Option<ContainerSandbox> {
    let Ok(image) = std::env::var(IMAGE) else {
        println!("skipped: {IMAGE} names no image");
        return None;
    };
    // If an image is named, a failure is an error.
    Some(set(ContainerSandbox::builder(image)).build().await.expect("an engine and the image"))
}
