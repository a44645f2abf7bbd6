//! The threads on which the service runs, beside those of HTTP and of the actors.
use crate::error::CannotStart;

/// The threads that drive the outside: database, deliveries and calls; and one for the writer alone, so that its next step
/// never waits behind hundreds of answers. Dropped, they end without waiting: an async context may not wait.
pub(super) struct Threads {
    io: Option<tokio::runtime::Runtime>,
    writer: Option<tokio::runtime::Runtime>,
}

impl Threads {
    pub(super) fn start(io: usize) -> Result<Self, CannotStart> {
        Ok(Threads {
            io: Some(runtime("callboard-io", io)?),
            writer: Some(runtime("callboard-writer", 1)?),
        })
    }
    pub(super) fn handle(&self) -> Result<tokio::runtime::Handle, CannotStart> {
        handle(&self.io)
    }
    pub(super) fn writer(&self) -> Result<tokio::runtime::Handle, CannotStart> {
        handle(&self.writer)
    }
    pub(super) fn take(&mut self) -> impl Iterator<Item = tokio::runtime::Runtime> + use<> {
        self.writer.take().into_iter().chain(self.io.take())
    }
}

fn runtime(name: &str, threads: usize) -> Result<tokio::runtime::Runtime, CannotStart> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(threads).thread_name(name).enable_all().build();
    built.map_err(|error| CannotStart(format!("threads cannot be started: {error}")))
}

fn handle(runtime: &Option<tokio::runtime::Runtime>) -> Result<tokio::runtime::Handle, CannotStart> {
    let running = runtime.as_ref().map(|runtime| runtime.handle().clone());
    running.ok_or_else(|| CannotStart("the service's threads have stopped".into()))
}

impl Drop for Threads {
    fn drop(&mut self) {
        for runtime in self.take() {
            runtime.shutdown_background();
        }
    }
}

/// What is driven by those threads, and not by the caller's, is awaited here; so are its panics.
pub(super) async fn spawn_on<T: Send + 'static>(
    runtime: &tokio::runtime::Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match runtime.spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
