//! What the model for opt-outs is being asked, of all talks: a service that stops waits for the answers.
use entities::boxed;
use std::sync::Arc;
use tokio::sync::watch;

/// Cloning is cheap.
#[derive(Clone, Default)]
pub struct Judgements(Arc<watch::Sender<usize>>);

/// One that is under way, until it is dropped.
pub struct UnderWay(Judgements);

impl Judgements {
    pub fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count += 1);
        UnderWay(self.clone())
    }

    /// Resolves when none is under way.
    #[boxed]
    pub async fn done(&self) {
        // Its sender is this one's own.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
