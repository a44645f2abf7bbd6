//! The one actor around every state machine: loads, decides, commits, performs, and sets the one alarm.
use crate::{
    deps::Deps,
    facts::{self, worth_another_try},
    router::Mailbox,
};
use actix::prelude::*;
use entities::{Error, Result, ids::TenantScoped, values::Moment};
use futures_util::future::BoxFuture;
use rules::{commit::Commit, effect::Effect, machine::Machine};
use runtime::{
    clock::{Busy, Clock},
    registry::{Child, Link, Registry, Stop, tell_itself},
};
use std::{fmt::Debug, time::Duration};

/// A state machine with rows: what binds a [`Machine`] to the shell.
pub trait Stored: Machine {
    fn load(deps: &Deps, id: TenantScoped<Self::Key>) -> impl Future<Output = Result<Self>> + Send;
    /// Adds its row, as the successor of the stored one.
    fn save(&mut self, commit: &mut Commit);
    /// What must happen first when the state was found in the database.
    fn recovery(&self, _: &Deps) -> Option<Self::Command> {
        None
    }
    /// It was found in the database: begins again what its last commit was to begin, for a commit that was in doubt and stood has
    /// begun nothing. What is begun already is not begun twice.
    fn resume(&self, _: &Deps) {}
    /// Is this state, committed by somebody else a moment ago, still worth taking over?
    fn may_be_adopted(&self, _: &Deps) -> bool {
        true
    }
    /// It was committed, as the successor of `before`: tells whoever only watches.
    fn committed(&self, _before: &Self, _: &Deps) {}
    /// A commit met a row that had changed: forget what was kept of it.
    fn found_stale(_: &Deps, _: TenantScoped<Self::Key>) {}
}

/// The only message an entity actor understands; its protocol is the machine's `Command`.
struct Do<M: Stored> {
    command: M::Command,
    /// Nobody awaits the answer, so a passing failure is tried again.
    persistent: bool,
    busy: Busy,
}
impl<M: Stored> Do<M> {
    /// Somebody awaits the answer and decides what a failure means.
    fn ask(command: M::Command, clock: &Clock) -> Self {
        Do {
            command,
            persistent: false,
            busy: clock.busy(),
        }
    }
    fn tell(command: M::Command, clock: &Clock) -> Self {
        Do {
            command,
            persistent: true,
            busy: clock.busy(),
        }
    }
}
impl<M: Stored> Message for Do<M> {
    type Result = Result<M>;
}

/// A state that has just been committed by somebody else: saves the actor from loading it.
struct Adopt<M: Stored>(M, Busy);
impl<M: Stored> Message for Adopt<M> {
    type Result = ();
}

pub struct Shell<M: Stored> {
    deps: Deps,
    link: Link<Self>,
    /// The state as of the last commit; `None`: it must be loaded.
    kept: Option<M>,
    /// The state before a command that failed in doubt: what is in no row of it must not be lost.
    before: Option<M>,
    alarm: Option<(Moment, SpawnHandle)>,
    restarted: bool,
}

impl<M: Stored> Shell<M> {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Shell {
            deps,
            link,
            kept: None,
            before: None,
            alarm: None,
            restarted: false,
        }
    }

    fn settle(&mut self, kept: Option<M>, error: Option<&Error>, ctx: &mut Context<Self>) {
        self.kept = kept;
        match self
            .kept
            .as_ref()
            .map(|state| (state.next_deadline(), state.is_at_rest()))
        {
            Some((deadline, at_rest)) => {
                self.set_alarm(deadline, ctx);
                if at_rest {
                    self.link.rest();
                }
            }
            // There is nothing of that id.
            None if matches!(error, Some(Error::NotFound(_))) => {
                self.set_alarm(None, ctx);
                self.link.rest();
            }
            // In doubt: look again, soon if it may pass by itself.
            None => {
                let seconds = if error.is_some_and(Error::retryable) { 1 } else { 10 };
                self.set_alarm(Some(self.deps.clock.now().plus_seconds(seconds)), ctx);
            }
        }
    }

    fn set_alarm(&mut self, at: Option<Moment>, ctx: &mut Context<Self>) {
        if self.alarm.as_ref().map(|(at, _)| *at) == at {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(at) = at else { return };
        let rings = self.deps.clock.alarm(at).into_actor(self).map(|busy, shell, ctx| {
            shell.alarm = None;
            let tick = Do {
                command: M::TICK,
                persistent: true,
                busy,
            };
            tell_itself(ctx, tick);
        });
        self.alarm = Some((at, ctx.spawn(rings)));
    }
}

impl<M: Stored> Actor for Shell<M> {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Context<Self>) {
        if std::mem::take(&mut self.restarted) {
            // Alarms were lost with the panic: look at the rows.
            tell_itself(ctx, Do::tell(M::TICK, &self.deps.clock));
        }
    }
}

impl<M: Stored> Supervised for Shell<M> {
    fn restarting(&mut self, _: &mut Context<Self>) {
        // Memory may be half changed: the rows are the truth.
        self.kept = None;
        self.alarm = None;
        self.restarted = true;
    }
}

impl<M: Stored> Child for Shell<M> {
    type Id = TenantScoped<M::Key>;
    const KIND: &'static str = M::KIND;
}

impl<M: Stored> Handler<Stop> for Shell<M> {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        match stop {
            Stop::Idle if self.alarm.is_some() || self.kept.as_ref().is_some_and(|state| !state.is_at_rest()) => {
                self.link.stay()
            }
            Stop::Idle | Stop::Shutdown => ctx.stop(),
        }
    }
}

impl<M: Stored> Handler<Adopt<M>> for Shell<M> {
    type Result = ();
    fn handle(&mut self, Adopt(state, _busy): Adopt<M>, ctx: &mut Context<Self>) {
        // Somebody may have been here since the commit, and may even have ended it.
        if state.may_be_adopted(&self.deps) {
            // What is kept may be older than that commit, or newer.
            let kept = self.kept.take().filter(|kept| kept.version() >= state.version());
            self.settle(Some(kept.unwrap_or(state)), None, ctx);
        } else {
            // Whatever it has become, the rows tell.
            let kept = self.kept.take();
            self.settle(kept, None, ctx);
        }
    }
}

impl<M: Stored> Handler<Do<M>> for Shell<M> {
    // The mailbox stays shut meanwhile: one command at a time.
    type Result = AtomicResponse<Self, Result<M>>;
    fn handle(
        &mut self,
        Do {
            command,
            persistent,
            busy,
        }: Do<M>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        // `take`: a state is remembered only after its commit. After doubt, error or panic the next command reloads.
        let step = step(
            self.deps.clone(),
            self.link.id,
            (self.kept.take(), self.before.take()),
            command,
            persistent,
            busy,
        );
        AtomicResponse::new(Box::pin(step.into_actor(self).map(
            |((kept, before), answer, busy), shell, ctx| {
                shell.before = before;
                shell.settle(kept, answer.as_ref().err(), ctx);
                drop(busy);
                answer
            },
        )))
    }
}

/// How long a request waits for an entity.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

impl<M: Stored> Mailbox<M> for Registry<Shell<M>> {
    fn tell(&self, id: TenantScoped<M::Key>, command: M::Command) {
        Registry::tell(self, id, Do::tell(command, self.clock()));
    }
    fn insist(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<M>> {
        Box::pin(async move { self.send(id, Do::tell(command, self.clock())).await? })
    }
    fn ask(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<Result<M>>> {
        Box::pin(self.send(id, Do::ask(command, self.clock())))
    }
    fn request(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<M>> {
        Box::pin(async move {
            // An actor that waits for the database keeps others waiting: a caller is told so in time.
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.ask(id, command)).await;
            answer.map_err(|_| Error::Unavailable(format!("the {} is busy", M::KIND)))??
        })
    }
    fn adopt(&self, state: M) {
        Registry::tell(self, state.owner(), Adopt(state, self.clock().busy()));
    }
}

/// One command, decided until it stands. The first part of the answer is the state to remember, and, where that is in doubt,
/// the state before.
async fn step<M: Stored>(
    deps: Deps,
    id: TenantScoped<M::Key>,
    (mut kept, mut memory): (Option<M>, Option<M>),
    command: M::Command,
    persistent: bool,
    busy: Busy,
) -> ((Option<M>, Option<M>), Result<M>, Busy) {
    let mut tries = 0;
    loop {
        let state = match kept.take() {
            Some(state) => Ok(state),
            None => found::<M>(&deps, id).await.map(|mut state| {
                if let Some(before) = &memory {
                    state.carry_over(before);
                }
                state
            }),
        };
        let error = match state {
            Ok(state) => match decide(&deps, state, command.clone()).await {
                Ok(state) => return ((Some(state.clone()), None), Ok(state), busy),
                Err(Undecided::Refused(state, error)) => return ((Some(state), None), Err(error), busy),
                Err(Undecided::InDoubt(before, error)) => {
                    memory = Some(before);
                    error
                }
            },
            Err(error) => error,
        };
        tries += 1;
        if matches!(error, Error::Stale) {
            M::found_stale(&deps, id);
        }
        if worth_another_try(&error, tries) {
            continue;
        }
        // Stale again and again: what the command took for granted is no longer so.
        let passing = error.retryable() && !matches!(error, Error::Stale);
        if !(persistent && passing) {
            if persistent {
                lament::<M>(id, &command, &error, tries);
            }
            return ((None, memory), Err(error), busy);
        }
        // With the mailbox shut, so that what comes after keeps its order.
        deps.clock.back_off(tries).await;
    }
}

/// Nobody awaits the answer to a command that was told, so nobody else would ever hear that it came to nothing.
fn lament<M: Stored>(id: TenantScoped<M::Key>, command: &M::Command, error: &Error, tries: u32) {
    let (kind, command) = (M::KIND, name(command));
    match error {
        // What it was for is gone.
        Error::NotFound(_) => {}
        Error::Stale => {
            tracing::warn!(
                kind,
                ?id,
                command,
                tries,
                "a command found its rows changed each time and was given up"
            );
        }
        _ => tracing::error!(kind, ?id, command, %error, "a command failed for good"),
    }
}

/// A command without what it carries: a log names it, and repeats nobody's words or numbers.
fn name(command: &impl Debug) -> String {
    let whole = format!("{command:?}");
    let end = whole
        .find(|letter: char| !letter.is_alphanumeric())
        .unwrap_or(whole.len());
    whole[..end].to_owned()
}

/// The state from the database, with whatever a crash has left to do done.
async fn found<M: Stored>(deps: &Deps, id: TenantScoped<M::Key>) -> Result<M> {
    let mut state = M::load(deps, id).await?;
    if let Some(command) = state.recovery(deps) {
        let recovered = decide(deps, state, command).await;
        state = recovered.map_err(|undecided| match undecided {
            Undecided::Refused(_, error) | Undecided::InDoubt(_, error) => error,
        })?;
    }
    state.resume(deps);
    Ok(state)
}

/// A command that did not become the state.
enum Undecided<M> {
    /// The machine says no; the state is as it was.
    Refused(M, Error),
    /// The commit failed: the rows tell what is so. Holds the state before.
    InDoubt(M, Error),
}

/// Decides, commits, performs.
async fn decide<M: Stored>(deps: &Deps, before: M, command: M::Command) -> Result<M, Undecided<M>> {
    let (mut state, effects) = match before.clone().transition(command, deps.clock.now()) {
        Ok(next) => next,
        Err(error) => return Err(Undecided::Refused(before, error)),
    };
    let mut commit = Commit::default();
    if let Err(error) = facts::add(deps, state.owner(), &effects, &mut commit).await {
        return Err(Undecided::InDoubt(before, error));
    }
    if state.differs(&before) {
        state.save(&mut commit);
    }
    if !commit.is_empty()
        && let Err(error) = deps.writer.commit(state.owner().tenant_id.into(), commit).await
    {
        return Err(Undecided::InDoubt(before, error));
    }
    state.committed(&before, deps);
    deps.router.perform(effects);
    Ok(state)
}

/// The rows of a step that somebody else commits, together with more: its facts, and the successor of the stored row.
pub async fn succeed<M: Stored>(deps: &Deps, state: &mut M, effects: &[Effect], commit: &mut Commit) -> Result<()> {
    facts::add(deps, state.owner(), effects, commit).await?;
    state.save(commit);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::name;
    use rules::session::command::Command;

    #[test]
    fn a_log_names_a_command_and_not_what_it_carries() {
        let to = "+15002345670".parse().unwrap();
        for (command, is) in [
            (Command::Tick, "Tick"),
            (Command::Transfer { to }, "Transfer"),
            (Command::Consent(true), "Consent"),
            (Command::TransferFailed { why: "secret".into() }, "TransferFailed"),
        ] {
            assert_eq!(name(&command), is);
        }
    }
}
